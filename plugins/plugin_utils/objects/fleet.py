# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a fleet that the filters read: classes of nodes, pools and existing components, from `node_info` or from declarations only."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.osnames import os_of_image
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import CPU, DEFAULT, Pool, parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import node_sets

_ARCHITECTURES = ("amd64", "arm64")


@dataclasses.dataclass(frozen=True, order=True)
class NodeClass:
    """Nodes with equal properties as far as drivers depend on them. assumed: GPUs are declared and not detected yet.

    labeled: the kernel in NFD's label, which lags behind after a reboot. Driver pods follow the label.
    """

    pool: str
    kernel: str
    os_id: str
    os_version: str
    architecture: str
    runtime: str = "containerd"
    host_driver: str = ""
    assumed: bool = False
    nodes: int = 0
    labeled: str = ""


@dataclasses.dataclass(frozen=True)
class DriverInCluster:
    """An existing driver DaemonSet. terms: its node affinity. running: number of nodes on which it has started a driver, `nodes` some of their names.

    kernel: as a label value, "" for the one for unknown kernels. key: the value of its selector.
    """

    namespace: str
    name: str
    key: str
    pool: str
    version: str
    kernel: str
    image: str
    terms: tuple[node_sets.Term, ...]
    running: int = 0
    nodes: tuple[str, ...] = ()


#: Facts of a cluster that is only going to be made. Without facts, objects are rendered for any cluster.
#: Distributions that installers make. Others have the name of what they make.
_MADE_BY = {"kubeadm": "kubernetes"}


def awaited(installer: str, version: str) -> dict[str, t.Any]:
    """What is known of a cluster that is only going to be made, in place of facts. version: of Kubernetes or of the distribution, such as 1.36.4+k3s1."""
    return {"awaited": True, "platform": {"distribution": _MADE_BY.get(installer, installer), "version": version}}


@dataclasses.dataclass(frozen=True)
class Fleet:
    """gpus: classes with detected or declared GPUs. observed: a cluster was queried. drivers: DaemonSets of this collection.

    awaited: the cluster is only going to be made, by the same run.
    undiscovered: classes without a label of NFD and without a declaration, which may have GPUs. runtimes: those of all nodes.
    """

    pools: tuple[Pool, ...]
    gpus: tuple[NodeClass, ...]
    observed: bool
    undiscovered: tuple[NodeClass, ...] = ()
    runtimes: frozenset[str] = frozenset()
    distribution: str = "kubernetes"
    version: tuple[int, int] = (1, 36)
    existing: c.Mapping[str, c.Sequence[c.Mapping[str, t.Any]]] = dataclasses.field(default_factory=dict)
    cluster_uid: str = ""
    drivers: tuple[DriverInCluster, ...] = ()
    awaited: bool = False

    def found(self, *components: str) -> list[str]:
        """Components of other deployments as "DaemonSet kube-system/nvidia-device-plugin"."""
        rows = [row for component in components for row in self.existing.get(component) or ()]
        return [
            f"{row.get('kind', '')} {row.get('namespace') or ''}{'/' if row.get('namespace') else ''}{row.get('name', '')}".strip()
            for row in rows
        ]

    def namespace_of(self, *components: str) -> str:
        """Namespace of the pods of another deployment's component, "" if there is none."""
        rows = [row for component in components for row in self.existing.get(component) or () if row.get("namespace")]
        daemon_sets = [row for row in rows if row.get("kind") == "DaemonSet"]
        return str((daemon_sets or rows or [{}])[0].get("namespace") or "")

    @property
    def pool_names(self) -> list[str]:
        """Pools with GPUs: declared ones in their order, then detected ones. A declared driver provider implies GPUs."""
        found = {one.pool for one in self.gpus}
        declared = [
            pool.name for pool in self.pools if pool.gpu is not None or pool.driver.provider or pool.name in found
        ]
        return declared + sorted({one.pool for one in self.gpus} - set(declared))

    def pool(self, name: str) -> Pool:
        return next((pool for pool in self.pools if pool.name == name), Pool(name, declared=False))


def read_fleet(declared: t.Any, facts: c.Mapping[str, t.Any] | None) -> tuple[Fleet, list[Fault]]:
    """declared: `hwaccel_pools`; facts: the result of node_info, empty if no cluster was queried, and that of awaited if it is only going to be made."""
    faults: list[Fault] = []
    pools: tuple[Pool, ...] = ()
    machines: dict[str, tuple[str, t.Any]] = {}
    try:
        plain, machines = _without_machines(declared)
        pools = parse_pools(plain, "hwaccel_pools")
    except ManyFaults as many:
        faults.extend(many.faults)
    platform = (facts or {}).get("platform") or {}
    if facts and facts.get("classes") is not None:
        declared_names = {pool.name for pool in pools}
        gpus = tuple(sorted({_class(row, declared_names) for row in facts["classes"] if _has_gpus(row)}))
        undiscovered = tuple(
            sorted({_class(row, declared_names) for row in facts["classes"] if _may_have_gpus(row, declared_names)})
        )
        return Fleet(
            pools,
            gpus,
            True,
            undiscovered,
            frozenset(str(row.get("runtime") or "containerd") for row in facts["classes"]),
            str(platform.get("distribution") or "kubernetes"),
            _version(platform.get("version")),
            facts.get("existing") or {},
            str(facts.get("cluster_uid") or ""),
            tuple(map(_driver, facts.get("driver_daemon_sets") or ())),
        ), faults
    assumed = tuple(
        sorted({one for pool in pools if pool.gpu is not None for one in _of_machines(pool.name, machines, faults)})
    )
    fleet = Fleet(pools, assumed, False)
    if facts:
        distribution, version = str(platform["distribution"]), _version(platform["version"])
        fleet = dataclasses.replace(fleet, awaited=True, distribution=distribution, version=version)
    return fleet, faults


