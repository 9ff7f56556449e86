# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mutants a run takes, and which tests each of them meets."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
from collections.abc import Iterable, Mapping

from ansible_collections.hwaccel.gpu.tests.mutants.mutations import Mutant, mutants

_UTILS = "plugins/module_utils"
#: What decides, by the part of the source that it lies in. What the plans of the host roles call lies beside them.
AREAS = {
    "engine": (f"{_UTILS}/_manifest_set/*.py", f"{_UTILS}/_workloads/*.py"),
    "state": (f"{_UTILS}/_state/*.py",),
    "chain": (f"{_UTILS}/_gpu/chain*.py", f"{_UTILS}/_gpu/chain/*.py"),
    "operations": (f"{_UTILS}/_operations/*.py",),
    "host roles": ("plugins/plugin_utils/machines/**/*.py",),
}


def seeded(tree: pathlib.Path, seed: int, count: int) -> list[tuple[str, Mutant]]:
    """So many mutants with their areas, the areas in turn.

    Each has its rank from the seed and from what it is, so the same seed takes the same mutants from another tree, and a smaller count takes the first of them.
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
    """What one file of tests did with no mutant in the source.

    seconds: of each test that passed, by its name; lines: tests by source and line; imported: lines by source that run while the tests are collected;
    shared: lines by source that run in fixtures of more than one test; failed: tests that did not pass.
    """

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[int, tuple[str, ...]]]
    imported: Mapping[str, frozenset[int]]
    shared: Mapping[str, frozenset[int]]
    failed: tuple[str, ...] = ()


def record_of(answer: Mapping) -> Record:
    """From what a worker has written."""
    return Record(
        answer["seconds"],
        {path: {int(line): tuple(tests) for line, tests in lines.items()} for path, lines in answer["lines"].items()},
        {path: frozenset(lines) for path, lines in answer["imported"].items()},
        {path: frozenset(lines) for path, lines in answer["shared"].items()},
        tuple(answer["failed"]),
    )


def chosen(mutant: Mutant, records: Iterable[Record]) -> dict[str, float]:
    """Tests that run the mutant's lines with the seconds that each takes, the fastest first.

    A line that runs at import leaves its trace with nobody: whoever runs any line of that source may see its change.
    """
    wanted = range(mutant.lines[0], mutant.lines[1] + 1)
    found: dict[str, float] = {}
    for record in records:
        lines = record.lines.get(mutant.path, {})
        names = {name for line in wanted for name in lines.get(line, ())}
        if record.shared.get(mutant.path, frozenset()).intersection(wanted):
            names.update(record.seconds)
        if not mutant.inside or record.imported.get(mutant.path, frozenset()).intersection(wanted):
            names.update(name for tests in lines.values() for name in tests)
        found |= {name: record.seconds[name] for name in names if name in record.seconds}
    return dict(sorted(found.items(), key=lambda entry: (entry[1], entry[0])))
