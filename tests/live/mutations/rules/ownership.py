# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels that say whose an object is, and names that others know an object by."""

from __future__ import annotations

import collections.abc as c
import functools
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import common
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Finding, Manifests, tables, where
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

COMPONENT = "app.kubernetes.io/component"
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_OURS = (names.DRIVER_POOL_LABEL, names.DESIRED_DRIVER_VERSION_LABEL)


def owned(found: Manifests) -> c.Iterator[Finding]:
    """Every object has the labels that the collection stamps: the node gate and people find by them what is the collection's."""
    for role, objects in found.by_role.items():
        for item in objects:
            wanted = names.OWNER_LABELS | {COMPONENT: role.replace("_", "-")}
            yield from _labels(item["metadata"], wanted, f"{where(item)} metadata")
    for one in found.workloads:
        yield from _labels(one.template["metadata"], names.OWNER_LABELS, f"{one.where}metadata")
        if one.labels.get(COMPONENT) not in (one.name, one.role.replace("_", "-")):
            yield f"{one.where}metadata.labels: {COMPONENT} is neither the workload nor the role"


def _labels(metadata: Obj, wanted: dict[str, str], place: str) -> c.Iterator[Finding]:
    labels = metadata.get("labels") or {}
    for key, value in wanted.items():
        if labels.get(key) != value:
            yield f"{place}.labels: {key} is {labels.get(key)!r}, so nobody finds the object as {value}"


def of_driver(found: Manifests) -> c.Iterator[Finding]:
    """A driver's labels say what its pods are for: its pool, version, kernel and class are those that its pod has, runs and selects."""
    for one in found.workloads:
        labels = one.item["metadata"].get("labels") or {}
        if one.name != "nvidia-driver":
            continue
        for key in _OURS:
            if not labels.get(key) or labels[key] != one.labels.get(key):
                yield f"{one.where}metadata.labels: {key} is {one.labels.get(key)!r}, of the DaemonSet {labels.get(key)!r}"
        image = one.spec["containers"][0]["image"]
        version, name = one.labels.get(names.DESIRED_DRIVER_VERSION_LABEL, ""), one.item["metadata"]["name"]
        if not image.rpartition(":")[2].startswith(f"{version}-"):
            yield f"{one.where}metadata.labels: {names.DESIRED_DRIVER_VERSION_LABEL} is {version}, the image {image}"
        if not name.startswith(f"{one.name}-{one.labels.get(names.DRIVER_POOL_LABEL)}-"):
            yield f"{one.where}metadata.labels: {names.DRIVER_POOL_LABEL} is not the pool in {name}"
        if not name.endswith(f"-{one.labels.get(names.DRIVER_CLASS_LABEL)}"):
            yield f"{one.where}metadata.labels: {names.DRIVER_CLASS_LABEL} is not the class in {name}"
        kernel = one.labels.get(names.DRIVER_KERNEL_LABEL, "other-kernels")
        if f"-{kernel}-" not in name:
            yield f"{one.where}metadata.labels: {names.DRIVER_KERNEL_LABEL} is not the kernel in {name}"


def configured(found: Manifests) -> c.Iterator[Finding]:
    """A new configuration restarts the pods that mount it, since their template has its hash."""
    stamped = [dict(item) for item in found.all if item.get("kind") == "ConfigMap"]
    for one in found.workloads:
        template = {"metadata": {}, "spec": one.spec}
        common.stamp([*stamped, {**one.item, "kind": "DaemonSet", "spec": {"template": template}}])
        wanted = template["metadata"].get("annotations", {}).get(common.CONFIG_HASH)
        actual = (one.template["metadata"].get("annotations") or {}).get(common.CONFIG_HASH)
        if wanted != actual:
            yield f"{one.where}metadata.annotations: {common.CONFIG_HASH} is not the hash of the ConfigMaps that the pod mounts"


def default_container(found: Manifests) -> c.Iterator[Finding]:
    """`kubectl logs` of a pod with several containers shows the one that does the work, if the annotation names it."""
    for one in found.workloads:
        annotations = one.template["metadata"].get("annotations") or {}
        called = [container["name"] for container in one.spec["containers"]]
        if _DEFAULT_CONTAINER in annotations and annotations[_DEFAULT_CONTAINER] not in called:
            yield f"{one.where}metadata.annotations: {_DEFAULT_CONTAINER} names no container of the pod"
        if one.name == "nvidia-driver" and _DEFAULT_CONTAINER not in annotations:
            yield f"{one.where}metadata.annotations: {_DEFAULT_CONTAINER} is missing, so kubectl shows the log of the driver manager"


def named(found: Manifests) -> c.Iterator[Finding]:
    """People and the pages know objects by name: a workload by its row in the rights table and its account, a binding by what it binds."""
    table = {row["workload"] for role in found.by_role for row in tables(role)["rights"]}
    for one in found.workloads:
        if one.name not in table:
            yield f"{one.item['kind']} {one.name}: metadata.name is of no workload in the table of rights"
        if one.item["kind"] != "Pod" and one.spec.get("serviceAccountName") != one.name:
            yield f"{one.where}spec.serviceAccountName is not the workload's own"
    for item in found.of("RoleBinding", "ClusterRoleBinding", "ValidatingAdmissionPolicyBinding"):
        bound = item["roleRef"]["name"] if "roleRef" in item else item["spec"]["policyName"]
        if item["metadata"]["name"] != bound:
            yield f"{where(item)} metadata.name is not that of what it binds, {bound}"
    pages = _pages()
    mounted = {
        volume["configMap"]["name"]
        for one in found.workloads
        for volume in one.spec.get("volumes") or ()
        if "configMap" in volume
    }
    for item in found.of("ConfigMap"):
        name = item["metadata"]["name"]
        if name not in mounted and not re.search(rf"`{re.escape(name)}`", pages) and not _of_dashboard(item, pages):
            yield f"{where(item)} metadata.name: no pod mounts {name}, and no page tells a user of it"


def selecting(found: Manifests) -> c.Iterator[Finding]:
    """A workload selects its own pods, by the label `app` that pages and gates know them by, and no pods of another workload."""
    for one in found.workloads:
        if one.item["kind"] == "Pod":
            continue
        selector = one.item["spec"]["selector"].get("matchLabels") or {}
        if "app" not in selector:
            yield f"{one.item['kind']} {one.name}: spec.selector.matchLabels has no app"
        telling = [key for key in one.labels if key.startswith(names.OURS)]
        if telling and not selector.keys() & set(telling):
            yield f"{one.item['kind']} {one.name}: spec.selector.matchLabels have none of {telling}, by which its pods differ from others'"
        for other in found.workloads:
            if (
                other.item is not one.item
                and other.namespace == one.namespace
                and selector.items() <= other.labels.items()
            ):
                yield f"{one.item['kind']} {one.name}: spec.selector.matchLabels {selector} select pods of {other.item['metadata']['name']} too"


def _of_dashboard(item: Obj, pages: str) -> bool:
    """Whether a ConfigMap is the one that pages call hwaccel-gpu-dashboard-*: its file has the same ending."""
    family, _dash, ending = item["metadata"]["name"].rpartition("-")
    return f"`{family}-*`" in pages and any(file.removesuffix(".json").endswith(f"-{ending}") for file in item["data"])


@functools.cache
def _pages() -> str:
    return (stack.TOP / "docs" / "monitoring.md").read_text(encoding="utf-8")
