# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes reduced to the properties that GPU workloads depend on, and summarized as classes.

A Node as the API returns it is 10 to 50 KiB; `reduce_node` keeps about one, so that a fleet is read page by page
in bounded memory.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import sys
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.osnames import os_of_image
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import gpu_resources

Labels = c.Mapping[str, str]

#: GPU feature discovery's labels of MIG slices: prefix, profile, ".count".
_MIG = names.VENDOR + "mig-"


@dataclasses.dataclass(frozen=True)
class GpuFacts:
    """The labels of GPU feature discovery, "" and 0 if there are none."""

    product: str = ""
    count: int = 0
    memory_mib: int = 0
    replicas: int = 0
    sharing: str = ""
    mig_capable: bool = False
    mig_strategy: str = ""
    #: Devices by MIG profile ("1g.10gb": 7), strategy mixed.
    mig_devices: tuple[tuple[str, int], ...] = ()

    @property
    def known(self) -> bool:
        return bool(self.product or self.count)


@dataclasses.dataclass(frozen=True)
class NodeFacts:
    """One node. Kernel and OS are nodeInfo's, because NFD's labels lag behind and can disappear; NFD's kernel is kept for comparison."""

    name: str
    #: "" if a pool names the node and the cluster does not have it.
    uid: str = ""
    kernel: str = ""
    nfd_kernel: str = ""
    #: The node has a label of NFD.
    nfd_labeled: bool = False
    os_id: str = ""
    os_version: str = ""
    os_image: str = ""
    architecture: str = ""
    runtime: str = ""
    runtime_version: str = ""
    boot_id: str = ""
    ready: bool = False
    #: Why the kubelet is not Ready, "" if it is.
    not_ready: str = ""
    #: When the kubelet became Ready or NotReady, in the server's format.
    ready_changed: str = ""
    unschedulable: bool = False
    gpu_present: bool = False
    tegra: bool = False
    #: False if the node is opted out (`operands=false`).
    managed: bool = True
    #: Version of the driver that is installed on the host, "unknown" if only its presence is known, "pre-installed" if a driver manager detected
    #: it and prevents this collection's driver, "" for none.
    host_driver: str = ""
    driver_version: str = ""
    plugin_config: str = ""
    mig_state: str = ""
    gpu: GpuFacts = GpuFacts()
    #: Extended resources that are GPUs or parts of them.
    allocatable: tuple[tuple[str, int], ...] = ()
    taints: tuple[tuple[str, str, str], ...] = ()
    quarantined: bool = False
    #: The label of each of the driver's clients has a value.
    switched: bool = False
    #: Labels that disable clients of the driver, separated by blanks.
    switched_off: str = ""
    #: The node is simulated and has no machine.
    simulated: bool = False
    #: The annotation of the last validation, unparsed.
    proof: str = ""


def reduce_node(node: c.Mapping[str, t.Any], renamed: c.Collection[str] = ()) -> NodeFacts:
    """The facts of one Node; unexpected or missing fields give empty facts, never an error. renamed: resource names from plugin configurations."""
    metadata, spec, status = _map(node.get("metadata")), _map(node.get("spec")), _map(node.get("status"))
    labels: Labels = _map(metadata.get("labels"))
    info = _map(status.get("nodeInfo"))
    os_image = str(info.get("osImage") or "")
    os_id, os_version = os_of_image(os_image)
    kernel = str(info.get("kernelVersion") or "")
    runtime, _separator, runtime_version = str(info.get("containerRuntimeVersion") or "").partition("://")
    ready, not_ready, ready_changed = _readiness(status)
    allocatable = gpu_resources(_map(status.get("allocatable")), renamed)
    tegra = _tegra(labels, kernel)
    taints = tuple(_taint(taint) for taint in _dicts(spec.get("taints")))
    annotations = _map(metadata.get("annotations"))
    return NodeFacts(
        name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""),
        kernel=_same(kernel),
        nfd_kernel=_same(labels.get(names.KERNEL_LABEL, "")),
        nfd_labeled=any(label.startswith(names.NFD) for label in labels),
        os_id=_same(os_id or labels.get(names.OS_ID_LABEL, "")),
        os_version=_same(os_version or labels.get(names.OS_VERSION_LABEL, "")),
        os_image=_same(os_image),
        architecture=_same(str(info.get("architecture") or "")),
        runtime=_same(runtime),
        runtime_version=_same(runtime_version),
        boot_id=str(info.get("bootID") or ""),
        ready=ready,
        not_ready=not_ready,
        ready_changed=ready_changed,
        unschedulable=bool(spec.get("unschedulable")),
        gpu_present=tegra or _labeled(labels) or any(count for _name, count in allocatable),
        tegra=tegra,
        managed=labels.get(names.OPERANDS_LABEL) != "false",
        host_driver=_same(_host_driver(labels, tegra)),
        driver_version=_same(_driver_version(labels)),
        plugin_config=_same(labels.get(names.PLUGIN_CONFIG_LABEL, "")),
        mig_state=_same(labels.get(names.MIG_CONFIG_STATE_LABEL, "")),
        gpu=_gpu(labels),
        allocatable=allocatable,
        taints=taints,
        quarantined=names.QUARANTINE in labels or any(taint[0] == names.QUARANTINE for taint in taints),
        switched=all(labels.get(switch) for switch in names.CLIENT_SWITCHES),
        switched_off=_same(" ".join(switch for switch in names.CLIENT_SWITCHES if labels.get(switch) == "false")),
        simulated=annotations.get(names.SIMULATED) == names.SIMULATED_VALUE,
        proof=str(annotations.get(names.PROOF) or ""),
    )


