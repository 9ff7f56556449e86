# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Selection of mutants for a run, and of tests for each mutant."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
from collections.abc import Iterable, Mapping

from ansible_collections.hwaccel.gpu.tests.mutants.mutations import Mutant, mutants

_UTILS = "plugins/module_utils"
#: Sources with decisions, by area. Functions that the plans of host roles call are in the same folders.
AREAS = {
    "engine": (f"{_UTILS}/_manifest_set/*.py", f"{_UTILS}/_workloads/*.py"),
    "state": (f"{_UTILS}/_state/*.py",),
    "chain": (f"{_UTILS}/_gpu/chain*.py", f"{_UTILS}/_gpu/chain/*.py"),
    "operations": (f"{_UTILS}/_operations/*.py",),
    "approval": (f"{_UTILS}/_approval/*.py", f"{_UTILS}/_operations/node_csr/*.py"),
    "openshift": (f"{_UTILS}/_openshift/*.py",),
    "host roles": ("plugins/plugin_utils/machines/**/*.py",),
}


def seeded(tree: pathlib.Path, seed: int, count: int) -> list[tuple[str, Mutant]]:
    """`count` mutants with their areas, taken from each area in turn.

    The rank of a mutant depends only on the seed and its identity: the same seed selects the same mutants in another tree,
    and a smaller count selects the first of them.
    """
    lots = {
        area: sorted(_of_area(tree, patterns), key=lambda one: _rank(seed, one)) for area, patterns in AREAS.items()
    }
    rounds = max(map(len, lots.values()), default=0)
    return [(area, lot[number]) for number in range(rounds) for area, lot in lots.items() if number < len(lot)][:count]


def _of_area(tree: pathlib.Path, patterns: Iterable[str]) -> list[Mutant]:
    paths = sorted({path for pattern in patterns for path in tree.glob(pattern)})
    return [
        one for path in paths for one in mutants(path.relative_to(tree).as_posix(), path.read_text(encoding="utf-8"))
    ]


def _rank(seed: int, mutant: Mutant) -> str:
    return hashlib.sha256(f"{seed} {mutant.identity}".encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Record:
    """A run of one file of tests without a mutant.

    seconds: durations of passed tests. lines: tests by source and line. imported: lines by source that run during the collection of tests.
    shared: lines by source that run in fixtures of several tests. failed: failed tests.
    """

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[int, tuple[str, ...]]]
    imported: Mapping[str, frozenset[int]]
    shared: Mapping[str, frozenset[int]]
    failed: tuple[str, ...] = ()


def record_of(answer: Mapping) -> Record:
    """The record in the answer of a worker."""
    return Record(
        answer["seconds"],
        {path: {int(line): tuple(tests) for line, tests in lines.items()} for path, lines in answer["lines"].items()},
        {path: frozenset(lines) for path, lines in answer["imported"].items()},
        {path: frozenset(lines) for path, lines in answer["shared"].items()},
        tuple(answer["failed"]),
    )


def chosen(mutant: Mutant, records: Iterable[Record]) -> dict[str, float]:
    """Tests that run the mutant's lines, with their durations and the fastest first.

    A line that runs during the import is assigned to no test, so all tests that run any line of that source are selected.
    """
    mutated = range(mutant.lines[0], mutant.lines[1] + 1)
    tests: dict[str, float] = {}
    for record in records:
        lines = record.lines.get(mutant.path, {})
        names = {name for line in mutated for name in lines.get(line, ())}
        if record.shared.get(mutant.path, frozenset()).intersection(mutated):
            names.update(record.seconds)
        if not mutant.inside or record.imported.get(mutant.path, frozenset()).intersection(mutated):
            names.update(name for row in lines.values() for name in row)
        tests |= {name: record.seconds[name] for name in names if name in record.seconds}
    return dict(sorted(tests.items(), key=lambda entry: (entry[1], entry[0])))
