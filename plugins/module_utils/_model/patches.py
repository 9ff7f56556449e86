# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patches of manifests: JSON merge patches and RFC 6902."""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import fnmatch
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.manifests import Manifest, duplicates, load

_TARGET_KEYS = ("kind", "name", "namespace")
#: Operations with the keys that each needs in addition to its path.
_OPERATIONS = {
    "add": ("value",),
    "remove": (),
    "replace": ("value",),
    "move": ("from",),
    "copy": ("from",),
    "test": ("value",),
}


@dataclasses.dataclass(frozen=True)
class Patch:
    """target: shell patterns by kind, name, namespace; a missing one matches all. operations: a mapping is a merge patch, a list is RFC 6902."""

    target: dict[str, str]
    operations: dict[str, t.Any] | list[t.Any]
    origin: str

    def matches(self, manifest: Manifest) -> bool:
        key = manifest.key
        actual = {"kind": key.kind, "name": key.name, "namespace": key.namespace}
        return all(fnmatch.fnmatchcase(actual[field], pattern) for field, pattern in self.target.items())


def read(raw: t.Any, called: str = "") -> tuple[list[Patch], list[Fault]]:
    """Patches from the user's values; every invalid one is an error. called: the variable that has them."""
    patches: list[Patch] = []
    faults: list[Fault] = []
    if raw and not isinstance(raw, (list, tuple)):
        return [], [
            Fault(
                f"{values.shown(raw)} is not a list of patches",
                called or "patches",
                "",
                "set a list: - target: {kind: …}",
            )
        ]
    for number, entry in enumerate(raw or (), start=1):
        origin = f"{called}[{number - 1}]" if called else f"patches, entry {number}"
        why = _shape_fault(entry)
        if why:
            faults.append(
                Fault(
                    "a patch is invalid",
                    origin,
                    why,
                    "set {target: {kind, name, namespace}, patch: mapping or list}",
                )
            )
            continue
        target = {field: str(value) for field, value in entry["target"].items() if value not in (None, "")}
        patches.append(Patch(target, entry["patch"], origin))
    return patches, faults


def _shape_fault(entry: t.Any) -> str:
    if not isinstance(entry, dict):
        return "it is not a mapping"
    target, patch = entry.get("target"), entry.get("patch")
    if not isinstance(target, dict) or not target.get("kind"):
        return "target has no kind"
    unknown = sorted(str(key) for key in set(target) - set(_TARGET_KEYS)) + sorted(
        str(key) for key in set(entry) - {"target", "patch"}
    )
    if unknown:
        meant = values.near(unknown[0], (*_TARGET_KEYS, "target", "patch"))
        return f"it has the unknown key {unknown[0]!r}" + (f", {meant}" if meant else "")
    if not isinstance(patch, (dict, list)) or not patch:
        return "patch is neither a mapping (JSON merge patch) nor a list (RFC 6902), or is empty"
    return next(filter(None, map(_operation_fault, patch)), "") if isinstance(patch, list) else ""


def _operation_fault(operation: t.Any) -> str:
    """RFC 6902, section 4."""
    if not isinstance(operation, dict):
        return f"{values.shown(operation)} is not an operation of RFC 6902, which has op and path"
    op, path = operation.get("op"), operation.get("path")
    if op not in _OPERATIONS:
        meant = values.near(op, _OPERATIONS)
        return (
            f"op {values.shown(op)} is unknown{', ' + meant if meant else ''} (RFC 6902 has {', '.join(_OPERATIONS)})"
        )
    if not isinstance(path, str) or not (path == "" or path.startswith("/")):
        return f"the path of {op} does not begin with a slash"
    missing = [key for key in _OPERATIONS[op] if key not in operation]
    return f"{op} {path} has no {missing[0]}" if missing else ""


def apply_all(manifests: c.Sequence[Manifest], patches: c.Sequence[Patch]) -> tuple[list[Manifest], list[Fault]]:
    """Every manifest after every patch that matches it, in order. A patch that matches no object, or makes one invalid, is an error."""
    faults: list[Fault] = []
    result = list(manifests)
    for patch in patches:
        matched = [index for index, manifest in enumerate(result) if patch.matches(manifest)]
        if not matched:
            text = ", ".join(f"{field} {pattern}" for field, pattern in patch.target.items())
            faults.append(
                Fault(
                    "a patch matches no object of the set",
                    patch.origin,
                    f"target is {text}",
                    "correct the target or remove the patch",
                )
            )
        for index in matched:
            patched = _apply_one(result[index], patch)
            if isinstance(patched, Fault):
                faults.append(patched)
            else:
                result[index] = patched
    return result, faults + (duplicates(result) if patches else [])


def _apply_one(manifest: Manifest, patch: Patch) -> Manifest | Fault:
    if isinstance(patch.operations, dict):
        body: t.Any = merge(manifest.body, patch.operations)
    else:
        body, why = _json_patch(manifest.body, patch.operations)
        if why:
            return Fault(f"a patch cannot be applied to {manifest.title}", patch.origin, why, "correct the patch")
    checked, faults = load([body])
    if len(checked) != 1 or faults or checked[0].key.kind != manifest.key.kind:
        why = faults[0].why or faults[0].what if faults else "it changes the kind"
        return Fault(f"a patch makes {manifest.title} invalid", patch.origin, why, "correct the patch")
    return Manifest(checked[0].key, checked[0].body, manifest.origin)


def merge(target: t.Any, patch: t.Any) -> t.Any:
    """JSON merge patch (RFC 7396): null removes. Neither argument is changed."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def _json_patch(body: dict[str, t.Any], operations: list[t.Any]) -> tuple[t.Any, str]:
    try:
        import jsonpatch
        import jsonpointer
    except ImportError:
        return None, "the Python library jsonpatch is missing on the host that runs this module"
    try:
        return jsonpatch.apply_patch(copy.deepcopy(body), operations), ""
    except (
        jsonpatch.JsonPatchException,
        jsonpointer.JsonPointerException,
        TypeError,
        KeyError,
        ValueError,
        IndexError,
        AttributeError,
    ) as error:
        if body["kind"] == "Secret":
            return (
                None,
                f"{type(error).__name__}, the message is not shown because it could contain the Secret's values",
            )
        return None, " ".join(str(error).split())[:300] or type(error).__name__
