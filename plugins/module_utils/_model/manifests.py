# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Definitions of a set as manifests: flattened and validated, each with its origin."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import math
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.yamltext import Document, documents

#: Deeper than any schema, shallower than Python's recursion limit.
_MAX_DEPTH = 200
#: A document with aliases that refer to each other would expand without limit.
_MAX_NODES = 1_000_000

_NAME = re.compile(r"[^/%?#\s\x00-\x1f\x7f]{1,253}")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_API_VERSION = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")

#: Fields of the core group whose values are strings. The server's own message would show the value, which can be that of a Secret.
_TEXT_FIELDS = {"Secret": ("data", "stringData"), "ConfigMap": ("data", "binaryData")}


@dataclasses.dataclass(frozen=True)
class Manifest:
    """One object of the definition. body must not be changed in place."""

    key: ObjectKey
    body: dict[str, t.Any]
    origin: str

    @property
    def api_version(self) -> str:
        return str(self.body["apiVersion"])

    @property
    def title(self) -> str:
        return self.key.short


def load(definition: t.Any, texts: c.Iterable[tuple[str, str]] = ()) -> tuple[list[Manifest], list[Fault]]:
    """Every object of a definition (text, mapping, or a list of these) and of (origin, text) pairs, and all errors in them."""
    found: list[Document] = []
    faults: list[Fault] = []
    sources: list[tuple[str, t.Any]] = list(texts)
    if definition is not None:
        entries = definition if isinstance(definition, (list, tuple)) else [definition]
        plural = len(entries) > 1
        sources += [
            (f"definition, entry {number}" if plural else "definition", entry)
            for number, entry in enumerate(entries, start=1)
        ]
    for origin, source in sources:
        if isinstance(source, str):
            read, wrong = documents(source, origin)
            found += read
            faults += wrong
        else:
            found.append(Document(source, origin))
    manifests: list[Manifest] = []
    for document in found:
        _collect(document, manifests, faults)
    return manifests, faults + duplicates(manifests)


def duplicates(manifests: c.Iterable[Manifest]) -> list[Fault]:
    """The same group, kind, namespace and name must not occur twice, in any version of the kind."""
    places: dict[ObjectKey, list[str]] = {}
    for manifest in manifests:
        places.setdefault(manifest.key, []).append(manifest.origin)
    return [
        Fault(
            f"{key.short} is defined {len(origins)} times",
            "; ".join(origins),
            "an object can be in a set once",
            "remove all but one",
        )
        for key, origins in places.items()
        if len(origins) > 1
    ]


def _collect(document: Document, manifests: list[Manifest], faults: list[Fault]) -> None:
    """Flattens one document. An empty one (a comment between two separators) is ignored."""
    value, origin = document.value, document.origin
    if value is None:
        return
    if not (wrong := json_fault(value, origin)) and isinstance(value, (list, tuple)):
        for number, item in enumerate(value, start=1):
            _collect(Document(item, f"{origin}, item {number}"), manifests, faults)
        return
    wrong = wrong or _object_fault(value, origin)
    if wrong:
        faults.append(wrong)
        return
    if str(value["kind"]).endswith("List") and isinstance(value.get("items"), (list, tuple)):
        for number, item in enumerate(value["items"], start=1):
            _collect(Document(_typed_item(value, item), f"{origin}, item {number}"), manifests, faults)
        return
    wrong = _metadata_fault(value, origin)
    if wrong:
        faults.append(wrong)
        return
    manifest = Manifest(ObjectKey.of(value), value, origin)
    manifests.append(manifest)
    faults += _text_faults(manifest)


def _typed_item(outer: dict[str, t.Any], item: t.Any) -> t.Any:
    """Items of a typed list (ConfigMapList) may omit their type."""
    if not isinstance(item, dict) or outer["kind"] == "List" or "kind" in item:
        return item
    return {"apiVersion": outer["apiVersion"], "kind": outer["kind"].removesuffix("List"), **item}


def _object_fault(value: t.Any, origin: str) -> Fault | None:
    if not isinstance(value, dict):
        return Fault(
            "a manifest is not a mapping",
            origin,
            f"it is a {type(value).__name__}",
            "write objects with apiVersion, kind and metadata",
        )
    for field, pattern in (("apiVersion", _API_VERSION), ("kind", _KIND)):
        if not isinstance(value.get(field), str) or not pattern.fullmatch(value[field]):
            text = f"it is {value[field]!r:.80}" if field in value else "it is missing"
            return Fault(
                f"{field} of a manifest is invalid",
                origin,
                text,
                f"set {field}, for example {'apps/v1' if field == 'apiVersion' else 'DaemonSet'}",
            )
    return None


