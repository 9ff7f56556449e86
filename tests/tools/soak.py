# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""make soak: parts of at most an hour, one after the other, each with a result that is kept.

soak.py [PART]    runs this part, or all that have no result that holds; a part's name may have hyphens for its spaces
soak.py --table   what is kept: part, commit, date, whether it holds, and what was measured
soak.py --record  writes what is kept into the checkout as well, to be committed: soak.json beside this file, and the page docs/soak.md

A result is kept in the cache, outside of any checkout, and where it was recorded for whoever has another cache. It holds as long as the part's
inputs (changed.py) have the content that was tested, whatever commit that is.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import typing as t

import changed
import check
import environments
import pace
import tree
from jobs import SOAK, Job, with_needed
from leaks import LOCAL

#: pytest's headline of what a test that passed has printed, and the next one.
CAPTURED, HEADLINE = (
    re.compile(r"^-+ Captured stdout call -+$"),
    re.compile(r"^(-{3,}|_{3,}|={3,}) .* (-{3,}|_{3,}|={3,})$"),
)
PAGE = """# What was measured

Parts of `make soak` ([contributing](contributing.md#soak)), each with the commit that it ran on, and what it measured. Written by `make soak-record`.

```
{table}
```
"""
#: Pages that show what a part measured, beside the page of all parts, and where in them.
SHOWN = {"live manifest mutants": "docs/simulator.md"}
BEGIN, END = "<!-- made by `make soak-record` -->", "<!-- end of what is made -->"
#: Of a part that is no run of pytest: its last lines are its table.
LAST_LINES = 25


@dataclasses.dataclass(frozen=True)
class Kept:
    """content: digest of the inputs; figure: what it measured, line by line."""

    part: str
    content: str
    commit: str
    date: str
    passed: bool
    counts: str
    seconds: float
    figure: tuple[str, ...]


def folder() -> pathlib.Path:
    return environments.cache_folder() / "soak"


def place(part: Job) -> pathlib.Path:
    return folder() / f"{part.name.replace(' ', '-')}.json"


def content(part: Job) -> str:
    """Of the tree that is tested: names and contents of the part's inputs."""
    digest = hashlib.sha256(repr(part).encode())
    for name in sorted(tree.listing(environments.TREE, tree.patterns())):
        if part.name in changed.touched(name):
            path = environments.TREE / name
            digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def commit() -> str:
    """With a mark where the tree differs from it; no commit where there is no history."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=environments.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "none"


def figures(log: str, passed: bool) -> tuple[str, ...]:
    """Of a part that failed, its tests that failed. Names of folders of this machine belong into no record."""
    log = log.replace(str(environments.ROOT), ".").replace(str(pathlib.Path.home()), "~")
    if not passed:
        return tuple(line for line in log.splitlines() if line.startswith("FAILED "))
    found, within, any_captured = [], False, False
    for line in log.splitlines():
        if CAPTURED.match(line):
            within = any_captured = True
        elif HEADLINE.match(line):
            within = False
        elif within and line.strip():
            found.append(line.rstrip())
    return tuple(found if any_captured else [line.rstrip() for line in log.splitlines() if line.strip()][-LAST_LINES:])


def keep(part: Job, tested: str, result: check.Result) -> None:
    log = check.log_of(part.name).read_text(encoding="utf-8", errors="replace")
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    counts, passed = ", ".join(f"{number} {kind}" for kind, number in result.counts.items()), not result.failed
    kept = Kept(part.name, tested, commit(), date, result.ran and passed, counts, result.seconds, figures(log, passed))
    folder().mkdir(parents=True, exist_ok=True)
    place(part).write_text(json.dumps(dataclasses.asdict(kept), indent=2), encoding="utf-8")


def read(fields: dict[str, t.Any]) -> Kept:
    """Without addresses of a rig, which a record of the project may not have."""
    return Kept(**{**fields, "figure": tuple(LOCAL.sub("…/", line) for line in fields["figure"])})


def record() -> pathlib.Path:
    return environments.ROOT / changed.RECORD[0]


def kept(part: Job) -> Kept | None:
    """The last result of the content that is there now, of this cache or recorded, else the last one."""
    found = [read(json.loads(place(part).read_text(encoding="utf-8")))] if place(part).exists() else []
    known = json.loads(record().read_text(encoding="utf-8")) if record().exists() else {}
    found += [read(known[part.name])] if part.name in known else []
    return max(found, key=lambda one: (one.content == content(part), one.date), default=None)


def write_record(parts: tuple[Job, ...]) -> None:
    found = {part.name: dataclasses.asdict(one) for part in parts if (one := kept(part))}
    record().write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    (environments.ROOT / changed.RECORD[1]).write_text(PAGE.format(table=table(parts)), encoding="utf-8")
    for name in SHOWN.keys() & found.keys():
        if found[name]["passed"]:
            show(environments.ROOT / SHOWN[name], found[name]["figure"])


def show(page: pathlib.Path, figure: tuple[str, ...]) -> None:
    """Puts what a part measured in the page's place for it."""
    before, _begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _old, _end, after = rest.partition(END)
    made = "\n".join(figure)
    page.write_text(f"{before}{BEGIN}\n\n```\n{made}\n```\n\n{END}{after}", encoding="utf-8")


