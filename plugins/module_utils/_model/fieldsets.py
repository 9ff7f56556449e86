# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Owned fields as server-side apply writes them (`fieldsV1`), as plain sets of paths.

A path is a tuple of fieldsV1 keys: `f:<name>` a field, `k:{...}` a list element by its keys, `v:<value>` an element of a set,
`i:<n>` one by its index.
"""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

Path = tuple[str, ...]
FieldSet = frozenset[Path]

EMPTY: FieldSet = frozenset()


def parse(fields: c.Mapping[str, t.Any] | None) -> FieldSet:
    """The members of a fieldsV1 tree: a node with nothing below it, and each node marked with `.`."""
    members: list[Path] = []
    pending: list[tuple[Path, c.Mapping[str, t.Any]]] = [((), fields or {})]
    while pending:
        path, node = pending.pop()
        for key, below in node.items():
            if key == ".":
                if path:
                    members.append(path)
            elif below:
                pending.append(((*path, key), below))
            else:
                members.append((*path, key))
    return frozenset(members)


def unparse(members: FieldSet) -> dict[str, t.Any]:
    """The fieldsV1 tree of a set; `parse` reverses this."""
    root: dict[str, t.Any] = {}
    for path in sorted(members):
        node = root
        for depth, key in enumerate(path):
            if depth and not node and path[:depth] in members:
                node["."] = {}
            node = node.setdefault(key, {})
    return root


def union(sets: c.Iterable[FieldSet]) -> FieldSet:
    return EMPTY.union(*sets)


def contains(members: FieldSet, path: Path) -> bool:
    """Whether the set has a path, or an atomic list or map that contains it."""
    return any(path[:length] in members for length in range(1, len(path) + 1))


def covers(members: FieldSet, path: Path) -> bool:
    """Whether the set has the path, a parent or a child of it."""
    return contains(members, path) or any(member[: len(path)] == path for member in members)


def topmost(members: c.Iterable[Path]) -> list[Path]:
    """Without paths below another one, so that an added container is reported once, not with each of its fields."""
    kept: list[Path] = []
    seen: set[Path] = set()
    for path in sorted(members, key=lambda path: (len(path), path)):
        if not any(path[:length] in seen for length in range(1, len(path))):
            seen.add(path)
            kept.append(path)
    return sorted(kept)


def text(path: Path) -> str:
    """A path in the API server's format of conflicts, without the leading dot: `spec.containers[name="a"].image`."""
    return "".join(_element_text(element) for element in path).removeprefix(".")


def _element_text(element: str) -> str:
    kind, _separator, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        try:
            keys = json.loads(rest)
            return "[" + ",".join(f"{name}={_value_text(keys[name])}" for name in sorted(keys)) + "]"
        except (ValueError, AttributeError, TypeError):
            return f"[{rest}]"
    if kind == "v":
        try:
            return f"[={_value_text(json.loads(rest))}]"
        except ValueError:
            return f"[={rest}]"
    return f"[{rest}]"


def _value_text(value: t.Any) -> str:
    if value is None:
        return "null"
    return json.dumps(value, ensure_ascii=False)


def of_object(obj: c.Mapping[str, t.Any], manager: str, *, operation: str = "Apply") -> FieldSet:
    """What one manager owns of a live object, over all of its entries (there is one for each subresource)."""
    entries = (obj.get("metadata") or {}).get("managedFields") or ()
    return union(
        parse(entry.get("fieldsV1"))
        for entry in entries
        if entry.get("manager") == manager and entry.get("operation") == operation
    )


def of_manager(obj: c.Mapping[str, t.Any], manager: str, subresource: str) -> FieldSet:
    """What one manager owns of a live object through one subresource ("" for none), by any operation."""
    entries = [
        entry
        for entry in managers_of(obj)
        if entry.get("manager") == manager and (entry.get("subresource") or "") == subresource
    ]
    return union(parse(entry.get("fieldsV1")) for entry in entries)


def managers_of(obj: c.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """managedFields entries, oldest first."""
    entries = (obj.get("metadata") or {}).get("managedFields") or ()
    return sorted(entries, key=lambda entry: entry.get("time") or "")


def value_at(obj: t.Any, path: Path) -> t.Any:
    """The value that a path leads to, None if there is none."""
    for element in path:
        obj = _step(obj, element)
        if obj is None:
            return None
    return obj


def _step(value: t.Any, element: str) -> t.Any:
    kind, _separator, rest = element.partition(":")
    if kind == "f":
        return value.get(rest) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return None
    try:
        if kind == "k":
            keys = json.loads(rest)
            return next(
                (
                    item
                    for item in value
                    if isinstance(item, dict) and all(item.get(name) == keys[name] for name in keys)
                ),
                None,
            )
        if kind == "v":
            element = json.loads(rest)
            return element if element in value else None
        return value[int(rest)]
    except (ValueError, IndexError, AttributeError, TypeError):
        return None


def without_path(obj: dict[str, t.Any], path: Path) -> bool:
    """Removes one field from an object, in place. False if it does not exist or is not a plain field."""
    parent = value_at(obj, path[:-1])
    kind, _separator, name = path[-1].partition(":")
    if kind != "f" or not isinstance(parent, dict) or name not in parent:
        return False
    del parent[name]
    return True
