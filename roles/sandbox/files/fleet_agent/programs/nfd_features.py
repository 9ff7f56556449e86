# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Feature discovery and rules of node-feature-discovery v0.19, the part that GPU fleets use. Pure except for the given view."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from typing import Any

PREFIX = "feature.node.kubernetes.io/"
PCI_CLASSES = ("03", "0b40", "12")
PCI_FIELDS = ("class", "vendor")


def discover(view: Any, spec: Any, sources: Sequence[str]) -> dict[str, Any]:
    """NodeFeature's spec.features: what the worker reads through its mounts (/host-sys, /host-etc). The kernel's name is from a system call."""
    flags: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    instances: dict[str, Any] = {}

    def desired(name: str) -> bool:
        return ("all" in sources and f"-{name}" not in sources) or name in sources

    if desired("kernel"):
        numbers = [*re.split(r"[.\-+]", spec.kernel), "", "", ""][:3]
        attributes["kernel.version"] = {
            "elements": {"full": spec.kernel, "major": numbers[0], "minor": numbers[1], "revision": numbers[2]}
        }
        flags["kernel.loadedmodule"] = {"elements": {}}
    if desired("system") and view.is_file("/host-etc/os-release"):
        release = dict(line.split("=", 1) for line in view.read("/host-etc/os-release").splitlines() if "=" in line)
        version = release.get("VERSION_ID", "").strip('"')
        major, _dot, minor = version.partition(".")
        attributes["system.osrelease"] = {
            "elements": {
                "ID": release.get("ID", "").strip('"'),
                "VERSION_ID": version,
                "VERSION_ID.major": major,
                "VERSION_ID.minor": minor,
            }
        }
        attributes["system.name"] = {"elements": {"nodename": spec.name}}
    if desired("cpu"):
        vendor = (
            "Intel"
            if spec.image_arch == "amd64"
            else "NVIDIA"
            if spec.gpu and spec.gpu.product.lower().startswith("tegra")
            else "ARM"
        )
        attributes["cpu.model"] = {"elements": {"vendor_id": vendor, "family": "6", "id": "143"}}
        attributes["cpu.topology"] = {"elements": {"hardware_multithreading": "true", "socket_count": "2"}}
    if desired("memory"):
        attributes["memory.numa"] = {"elements": {"is_numa": "true", "node_count": "2"}}
    if desired("pci"):
        instances["pci.device"] = {"elements": pci_devices(view)}
    if desired("local"):
        local = local_labels(view)
        attributes["local.label"] = {"elements": local}
        attributes["local.feature"] = {"elements": local}
    return {"flags": flags, "attributes": attributes, "instances": instances}