def _without_machines(declared: t.Any) -> tuple[t.Any, dict[str, tuple[str, t.Any]]]:
    """Classes from `machines` of a pool, which is only used if no cluster is queried."""
    if not isinstance(declared, (list, tuple)):
        return declared, {}
    plain, machines = [], {}
    for position, entry in enumerate(declared):
        if isinstance(entry, dict) and "machines" in entry:
            if entry["machines"]:
                machines[str(entry.get("name"))] = f"hwaccel_pools[{position}].machines", entry["machines"]
            entry = {key: value for key, value in entry.items() if key != "machines"}
        plain.append(entry)
    return plain, machines


def _of_machines(pool: str, machines: c.Mapping[str, tuple[str, t.Any]], faults: list[Fault]) -> c.Iterator[NodeClass]:
    if pool in machines:
        where, given = machines[pool]
        yield from declared_classes(pool, given, where, faults)


def _has_gpus(row: c.Mapping[str, t.Any]) -> bool:
    return bool(row.get("gpu_present") or row.get("gpu_assumed"))


def _may_have_gpus(row: c.Mapping[str, t.Any], declared: c.Collection[str]) -> bool:
    """Whether nodes may have GPUs: NFD labels every node with its kernel, and the pool of nodes without GPUs only counts if it is declared."""
    return not _has_gpus(row) and not row.get("nfd_kernel") and not (CPU in declared and row.get("pool") == CPU)


def _class(row: c.Mapping[str, t.Any], declared: c.Collection[str]) -> NodeClass:
    """Nodes outside of all declared pools are one pool. With two such pools, each would deploy its driver to the other's nodes."""
    pool = str(row.get("pool") or DEFAULT)
    return NodeClass(
        pool=pool if pool in declared else DEFAULT,
        kernel=str(row.get("kernel") or ""),
        os_id=str(row.get("os_id") or ""),
        os_version=str(row.get("os_version") or ""),
        architecture=str(row.get("architecture") or ""),
        runtime=str(row.get("runtime") or "containerd"),
        host_driver=str(row.get("host_driver") or ""),
        assumed=bool(row.get("gpu_assumed")) and not row.get("gpu_present"),
        nodes=int(row.get("count") or 0),
        labeled=str(row.get("nfd_kernel") or ""),
    )


def _driver(row: c.Mapping[str, t.Any]) -> DriverInCluster:
    return DriverInCluster(
        namespace=str(row["namespace"]),
        name=str(row["name"]),
        key=str(row["class"]),
        pool=str(row["pool"]),
        version=str(row["version"]),
        kernel=str(row["kernel"]),
        image=str(row["image"]),
        terms=tuple(node_sets.read(row["node_affinity"])),
        running=int(row["running"]),
        nodes=tuple(map(str, row["nodes"])),
    )


def declared_classes(pool: str, machines: t.Any, where: str, faults: list[Fault]) -> c.Iterator[NodeClass]:
    """Operating systems and kernels in `machines` of a pool."""
    for number, machine in enumerate(machines if isinstance(machines, (list, tuple)) else [machines]):
        place = f"{where}[{number}]"
        if wrong := _MACHINE(machine, place):
            faults += wrong
            continue
        os_id, os_version = os_of_image(str(machine["os_image"]))
        if not os_id:
            what = f"the operating system {values.shown(machine['os_image'])} is unknown"
            faults.append(
                Fault(
                    what,
                    f"{place}.os_image",
                    "",
                    "write it as /etc/os-release's PRETTY_NAME, such as Ubuntu 24.04.3 LTS",
                )
            )
            continue
        given = {
            key: str(machine.get(key) or default)
            for key, default in (("architecture", "amd64"), ("runtime", "containerd"))
        }
        yield NodeClass(
            pool, str(machine["kernel"]), os_id, os_version, given["architecture"], given["runtime"], "", True
        )


def pools_with(runtime: str, classes: c.Iterable[NodeClass]) -> list[str]:
    """Names of pools that have nodes with a container runtime."""
    return sorted({one.pool for one in classes if one.runtime == runtime})


def _kernel(value: t.Any, where: str) -> list[Fault]:
    if isinstance(value, str):
        return values.text(value, where)
    return [
        Fault(
            f"{values.shown(value)} is not a kernel version",
            where,
            "without quotes YAML reads 6.10 as the number 6.1",
            "write it in quotes, in the format of uname -r",
        )
    ]


MACHINE_CHECKS: dict[str, values.Check] = {
    "kernel": _kernel,
    "os_image": values.text,
    "architecture": values.choice(*_ARCHITECTURES),
    "runtime": values.choice("containerd", "cri-o", "docker"),
}
_MACHINE = values.fields(MACHINE_CHECKS, "a pool's machine", ("kernel", "os_image"))


def _version(given: t.Any) -> tuple[int, int]:
    """(1, 36) of "v1.36.4+k3s1"; a version that cannot be read counts as new."""
    parts = str(given or "").removeprefix("v").split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (IndexError, ValueError):
        return 1, 99