def _metadata_fault(value: dict[str, t.Any], origin: str) -> Fault | None:
    metadata = value.get("metadata")
    kind = value["kind"]
    if not isinstance(metadata, dict):
        return Fault(f"a {kind} has no metadata", origin, next_step="set metadata.name")
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (".", ".."):
        why = (
            "generateName would create another object in each run"
            if "generateName" in metadata and not name
            else f"it is {values.shown(name)}"
        )
        return Fault(f"metadata.name of a {kind} is invalid", origin, why, "set a fixed name")
    if namespace is not None and (
        not isinstance(namespace, str) or (namespace and not _NAMESPACE.fullmatch(namespace))
    ):
        return Fault(
            f"metadata.namespace of {kind} {name} is invalid",
            origin,
            f"it is {namespace!r:.80}",
            "set the name of a namespace",
        )
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field) or {}, dict):
            return Fault(
                f"metadata.{field} of {kind} {name} is not a mapping", origin, next_step="write names and values"
            )
    if (value["apiVersion"], kind) == ("v1", "Node"):
        return Fault(
            f"Node {name} cannot be in a set",
            origin,
            "a Node belongs to its kubelet",
            "set labels of Nodes by other means",
        )
    return None


def _text_faults(manifest: Manifest) -> list[Fault]:
    """Values that must be strings and are not, by name and never by value. The server treats null as an empty string."""
    faults: list[Fault] = []
    fields = () if manifest.key.group else _TEXT_FIELDS.get(manifest.key.kind, ())
    for field in fields:
        values = manifest.body.get(field)
        if not isinstance(values, (dict, type(None))):
            why = f"{field} is {_json_type(values)}"
            faults.append(
                Fault(f"{field} of {manifest.title} is not a mapping", manifest.origin, why, "write names and strings")
            )
            continue
        for name, value in (values or {}).items():
            if not isinstance(value, (str, type(None))):
                why = f"{field}.{name} is {_json_type(value)}, as it is written"
                faults.append(
                    Fault(
                        f"{manifest.title} has a value that is not a string", manifest.origin, why, "put it in quotes"
                    )
                )
    return faults


def _json_type(value: t.Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, dict):
        return "a mapping"
    return "a string" if isinstance(value, str) else "a list"


def json_fault(value: t.Any, origin: str) -> Fault | None:
    """Values that are valid in YAML but not in JSON: dates, numbers as keys, endless aliases."""
    pending: list[tuple[t.Any, str, int]] = [(value, "", 0)]
    nodes = 0
    while pending:
        item, path, depth = pending.pop()
        nodes += 1
        if depth > _MAX_DEPTH or nodes > _MAX_NODES:
            return Fault(
                "a manifest is too deep or too large",
                origin,
                "its YAML aliases refer to themselves or expand without limit",
                "write it without aliases",
            )
        why = _scalar_fault(item)
        if isinstance(item, dict):
            odd = next((key for key in item if not isinstance(key, str)), None)
            if odd is not None or any(not isinstance(key, str) for key in item):
                why = f"the key {odd!r} is not a string"
            pending += [(below, f"{path}.{key}", depth + 1) for key, below in item.items()]
        elif isinstance(item, (list, tuple)):
            pending += [(below, f"{path}[{index}]", depth + 1) for index, below in enumerate(item)]
        if why:
            return Fault(
                "a manifest has a value that is invalid in JSON",
                f"{origin}, at {path.removeprefix('.') or 'the top'}",
                why,
                "put it in quotes",
            )
    return None


def _scalar_fault(item: t.Any) -> str:
    if item is None or isinstance(item, (bool, int, dict, list, tuple)):
        return ""
    if isinstance(item, float):
        return "" if math.isfinite(item) else f"{item!r} is not a finite number"
    if isinstance(item, str):
        return "" if item.isascii() or _encodable(item) else "the string is not valid Unicode"
    return f"it is a {type(item).__name__}"


def _encodable(item: str) -> bool:
    try:
        item.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
