# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every single mutation of every leaf of an object, in a fixed order.

    for mutant in mutants("driver", objects, called):
        broken = mutated(objects[mutant.index], mutant)

A string is emptied, changed, and replaced by another legal value where its schema knows some. A number is raised by one, a Boolean inverted. A key and
an element of a list are dropped, with all below them. What the whole text of a script or of a configuration is, is one leaf.
"""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import random
import re
import typing as t

from ansible_collections.hwaccel.gpu.tests.live.mutations.legal import another

Obj = dict[str, t.Any]
Path = tuple[str | int, ...]

EMPTIED, CHANGED, OTHER, DROPPED = "emptied", "changed", "other", "dropped"
#: A line of a script or of a configuration that has a meaning.
_LINE = re.compile(r"^(?!\s*#)(?=.*\S).*$", re.MULTILINE)
_KEPT = frozenset((("apiVersion",), ("kind",), ("metadata",)))


@dataclasses.dataclass(frozen=True)
class Mutant:
    """index: of the object in its role. value: the new one, None if the key or element is dropped."""

    role: str
    kind: str
    name: str
    index: int
    path: Path
    change: str
    value: t.Any = None

    @property
    def leaf(self) -> str:
        return f"{self.role}/{self.kind}/{self.name}{pointer(self.path)}"

    @property
    def id(self) -> str:
        return f"{self.leaf} {self.change}"


def pointer(path: Path) -> str:
    """RFC 6901."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def mutants(role: str, objects: c.Sequence[Obj], called: c.Callable[[Obj], str]) -> list[Mutant]:
    """All mutants of the objects of a role, in the order of objects and fields. called: the name of an object in the ids."""
    return [
        Mutant(role, item["kind"], called(item), index, path, change, value)
        for index, item in enumerate(objects)
        for path, change, value in _of(item, ())
    ]


def sample(found: c.Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """The same ones for the same seed, in their own order."""
    chosen = random.Random(seed).sample(range(len(found)), min(count, len(found)))
    return [found[place] for place in sorted(chosen)]


def mutated(item: Obj, mutant: Mutant) -> Obj:
    """The object with this mutation; all else is as it was."""
    made = copy.deepcopy(item)
    parent, last = at(made, mutant.path[:-1]), mutant.path[-1]
    if mutant.change == DROPPED:
        del parent[last]
    else:
        parent[last] = mutant.value
    return made


def at(item: t.Any, path: Path) -> t.Any:
    for part in path:
        item = item[part]
    return item


def _of(value: t.Any, path: Path) -> c.Iterator[tuple[Path, str, t.Any]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if below is not None:
        for key, one in below:
            yield from _of(one, (*path, key))
    else:
        for change, new in _values(path, value):
            yield path, change, new
    if path and path not in _KEPT:
        yield path, DROPPED, None


def _values(path: Path, value: t.Any) -> c.Iterator[tuple[str, t.Any]]:
    if isinstance(value, bool):
        yield CHANGED, not value
    elif isinstance(value, (int, float)):
        yield CHANGED, value + 1
    elif isinstance(value, str):
        if value:
            yield EMPTIED, ""
        yield CHANGED, changed(value)
        if (legal := another(path, value)) is not None:
            yield OTHER, legal


def changed(text: str) -> str:
    """With a letter too many: at the end, or of a text of several lines at the end of its first line that has a meaning."""
    line = _LINE.search(text) if "\n" in text.rstrip("\n") else None
    place = line.end() if line else len(text)
    return f"{text[:place]}x{text[place:]}"
