# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An object of Kubernetes as fields: a path and a value each, so that objects of two projects can be compared line by line.

Elements of lists whose order has no meaning are known by their key: environment variables by name, mounts by path, tolerations by the taint's key,
rules by resource. A mount, a volume, a toleration and a requirement of labels are one value each. The name of a volume is known within its pod only, so a
volume is known by its source, and a mount names that source.
"""

from __future__ import annotations

import collections.abc as c
import hashlib
import json
import typing as t

import yaml

Object = dict[str, t.Any]
Fields = dict[str, t.Any]

#: The field is not there. YAML's null, which no field of these objects has.
ABSENT = None
#: Keys of the elements of a list, by the list's name.
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumeMounts": "mountPath",
    "env": "name",
    "matchExpressions": "key",
    "tolerations": "key",
    "versions": "name",
}
#: Lists whose elements are one value each.
_WHOLE = ("env", "volumeMounts", "volumes", "tolerations", "matchExpressions")
#: Parts of long paths that say nothing.
_SHORTER = {
    "DuringSchedulingIgnoredDuringExecution": "",
    ".openAPIV3Schema.properties.": ".",
    ".openAPIV3Schema.": ".",
    ".properties.": ".",
}
_POD = "spec.template.spec."


def fields(obj: Object, containers: c.Mapping[str, str] | None = None) -> Fields:
    """containers: names of containers and the names under which they are compared."""
    found: Fields = {}
    _walk("", _prepared(obj), found, containers or {})
    return {_short(path): value for path, value in found.items()}


def rights(rules: c.Iterable[tuple[bool, Object]]) -> Fields:
    """What an account may do: verbs by resource. rules: whether a rule is the cluster's, and the rule."""
    found: dict[str, set[str]] = {}
    for cluster, rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                only = f" {', '.join(rule['resourceNames'])}" if rule.get("resourceNames") else ""
                name = f"{resource}.{group}".rstrip(".") + only
                found.setdefault(f"{'cluster' if cluster else 'namespace'}[{name}]", set()).update(rule["verbs"])
    return {path: sorted(verbs) for path, verbs in found.items()}


def digest(value: t.Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def text_of(content: str) -> str:
    """A script or a file in a manifest: its size and digest, because texts of others are not copied."""
    return f"text of {len(content.splitlines())} lines, {digest(content)}"


def _short(path: str) -> str:
    path = "pod." + path.removeprefix(_POD) if path.startswith(_POD) else path
    for long, short in _SHORTER.items():
        path = path.replace(long, short)
    return path


def _prepared(obj: Object) -> Object:
    """Configuration of Node Feature Discovery and of the device plugin is YAML within YAML, and is compared as such. A schema has no descriptions."""
    if obj.get("kind") == "ConfigMap":
        data = {
            name: (yaml.safe_load(text) or {}) if name.endswith((".conf", ".yaml")) else text
            for name, text in (obj.get("data") or {}).items()
        }
        return {**obj, "data": data}
    return t.cast("Object", _undescribed(obj)) if obj.get("kind") == "CustomResourceDefinition" else obj


def _undescribed(value: t.Any) -> t.Any:
    if isinstance(value, list):
        return [_undescribed(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: _undescribed(one) for key, one in value.items() if not (key == "description" and isinstance(one, str))}


def _walk(path: str, value: t.Any, found: Fields, containers: c.Mapping[str, str]) -> None:
    if isinstance(value, dict) and value:
        for key, one in _volumes_resolved(value).items():
            _walk(f"{path}.{key}" if path else str(key), one, found, containers)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        _walk_list(path, value, found, containers)
    else:
        found[path] = _leaf(path, value)


def _leaf(path: str, value: t.Any) -> t.Any:
    if isinstance(value, list):
        parts = [_leaf("", one) for one in value]
        return sorted(parts) if path.endswith(".required") else parts
    return text_of(value) if isinstance(value, str) and "\n" in value.strip() else value


def _walk_list(path: str, value: list[Object], found: Fields, containers: c.Mapping[str, str]) -> None:
    name = path.rpartition(".")[2]
    if name in ("containers", "initContainers"):
        value = [{**one, "called": one["name"]} for one in value]
        found[f"{path}.order"] = [containers.get(one["name"], one["name"]) for one in value]
    for index, one in enumerate(value):
        key = _key(name, one, index)
        shown = containers.get(key, key) if name in ("containers", "initContainers") else key
        rest = {field: part for field, part in one.items() if field not in (_KEYS.get(name), "source")}
        if name in _WHOLE:
            found[f"{path}[{shown}]"] = _env(one) if name == "env" else rest
        else:
            _walk(f"{path}[{shown}]", rest, found, containers)


def _key(name: str, one: Object, index: int) -> str:
    if name in _KEYS:
        return str(one.get(_KEYS[name], "*")).rstrip("/") or "/"
    if name == "ports":
        return str(one.get("containerPort", one.get("port")))
    if name == "volumes":
        return str(one["source"])
    return str(index)


def _env(one: Object) -> str:
    if "valueFrom" not in one:
        return str(one.get("value", ""))
    ((kind, where),) = one["valueFrom"].items()
    return f"{kind} {where.get('fieldPath') or where.get('resource')}"


def _volumes_resolved(spec: Object) -> Object:
    """Mounts of a pod name the source of their volume, and volumes are known by it."""
    if "containers" not in spec or "volumes" not in spec:
        return spec
    sources = {volume["name"]: _source(volume) for volume in spec["volumes"]}
    resolved = dict(spec)
    for kind in ("initContainers", "containers"):
        if kind in spec:
            resolved[kind] = [_mounts_resolved(container, sources) for container in spec[kind]]
    resolved["volumes"] = [
        {"source": _source(one), **{key: value for key, value in _content(one).items() if key not in ("path", "name")}}
        for one in spec["volumes"]
    ]
    return resolved


def _mounts_resolved(container: Object, sources: c.Mapping[str, str]) -> Object:
    if "volumeMounts" not in container:
        return container
    mounts = [
        {
            **{key: value for key, value in mount.items() if key != "name"},
            "of": sources.get(mount["name"], mount["name"]),
        }
        for mount in container["volumeMounts"]
    ]
    return {**container, "volumeMounts": mounts}


def _source(volume: Object) -> str:
    # A volume without a source is an empty folder.
    kind = next((key for key in volume if key != "name"), "emptyDir")
    return f"{kind} {_content(volume).get('path') or _content(volume).get('name') or volume['name']}"


def _content(volume: Object) -> Object:
    return next((value for key, value in volume.items() if key != "name"), {})
