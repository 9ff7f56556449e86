# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is recorded of each comparison: fields/*.yml, with sources.yml and reasons.yml."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import json
import pathlib
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.upstream import objects
from ansible_collections.hwaccel.gpu.tests.upstream.objects import ABSENT, Fields

HERE = pathlib.Path(__file__).parent
HEAD = """# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
---
# Written by `make upstream`: change the reasons here, and nothing else. Values are [theirs, ours], null is a field that is not there.
"""
#: A longer line is broken.
_WIDTH = 150


@dataclasses.dataclass
class Compared:
    """same: value by field. different: theirs and ours, by field. reasons: name of the reason, by field that differs."""

    title: str
    same: Fields
    different: dict[str, tuple[t.Any, t.Any]]
    reasons: dict[str, str]
    digest: str

    @property
    def theirs(self) -> Fields:
        pairs = {path: one for path, (one, _ours) in self.different.items()}
        return {path: value for path, value in (self.same | pairs).items() if value is not ABSENT}

    @property
    def ours(self) -> Fields:
        pairs = {path: one for path, (_theirs, one) in self.different.items()}
        return {path: value for path, value in (self.same | pairs).items() if value is not ABSENT}


@functools.cache
def load(name: str, folder: pathlib.Path = HERE) -> t.Any:
    return yaml.safe_load((folder / f"{name}.yml").read_text(encoding="utf-8"))


def pairs(component: c.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    return [{"role": component["role"], **pair} for pair in component["pairs"]]


@functools.cache
def read(component: str, folder: pathlib.Path = HERE) -> dict[str, Compared]:
    """What is recorded, by title."""
    path = folder / "fields" / f"{component}.yml"
    if not path.exists():
        return {}
    return {
        title: Compared(
            title,
            one["same"] or {},
            {path: tuple(values) for rows in (one["different"] or {}).values() for path, values in rows.items()},
            {path: reason for reason, rows in (one["different"] or {}).items() for path in rows},
            one["theirs"],
        )
        for title, one in yaml.safe_load(path.read_text(encoding="utf-8")).items()
    }


def compared(title: str, their_fields: Fields, our_fields: Fields, known: Compared | None) -> Compared:
    """A difference keeps the reason that is recorded for its field."""
    paths = sorted(their_fields.keys() | our_fields.keys())
    values = {path: (their_fields.get(path, ABSENT), our_fields.get(path, ABSENT)) for path in paths}
    different = {path: both for path, both in values.items() if both[0] != both[1]}
    return Compared(
        title,
        {path: both[0] for path, both in values.items() if path not in different},
        different,
        {path: known.reasons.get(path, "") if known else "" for path in different},
        objects.digest(their_fields),
    )


def written(found: c.Iterable[Compared]) -> str:
    lines = [HEAD.rstrip()]
    for one in found:
        lines += [f"{json.dumps(one.title)}:", f"  theirs: {json.dumps(one.digest)}"]
        lines += ["  same:" if one.same else "  same: {}", *_lines(one.same, 4)]
        lines += ["  different:" if one.different else "  different: {}"]
        for reason in sorted(set(one.reasons.values())):
            rows = {path: list(values) for path, values in one.different.items() if one.reasons[path] == reason}
            lines += [f"    {reason or json.dumps(reason)}:", *_lines(rows, 6)]
    return "\n".join(lines) + "\n"


def _lines(values: c.Mapping[str, t.Any], indent: int) -> list[str]:
    lines = []
    for path, value in values.items():
        head, body = " " * indent + json.dumps(path) + ":", json.dumps(value, ensure_ascii=False)
        if len(head) + 1 + len(body) <= _WIDTH:
            lines.append(f"{head} {body}")
        elif isinstance(value, list):
            lines += [head, *(line for one in value for line in _item(one, indent + 2))]
        else:
            lines += [head, *_item(value, indent + 2, "")]
    return lines


def _item(value: t.Any, indent: int, mark: str = "- ") -> list[str]:
    """A value of a list, or of a key, on lines of its own."""
    text = yaml.safe_dump(value, default_flow_style=True, width=110, sort_keys=False, allow_unicode=True)
    first, *more = text.removesuffix("...\n").strip().splitlines()
    return [" " * indent + mark + first, *(" " * (indent + 2) + line for line in more)]
