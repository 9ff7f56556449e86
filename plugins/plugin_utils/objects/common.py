# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by the plans of all roles: plain manifests in, complete objects and messages out.

A manifest of a role is complete except for values that depend on the fleet or on the source of images. These are set here.
"""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import hashlib
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.driver_matrix import object_name
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.waves import wave_of
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import updates

Manifest = dict[str, t.Any]

#: Annotation of pod templates, so that a change of configuration changes the template.
CONFIG_HASH = "hwaccel.gpu/config-hash"


@dataclasses.dataclass
class StagePlan:
    """objects: the desired ones. assumed: predicted from declarations only. unknown: cannot be predicted before a stage.

    notes: decisions for the user. faults: problems that prevent the run.
    """

    objects: list[Manifest] = dataclasses.field(default_factory=list)
    assumed: list[str] = dataclasses.field(default_factory=list)
    unknown: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    faults: list[Fault] = dataclasses.field(default_factory=list)

    def as_dict(
        self, provider: str, namespace: str = "", existing: c.Mapping[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        """namespace: of the pods that the gate reads, if another deployment provides them. existing: other deployments, by component."""
        assumed, unknown = sorted(set(self.assumed)), sorted(set(self.unknown))
        return {
            "provider": provider,
            "namespace": namespace,
            # Plain data is needed, because the input of a filter may have Ansible's own types.
            "existing": {
                component: [dict(entry) for entry in entries]
                for component, entries in (existing or {}).items()
                if entries
            },
            "namespaces": [one["metadata"]["name"] for one in self.objects if one["kind"] == "Namespace"],
            "objects": self.objects,
            "assumed": assumed,
            "unknown": unknown,
            "notes": self.notes,
            "messages": [
                *self.notes,
                *(f"assumed: {text}" for text in assumed),
                *(f"unknown: {text}" for text in unknown),
            ],
            "faults": [fault.as_dict() for fault in self.faults],
        }


@dataclasses.dataclass(frozen=True)
class Sources:
    """The source of images. registry: prefix that replaces the registry's host; pull_secrets: names."""

    registry: str = ""
    pull_secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: c.Mapping[str, t.Any]) -> Sources:
        secrets = settings.get("image_pull_secrets") or ()
        return cls(str(settings.get("image_registry") or "").rstrip("/"), tuple(str(name) for name in secrets))

    def image(self, reference: str) -> str:
        """nvcr.io/nvidia/driver:1 becomes <registry>/nvidia/driver:1; without a registry it is unchanged."""
        host, slash, rest = reference.partition("/")
        if not self.registry:
            return reference
        return f"{self.registry}/{rest if slash and ('.' in host or ':' in host or host == 'localhost') else reference}"


def take(manifests: c.Iterable[Manifest], kind: str, name: str) -> Manifest:
    """A copy of one manifest, so that a filter never changes its input."""
    for manifest in manifests:
        if manifest.get("kind") == kind and manifest["metadata"]["name"] == name:
            return copy.deepcopy(manifest)
    raise KeyError(f"the role has no manifest {kind} {name}")


def pod_template(manifest: Manifest) -> Manifest | None:
    """The pod template of a workload, None for other kinds."""
    return manifest["spec"]["template"] if manifest["kind"] in ("DaemonSet", "Deployment", "Job") else None


def containers(template: Manifest) -> list[Manifest]:
    return [*template["spec"].get("initContainers", ()), *template["spec"]["containers"]]


def finish(manifests: c.Iterable[Manifest], sources: Sources, part: str) -> list[Manifest]:
    """Sets owner labels, image sources, pull secrets and update limits of all objects, and sorts them in the order of applying.

    part: the role, as app.kubernetes.io/component.
    """
    return sorted((_finished(copy.deepcopy(manifest), sources, part) for manifest in manifests), key=_order)


def _order(manifest: Manifest) -> tuple[int, str, str, str]:
    group, slash, _version = manifest["apiVersion"].partition("/")
    metadata = manifest["metadata"]
    return (
        wave_of(group if slash else "", manifest["kind"]),
        manifest["kind"],
        metadata.get("namespace", ""),
        metadata["name"],
    )


def _finished(manifest: Manifest, sources: Sources, part: str) -> Manifest:
    _label(manifest["metadata"], part)
    updates.limit(manifest)
    template = pod_template(manifest)
    if template is not None:
        _label(template.setdefault("metadata", {}), part)
        for container in containers(template):
            container["image"] = sources.image(container["image"])
        if sources.pull_secrets:
            template["spec"]["imagePullSecrets"] = [{"name": name} for name in sources.pull_secrets]
    return manifest


def _label(metadata: Manifest, part: str) -> None:
    labels = metadata.setdefault("labels", {})
    labels.update(names.OWNER_LABELS)
    labels.setdefault("app.kubernetes.io/component", part)


def stamp(manifests: c.Iterable[Manifest]) -> None:
    """Sets the hash of the ConfigMaps that a workload mounts in its template, so that a new configuration restarts its pods."""
    found = list(manifests)
    data = {
        (one["metadata"].get("namespace", ""), one["metadata"]["name"]): one.get("data", {})
        for one in found
        if one["kind"] == "ConfigMap"
    }
    for manifest in found:
        template = pod_template(manifest)
        if template is None:
            continue
        namespace = manifest["metadata"].get("namespace", "")
        mounted = [
            volume["configMap"]["name"] for volume in template["spec"].get("volumes", ()) if "configMap" in volume
        ]
        used = {name: data[namespace, name] for name in mounted if (namespace, name) in data}
        if used:
            template.setdefault("metadata", {}).setdefault("annotations", {})[CONFIG_HASH] = digest(used)


def digest(value: t.Any, length: int = 16) -> str:
    """A hash that does not depend on the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:length]


def named(base: str, what: str) -> str:
    """<base>-<what> as the name of an object. Different values give different names."""
    plain = object_name(what, 20)
    return f"{base}-{plain}" if plain == what else f"{base}-{plain}-{digest(what, 5)}"


def set_env(container: Manifest, values: c.Mapping[str, str]) -> None:
    """Sets environment variables by name, and adds missing ones."""
    env = container.setdefault("env", [])
    for name, value in values.items():
        entry = next((one for one in env if one["name"] == name), None)
        if entry is None:
            env.append({"name": name, "value": value})
        else:
            entry.clear()
            entry.update({"name": name, "value": value})


def listed(value: t.Any) -> list[t.Any]:
    """A list from a value that may be unset or an empty survey answer."""
    if value is None or value == "":
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def text(value: t.Any) -> str:
    """ "" for unset values: None and empty survey answers."""
    return "" if value is None else str(value).strip()
