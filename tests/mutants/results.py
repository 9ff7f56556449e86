# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of mutants: cached outside of the checkout during a run, written at its end, and compared with an earlier run."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Iterable, Sequence

KILLED, SURVIVED, UNCOVERED = "killed", "survived", "uncovered"


@dataclasses.dataclass(frozen=True)
class Result:
    """verdict: killed by a test or by a time limit, survived its tests, or uncovered if no test runs the line. by: the test. seconds: wall time."""

    identity: str
    area: str
    place: str
    function: str
    change: str
    verdict: str
    by: str = ""
    tests: int = 0
    seconds: float = 0.0


class Kept:
    """A folder of small JSON files, whose names are keys of the content. Interrupted operations write no file."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> dict | None:
        path = self.folder / key
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def put(self, key: str, value: dict) -> None:
        draft = self.folder / f"{key}.part"
        draft.write_text(json.dumps(value), encoding="utf-8")
        draft.replace(self.folder / key)


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def digest_of(tree: pathlib.Path, paths: Iterable[pathlib.Path]) -> str:
    """A digest of names and contents of files."""
    return digest(
        *(f"{path.relative_to(tree)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in sorted(paths))
    )


def write_run(path: pathlib.Path, seed: int, results: Sequence[Result]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"seed": seed, "results": [dataclasses.asdict(one) for one in results]}, indent=1) + "\n",
        encoding="utf-8",
    )


def read_run(path: pathlib.Path) -> list[Result]:
    return [Result(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))["results"]]


def share(results: Sequence[Result]) -> str:
    """For example "53 of 60 killed (88.3 %)"."""
    killed = sum(one.verdict == KILLED for one in results)
    return f"{killed} of {len(results)} killed ({killed / len(results):.1%})" if results else "no mutant"


def summary(results: Sequence[Result]) -> str:
    """All survivors, and the shares of killed mutants by area and in total."""
    areas = dict.fromkeys(one.area for one in results)
    lines = [f"{area:12} {share([one for one in results if one.area == area])}" for area in areas]
    return "\n".join(
        [*(described(one) for one in results if one.verdict != KILLED), *lines, f"{'all':12} {share(results)}"]
    )


def unmeasured(results: Sequence[Result]) -> list[str]:
    """Areas in which no test runs any mutant: the sources of these are not recorded."""
    covered = {one.area for one in results if one.verdict != UNCOVERED}
    return [area for area in dict.fromkeys(one.area for one in results) if area not in covered]


def described(one: Result) -> str:
    how = f"{one.verdict} {one.tests} tests" if one.verdict == SURVIVED else one.verdict
    return f"{one.identity} {one.place} {one.function}: {one.change} ({how})"


def compared(before: Sequence[Result], after: Sequence[Result]) -> tuple[str, bool]:
    """A comparison of two runs for their common mutants, and whether the share of killed ones has fallen."""
    old, new = ({one.identity: one for one in run} for run in (before, after))
    both = [identity for identity in old if identity in new]
    earlier, later = [old[identity] for identity in both], [new[identity] for identity in both]
    lost = [new[identity] for identity in both if old[identity].verdict == KILLED != new[identity].verdict]
    won = [new[identity] for identity in both if new[identity].verdict == KILLED != old[identity].verdict]
    lines = [
        f"{len(both)} mutants in both runs, {len(old) - len(both)} only before, {len(new) - len(both)} only after",
        f"before: {share(earlier)}",
        f"after:  {share(later)}",
        *(f"killed before, and not now: {described(one)}" for one in lost),
        *(f"killed now: {described(one)}" for one in won),
    ]
    return "\n".join(lines), len(lost) > len(won)