def _tegra(labels: Labels, kernel: str) -> bool:
    vendor = labels.get(names.CPU_VENDOR_LABEL) == names.TEGRA_CPU_VENDOR
    return labels.get(names.INTEGRATED_LABEL) == "true" or vendor or kernel.endswith("-tegra")


def _labeled(labels: Labels) -> bool:
    """Whether any label shows a GPU on the node."""
    return any(labels.get(label) == "true" for label in (*names.PCI_LABELS, names.GPU_PRESENT_LABEL))


def _gpu(labels: Labels) -> GpuFacts:
    if names.GPU_PRODUCT_LABEL not in labels and names.GPU_COUNT_LABEL not in labels:
        return GpuFacts()
    migs = tuple(
        sorted(
            (label[len(_MIG) : -len(".count")], _number(value))
            for label, value in labels.items()
            if label.startswith(_MIG) and label.endswith(".count")
        )
    )
    return GpuFacts(
        product=_same(labels.get(names.GPU_PRODUCT_LABEL, "")),
        count=_number(labels.get(names.GPU_COUNT_LABEL)),
        memory_mib=_number(labels.get(names.GPU_MEMORY_LABEL)),
        replicas=_number(labels.get(names.GPU_REPLICAS_LABEL)),
        sharing=_same(labels.get(names.GPU_SHARING_LABEL, "")),
        mig_capable=labels.get(names.MIG_CAPABLE_LABEL) == "true",
        mig_strategy=_same(labels.get(names.MIG_STRATEGY_LABEL, "")),
        mig_devices=migs,
    )


def _host_driver(labels: Labels, tegra: bool) -> str:
    if version := labels.get(names.HOST_DRIVER_LABEL, ""):
        return "unknown" if version == "true" else version
    if labels.get(names.DEPLOY_DRIVER_LABEL) == names.PRE_INSTALLED:
        return names.PRE_INSTALLED
    return "unknown" if tegra else ""


def _driver_version(labels: Labels) -> str:
    parts = (labels.get(label, "") for label in names.OLD_DRIVER_VERSION_LABELS)
    return labels.get(names.DRIVER_VERSION_LABEL) or ".".join(part for part in parts if part)


def _readiness(status: c.Mapping[str, t.Any]) -> tuple[bool, str, str]:
    for condition in _dicts(status.get("conditions")):
        if condition.get("type") == "Ready":
            why = ": ".join(str(condition[part]) for part in ("reason", "message") if condition.get(part))[:200]
            ready = condition.get("status") == "True"
            return ready, "" if ready else why, str(condition.get("lastTransitionTime") or "")
    return False, "the kubelet has not reported yet", ""


def _taint(taint: c.Mapping[str, t.Any]) -> tuple[str, str, str]:
    return (
        _same(str(taint.get("key") or "")),
        _same(str(taint.get("value") or "")),
        _same(str(taint.get("effect") or "")),
    )


def _map(value: t.Any) -> dict[str, t.Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: t.Any) -> list[dict[str, t.Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _number(value: t.Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _same(text: t.Any) -> str:
    """One string object for all nodes that share it: kernels, images and products repeat across a fleet."""
    return sys.intern(text) if isinstance(text, str) else str(text)


class ClassSum:
    """Distinct combinations of what drivers depend on, counted while nodes are read."""

    FIELDS = (
        "kernel",
        "nfd_kernel",
        "os_id",
        "os_version",
        "os_image",
        "architecture",
        "runtime",
        "runtime_version",
        "gpu_present",
    )

    def __init__(self) -> None:
        self._counts: dict[tuple[t.Any, ...], list[int]] = {}

    def add(self, facts: NodeFacts, pool: str, *, assumed: bool = False) -> None:
        """assumed: the pool declares GPUs, and no label shows one yet."""
        shared = (getattr(facts, field) for field in self.FIELDS)
        key = (
            pool,
            *shared,
            assumed and not facts.gpu_present,
            facts.gpu.product,
            facts.host_driver,
            facts.driver_version,
        )
        sums = self._counts.setdefault(key, [0, 0, 0])
        sums[0] += 1
        sums[1] += facts.ready
        sums[2] += facts.unschedulable

    def rows(self) -> list[dict[str, t.Any]]:
        """Sorted rows in the format that `node_info` returns as `classes`."""
        header = (
            "pool",
            *self.FIELDS,
            "gpu_assumed",
            "gpu_product",
            "host_driver",
            "driver_version",
            "count",
            "ready",
            "unschedulable",
        )
        return [dict(zip(header, (*key, *sums), strict=True)) for key, sums in sorted(self._counts.items())]