def state(part: Job, found: Kept | None) -> str:
    if found is None:
        return "no result"
    if found.content != content(part):
        return "stale"
    return "holds" if found.passed else "failed"


def table(parts: tuple[Job, ...]) -> str:
    rows = []
    for part in parts:
        found = kept(part)
        told = (found.commit, found.date, found.counts, f"{found.seconds / 60:.0f} min") if found else ("", "", "", "")
        rows.append(((part.name, *told, state(part, found)), found.figure if found else ()))
    heads = ("part", "commit", "date (UTC)", "result", "took", "holds")
    widths = [max(len(heads[column]), *(len(row[column]) for row, _figure in rows)) for column in range(len(heads))]
    lines = []
    for row, figure in [(heads, ()), *rows]:
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        lines += [f"    {line}" for line in figure]
    return "\n".join(lines)


class Runner(check.Runner):
    """Keeps each result as soon as it is there: whoever stops the soak loses one part."""

    def __init__(self, jobs: tuple[Job, ...]) -> None:
        super().__init__(jobs, 1)
        self.tested = {part.name: content(part) for part in jobs if part in SOAK}

    def done(self, job: Job, result: check.Result) -> None:
        super().done(job, result)
        if job not in SOAK or not result.seconds or check.STOPPED.is_set():
            return
        if content(job) != self.tested[job.name]:
            check.say(
                f"not kept: inputs of {job.name} changed while it ran. Next: run it again, and leave .build alone meanwhile."
            )
        else:
            keep(job, self.tested[job.name], result)


def chosen(name: str) -> tuple[Job, ...]:
    """Raises ValueError where no part has the name."""
    if name:
        found = tuple(part for part in SOAK if part.name.replace(" ", "-") == name.replace(" ", "-"))
        if not found:
            raise ValueError(f"no part {name}; there are {', '.join(part.name for part in SOAK)}")
        return found
    return tuple(part for part in SOAK if state(part, kept(part)) != "holds")


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs parts of make soak and keeps their results")
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if arguments.record:
        write_record(SOAK)
    if arguments.table or arguments.record:
        print(table(SOAK))
        return 0
    try:
        parts = chosen(arguments.part)
    except ValueError as unknown:
        parser.error(str(unknown))
    if not parts:
        print(f"every part has a result that holds\n{table(SOAK)}")
        return 0
    return check.close(check.run_all(Runner(with_needed(parts, "soak")), pace.seconds()))


if __name__ == "__main__":
    sys.exit(main())