def without(features: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Features but for those that core.noPublishFeatures names, exactly or by a prefix with an asterisk."""

    def published(name: str) -> bool:
        return not any(name.startswith(key[:-1]) if key.endswith("*") else name == key for key in keys)

    return {
        kind: {name: group for name, group in groups.items() if published(name)} for kind, groups in features.items()
    }


def pci_devices(view: Any) -> list[dict[str, Any]]:
    base = "/host-sys/bus/pci/devices"
    found = []
    for name in view.names(base) if view.is_folder(base) else []:
        files = {
            field: view.read(f"{base}/{name}/{field}").strip().removeprefix("0x")
            for field in ("class", "vendor", "device", "subsystem_vendor", "subsystem_device")
            if view.is_file(f"{base}/{name}/{field}")
        }
        files["class"] = files.get("class", "")[:4]
        found.append({"attributes": files})
    return found


def local_labels(view: Any) -> dict[str, str]:
    """features.d files: key=value lines; comments are directives or nothing."""
    folder = "/etc/kubernetes/node-feature-discovery/features.d"
    found: dict[str, str] = {}
    for name in view.names(folder) if view.is_folder(folder) else []:
        if not name.startswith(".") and view.is_file(f"{folder}/{name}"):
            for line in view.read(f"{folder}/{name}").splitlines():
                if line.strip() and not line.startswith("#"):
                    key, equals, value = line.strip().partition("=")
                    found[key] = value if equals else "true"
    return found


def labels(features: dict[str, Any], config: dict[str, Any], label_sources: Sequence[str]) -> dict[str, str]:
    """Labels of the label sources, without the default prefix, as spec.labels holds them."""
    found: dict[str, str] = {}

    def desired(name: str) -> bool:
        return ("all" in label_sources and f"-{name}" not in label_sources) or name in label_sources

    attributes = {k: v["elements"] for k, v in features["attributes"].items()}
    if desired("kernel"):
        found.update({f"kernel-version.{k}": v for k, v in attributes.get("kernel.version", {}).items() if v})
    if desired("system"):
        found.update({f"system-os_release.{k}": v for k, v in attributes.get("system.osrelease", {}).items() if v})
    if desired("cpu"):
        found.update({f"cpu-model.{k}": v for k, v in attributes.get("cpu.model", {}).items()})
        found["cpu-hardware_multithreading"] = "true"
    if desired("memory") and attributes.get("memory.numa"):
        found["memory-numa"] = "true"
    if desired("pci"):
        found.update(_pci_labels(features, (config.get("sources") or {}).get("pci") or {}))
    if desired("local"):
        found.update(attributes.get("local.label", {}))
    pattern = (config.get("core") or {}).get("labelWhiteList")
    return {k: v for k, v in found.items() if not pattern or re.search(pattern, k)}


def _pci_labels(features: dict[str, Any], options: dict[str, Any]) -> dict[str, str]:
    fields = options.get("deviceLabelFields") or list(PCI_FIELDS)
    valid = [f for f in ("class", "vendor", "device", "subsystem_vendor", "subsystem_device") if f in fields] or list(
        PCI_FIELDS
    )
    classes = [str(c).lower() for c in options.get("deviceClassWhitelist") or PCI_CLASSES]
    found = {}
    for device in features["instances"].get("pci.device", {}).get("elements", []):
        values = device["attributes"]
        if any(values.get("class", "").startswith(c) for c in classes):
            found["pci-" + "_".join(values.get(f, "") for f in valid) + ".present"] = "true"
    return found


# -- rules


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def matches(expression: dict[str, Any], value: str | None) -> bool:
    """One MatchExpression on a value (None: missing)."""
    operator, desired = expression.get("op", ""), [str(v) for v in expression.get("value") or []]
    if operator == "DoesNotExist":
        return value is None
    if operator == "MatchAny":
        return True
    if value is None:
        return False
    simple = {
        "Exists": True,
        "In": value in desired,
        "NotIn": value not in desired,
        "IsTrue": value == "true",
        "IsFalse": value == "false",
    }
    if operator in simple:
        return simple[operator]
    if operator == "InRegexp":
        return any(re.search(pattern, value) for pattern in desired)
    number, limits = _number(value), [_number(word) for word in desired]
    if number is None or not limits or any(limit is None for limit in limits):
        return False
    first, last = int(limits[0] or 0), int(limits[-1] or 0)
    return {
        "Gt": number > first,
        "Ge": number >= first,
        "Lt": number < first,
        "Le": number <= first,
        "GtLt": first < number < last,
    }.get(operator, False)


def _term(term: dict[str, Any], features: dict[str, Any]) -> bool:
    name = term["feature"]
    expressions = term.get("matchExpressions") or {}
    pattern = term.get("matchName")
    if name in features.get("instances", {}):
        elements = [e.get("attributes") or {} for e in features["instances"][name].get("elements") or []]
        return any(all(matches(e, element.get(k)) for k, e in expressions.items()) for element in elements)
    kind = (
        "attributes" if name in features.get("attributes", {}) else "flags" if name in features.get("flags", {}) else ""
    )
    if not kind:
        return False
    values = {k: (v if kind == "attributes" else "") for k, v in (features[kind][name].get("elements") or {}).items()}
    if pattern and not any(matches(pattern, key) for key in values):
        return False
    return all(matches(e, values.get(k)) for k, e in expressions.items())


def rule_output(rule: dict[str, Any], features: dict[str, Any]) -> dict[str, Any] | None:
    """labels, annotations, extendedResources and taints of a rule of a NodeFeatureRule, or None when it does not match."""
    if not all(_term(t, features) for t in rule.get("matchFeatures") or []):
        return None
    alternatives = rule.get("matchAny") or []
    if alternatives and not any(all(_term(t, features) for t in a.get("matchFeatures") or []) for a in alternatives):
        return None
    given = {str(k): str(v) for k, v in (rule.get("labels") or {}).items()}
    return {
        "labels": {k: _resolve(v, features) for k, v in given.items()},
        "annotations": rule.get("annotations") or {},
        "extendedResources": {k: _resolve(str(v), features) for k, v in (rule.get("extendedResources") or {}).items()},
        "taints": rule.get("taints") or [],
        "vars": rule.get("vars") or {},
    }


def _resolve(value: str, features: dict[str, Any]) -> str:
    """@feature.element is replaced by the element's value."""
    if not value.startswith("@"):
        return value
    feature, _dot, element = value[1:].rpartition(".")
    return str(((features.get("attributes") or {}).get(feature) or {}).get("elements", {}).get(element, value))


def merge(objects: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Features and labels of all NodeFeature objects of a node, in the order of their names."""
    features: dict[str, Any] = {"flags": {}, "attributes": {}, "instances": {}}
    found: dict[str, str] = {}
    for item in sorted(objects, key=lambda o: (o["metadata"].get("namespace", ""), o["metadata"]["name"])):
        spec = item.get("spec") or {}
        found.update(spec.get("labels") or {})
        own = spec.get("features") or {}
        for kind in ("flags", "attributes"):
            for name, group in (own.get(kind) or {}).items():
                features[kind].setdefault(name, {"elements": {}})["elements"].update(group.get("elements") or {})
        for name, group in (own.get("instances") or {}).items():
            features["instances"].setdefault(name, {"elements": []})["elements"].extend(group.get("elements") or [])
    return features, found


def qualified(found: dict[str, str]) -> dict[str, str]:
    """Labels with the default prefix, without those that nfd-master refuses."""
    result = {}
    for key, value in found.items():
        name = key if "/" in key else PREFIX + key
        namespace = name.partition("/")[0]
        if namespace == "kubernetes.io" or (
            namespace.endswith(".kubernetes.io")
            and not namespace.endswith("feature.node.kubernetes.io")
            and not namespace.endswith("profile.node.kubernetes.io")
        ):
            continue
        if re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?", str(value)):
            result[name] = str(value)
    return result


def denied(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name.partition("/")[0], p) for p in patterns)
