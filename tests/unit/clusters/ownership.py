# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ownership of fields (metadata.managedFields): the part of server-side apply that tests need for ownership and conflicts.

Maps are owned leaf by leaf, lists as a whole. Live tests cover the complete semantics.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Conflict

Obj = dict[str, t.Any]
IDENTITY = ("apiVersion", "kind")


def copied(value: t.Any) -> t.Any:
    """A deep copy of JSON data."""
    if isinstance(value, dict):
        return {key: copied(one) for key, one in value.items()}
    if isinstance(value, list):
        return [copied(one) for one in value]
    return value


def created(obj: Obj, manager: str) -> Obj:
    return obj | {"metadata": obj["metadata"] | {"managedFields": [_entry(manager, "Update", _leaves(obj))]}}


def updated(after: Obj, before: Obj, manager: str) -> None:
    """The manager of a replace or a patch owns the fields that it has changed and those that it owned before; other managers lose them."""
    old, new = _leaves(before), _leaves(after)
    touched = frozenset(path for path in new if path not in old or old[path] != new[path])
    removed = old.keys() - new.keys()
    entries, owned = [], touched
    for entry in before["metadata"].get("managedFields") or ():
        remaining = fieldsets.parse(entry.get("fieldsV1")) - touched - removed
        if (entry["manager"], entry.get("operation")) == (manager, "Update"):
            owned |= remaining
        elif remaining:
            entries.append(entry | {"fieldsV1": fieldsets.unparse(remaining)})
    entries += [_entry(manager, "Update", owned)] if owned else []
    after["metadata"]["managedFields"] = entries


def applied(requested: Obj, before: Obj | None, manager: str, *, force: bool) -> Obj:
    """The result of server-side apply. Raises Conflict, with a cause for each changed field of another manager."""
    fields, old = _leaves(requested), _leaves(before or {})
    entries = list((before or {"metadata": {}})["metadata"].get("managedFields") or ())
    others = [entry for entry in entries if (entry["manager"], entry["operation"]) != (manager, "Apply")]
    mine = fieldsets.of_object(before or {}, manager)
    causes, kept = [], []
    for entry in others:
        owned = fieldsets.parse(entry["fieldsV1"])
        lost = {path for path in owned & fields.keys() if old.get(path) != fields[path]}
        message = f'conflict with "{entry["manager"]}" using v1'
        causes += [
            {"reason": "FieldManagerConflict", "field": f".{fieldsets.text(path)}", "message": message}
            for path in sorted(lost)
        ]
        kept += [entry | {"fieldsV1": fieldsets.unparse(owned - lost)}] if owned - lost else []
    if causes and not force:
        raise Conflict("conflict", body={"details": {"causes": causes}})
    held = fieldsets.union(fieldsets.parse(entry["fieldsV1"]) for entry in kept)
    after: Obj = copied(before) if before else {key: requested[key] for key in IDENTITY} | {"metadata": {}}
    for path in mine - fields.keys() - held:
        fieldsets.without_path(after, path)
    for path, value in fields.items():
        _set(after, path, value)
    for key in ("name", "namespace"):
        if key in requested["metadata"]:
            after["metadata"][key] = requested["metadata"][key]
    after["metadata"]["managedFields"] = [*kept, _entry(manager, "Apply", fields)]
    return after


def _entry(manager: str, operation: str, paths: c.Iterable[fieldsets.Path]) -> Obj:
    return {"manager": manager, "operation": operation, "fieldsV1": fieldsets.unparse(frozenset(paths))}


def _leaves(obj: Obj, path: fieldsets.Path = ()) -> dict[fieldsets.Path, t.Any]:
    found: dict[fieldsets.Path, t.Any] = {}
    for key, value in obj.items():
        if not path and key in IDENTITY:
            continue
        if path == ("f:metadata",) and key not in ("labels", "annotations", "finalizers"):
            continue
        if isinstance(value, dict) and value:
            found |= _leaves(value, (*path, f"f:{key}"))
        else:
            found[(*path, f"f:{key}")] = value
    return found


def _set(obj: Obj, path: fieldsets.Path, value: t.Any) -> None:
    for element in path[:-1]:
        obj = obj.setdefault(element[2:], {})
    obj[path[-1][2:]] = copied(value)
