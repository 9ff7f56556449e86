# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Existing components of other deployments: NFD, device plugins, drivers, the GPU Operator, a RuntimeClass for GPU pods, monitoring.

They are recognized by the name of the image, with any registry and tag, because names of objects vary.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import UnknownKind
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource

_WORKLOADS = (
    Resource("apps", "v1", "DaemonSet", "daemonsets", True),
    Resource("apps", "v1", "Deployment", "deployments", True),
)
_RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False)
#: The name of the runtime of NVIDIA's toolkit in the configuration of containerd and CRI-O.
_HANDLER = "nvidia"
#: The set with the RuntimeClass of an installer, for an engine that does not know that handler.
_OF_INSTALLER = "cluster-runtime"
#: Objects of this collection are recognized by their field managers, not by a label, which can be copied.
OURS = "hwaccel.gpu/"
_COMPONENTS = {parts.PLUGIN: "device_plugin", parts.EXPORTER: "dcgm_exporter", parts.DRIVER: "driver"}


def components(client: Client) -> dict[str, list[dict[str, str]]]:
    """By component a list of {kind, namespace, name, image}, without those of this collection."""
    found: dict[str, list[dict[str, str]]] = {
        "nfd": [],
        "device_plugin": [],
        "driver": [],
        "cluster_policy": [],
        "runtime_class": [],
        "dcgm_exporter": [],
        "prometheus_operator": [],
    }
    for resource in _WORKLOADS:
        for page in client.pages(resource):
            for obj in page.items:
                for component, image in _components_of(obj).items():
                    found[component].append(_entry(resource.kind, obj, image))
    found["cluster_policy"] = list(_cluster_policies(client))
    found["prometheus_operator"] = list(_prometheus_operator(client))
    classes = [obj for page in client.pages(_RUNTIME_CLASSES) for obj in page.items]
    found["runtime_class"] = [_entry("RuntimeClass", obj, "") for obj in classes if _is_of_others(obj)]
    return {
        component: sorted(entries, key=lambda entry: (entry["namespace"], entry["name"], entry["kind"]))
        for component, entries in found.items()
    }


def _is_of_others(runtime_class: dict[str, t.Any]) -> bool:
    """Whether a RuntimeClass for GPU pods is there that is not that of the role driver."""
    sets = sets_of(runtime_class)
    return _OF_INSTALLER in sets if sets else runtime_class.get("handler") == _HANDLER


def _components_of(obj: dict[str, t.Any]) -> dict[str, str]:
    """Component -> image of one workload."""
    metadata = obj.get("metadata") or {}
    if sets_of(obj):
        return {}
    found: dict[str, str] = {}
    pod = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    installers = [
        one
        for one in pod.get("initContainers") or []
        if parts.INSTALLER_IMAGE.search(parts.image_base(str(one.get("image") or "")))
    ]
    for container in [*(pod.get("containers") or []), *installers]:
        component = _component(container, str(metadata.get("name") or ""))
        if component:
            found.setdefault(component, str(container.get("image") or ""))
    return found


def sets_of(obj: dict[str, t.Any]) -> list[str]:
    """Names of the sets of this collection that manage fields of an object."""
    managers = (str(entry.get("manager") or "") for entry in (obj.get("metadata") or {}).get("managedFields") or [])
    return [manager.removeprefix(OURS) for manager in managers if manager.startswith(OURS)]


def _component(container: dict[str, t.Any], owner: str) -> str:
    if parts.NFD_IMAGE.search(parts.image_base(str(container.get("image") or ""))):
        return "nfd"
    return _COMPONENTS.get(parts.program_of(container, owner), "")


def _cluster_policies(client: Client) -> c.Iterator[dict[str, str]]:
    try:
        resource = client.resource_by_group("nvidia.com", "ClusterPolicy")
    except UnknownKind:
        return
    for page in client.pages(resource, metadata_only=True):
        for obj in page.items:
            yield _entry("ClusterPolicy", obj, "")


def _prometheus_operator(client: Client) -> c.Iterator[dict[str, str]]:
    """Prometheus objects, which select the monitors and rules, of any deployment in any namespace."""
    try:
        kinds = [
            client.resource_by_group("monitoring.coreos.com", kind) for kind in ("PrometheusRule", "ServiceMonitor")
        ]
    except UnknownKind:
        return
    for resource in kinds:
        yield {
            "kind": "CustomResourceDefinition",
            "namespace": "",
            "name": f"{resource.plural}.{resource.group}",
            "image": "",
        }


def _entry(kind: str, obj: dict[str, t.Any], image: str) -> dict[str, str]:
    metadata = obj.get("metadata") or {}
    return {
        "kind": kind,
        "namespace": str(metadata.get("namespace") or ""),
        "name": str(metadata.get("name") or ""),
        "image": image,
    }
