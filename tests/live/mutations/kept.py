# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outcomes that an interrupted run has left in the cache, so that the next one goes on. They hold for the same collection and tests."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import json
import pathlib

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import layout
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Mutant
from ansible_collections.hwaccel.gpu.tests.live.mutations.outcomes import Outcome
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import REPOSITORY

#: Code and manifests, and what the rules know beside these.
_INPUTS = ("plugins", "roles", "tests/live/mutations", "tests/upstream", "tests/unit/roles", "tests/unit/fleet_agent")


class Kept:
    """One line a mutant, with its id."""

    def __init__(self, folder: pathlib.Path | None = None) -> None:
        self.path = (folder or pathlib.Path(layout.cache_folder()) / "manifest-mutants") / f"{digest(REPOSITORY)}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def read(self, found: c.Iterable[Mutant]) -> list[Outcome]:
        """Outcomes of these mutants. A line that a killed run has not finished, is none."""
        known = {mutant.id: mutant for mutant in found}
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True) if self.path.exists() else []
        rows = [json.loads(line) for line in lines if line.endswith("}\n")]
        return [Outcome(known[row.pop("id")], **row) for row in rows if row["id"] in known]

    def add(self, one: Outcome) -> None:
        row = {"id": one.mutant.id} | {
            field.name: getattr(one, field.name) for field in dataclasses.fields(one) if field.name != "mutant"
        }
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")


def digest(top: pathlib.Path) -> str:
    """Of what a mutant's outcome depends on."""
    made = hashlib.sha256()
    files = (path for folder in _INPUTS for path in (top / folder).rglob("*") if path.is_file())
    for path in sorted(path for path in files if "__pycache__" not in path.parts and path.name != "survivors.txt"):
        made.update(str(path.relative_to(top)).encode() + b"\0" + path.read_bytes())
    return made.hexdigest()[:16]
