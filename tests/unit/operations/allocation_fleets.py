# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fleets for the tests of GPU allocation: a cluster in memory that counts devices like a scheduler, and the pods that run there."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import allocations, names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import allocation
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions
from ansible_collections.hwaccel.gpu.tests.unit.clusters.jobs import (
    COMPLETE,
    JobCluster,
    container_status,
    node_of,
    unschedulable,
)
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.gpu.test_device_query import GOOD
from ansible_collections.hwaccel.gpu.tests.unit.operations.validation_fleets import POD

POOLS = parse_pools([{"name": "training", "selector": "pool=training", "gpu": {"count": 8}}])
SLICE = "nvidia.com/mig-1g.10gb"


class AllocationCluster(JobCluster):
    """A Job is scheduled if its node has as many free devices as it requests. One that does not hold them ends when it is listed the second time.

    `overallocated`: devices that the second pod gets although none is free. `stuck`: devices are never free again. `faulty`: devices on which kernels fail.
    `lost`: devices that pods do not see. `quick`: a second pod ends before it is listed. `busy`: seconds for which the first pod computes.
    `slow`: seconds until the scheduler reports on a second pod, and again after the first one has ended.
    """

    def __init__(self, *nodes: Obj) -> None:
        super().__init__(*nodes)
        self.devices: dict[str, list[str]] = {}
        self.max_nodes = 0
        self.overallocated: list[str] = []
        self.stuck = False
        self.slow = self.busy = 0.0
        self.quick = False
        self.last_change = 0.0
        self.taint = False
        self.faulty: set[str] = set()
        self.lost: set[str] = set()
        self._ended: set[str] = set()
        self.on("create", self._count, kind="Job", after=True)

    def end(self, request: Request) -> None:
        super().end(request)
        self.devices.pop(request.name, None)
        self.last_change = self.time.now

    def schedule(self) -> None:
        before = set(self.devices)
        self._place()
        listed = set(self.devices) if self.quick else before
        self._ended = {name for name, job in self.jobs.items() if name in listed and not hold_of(job)}

    def job_status(self, name: str, job: Obj) -> Obj:
        return COMPLETE if name in self._ended else {}

    def pod_status(self, name: str, job: Obj) -> tuple[str, Obj]:
        if name in self.devices:
            return node_of(job), {"phase": "Running", **container_status("running")}
        if self.time.now - self.last_change < self.slow:
            return "", {"phase": "Pending"}
        insufficient = ", ".join(f"1 Insufficient {resource}" for resource in requested(job))
        why = "1 node(s) had untolerated taint(s)" if self.taint else insufficient
        return "", unschedulable(f"0/2 nodes are available: {why}.")

    def log_of(self, pod: str, container: str, previous: bool) -> str:
        job = self.job_of(pod)
        assert job is not None
        name = job["metadata"]["name"]
        if hold_of(job) and self.age(name) < self.busy:
            return ""
        devices = [uuid for uuid in self.devices[name] if uuid not in self.lost]
        lines = [f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: {uuid})" for index, uuid in enumerate(devices)]
        for uuid in devices:
            lines += [
                f"device {uuid}",
                "[Vector addition of 50000 elements]",
                "out of memory" if uuid in self.faulty else "Test PASSED",
            ]
        return "\n".join([*lines, allocations.ALL_QUERIED, ""])

    def _place(self) -> None:
        for name, job in self.jobs.items():
            late = self.taint or self.stuck or self.time.now - self.last_change < self.slow
            if name in self.devices or (late and not hold_of(job)):
                continue
            free = self._free(node_of(job))
            if self.overallocated and not hold_of(job):
                self.devices[name] = self.overallocated
            elif len(free) >= gpus(job):
                self.devices[name] = free[: gpus(job)]

    def _free(self, node: str) -> list[str]:
        allocatable = self.stored("Node", node)["status"]["allocatable"]
        count = sum(int(value) for key, value in allocatable.items() if key.startswith("nvidia.com/"))
        jobs = self.jobs
        taken = {uuid for name, devices in self.devices.items() if node_of(jobs[name]) == node for uuid in devices}
        return [uuid for uuid in (f"GPU-{node}-{index}" for index in range(count)) if uuid not in taken]

    def _count(self, _request: Request) -> None:
        self.last_change = self.time.now
        self.max_nodes = max(self.max_nodes, len({node_of(job) for job in self.jobs.values()}))


def requested(job: Obj) -> dict[str, int]:
    return dict(job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"])


def gpus(job: Obj) -> int:
    return sum(count for resource, count in requested(job).items() if resource.startswith("nvidia.com/"))


def hold_of(job: Obj) -> int:
    held = [
        entry["value"]
        for entry in job["spec"]["template"]["spec"]["containers"][0]["env"]
        if entry["name"] == allocation.HOLD
    ]
    return int(held[0]) if held else 0


def node(name: str, allocatable: int = 8, **labels: str) -> Obj:
    return s.node(name, labels={"pool": "training"} | labels, allocatable=allocatable)


def jetson(name: str) -> Obj:
    result = node(name, 1, **{names.INTEGRATED_LABEL: "true"})
    result["status"]["nodeInfo"]["architecture"] = "arm64"
    return result


def foreign(name: str, on: str, resource: str = s.GPU, phase: str = "Running") -> Obj:
    container = {"name": "job", "resources": {"limits": {resource: "1"}}}
    metadata = {"name": name, "namespace": "team"}
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": on, "containers": [container]},
        "status": {"phase": phase},
    }


def go(
    cluster: AllocationCluster,
    *,
    check_mode: bool = False,
    slice_of: float | None = None,
    resume: Obj | None = None,
    parallel: int = 20,
    **options: t.Any,
) -> Outcome:
    settings = allocation.Settings(POD, POOLS, options=RunOptions(namespace="n", parallel=parallel), **options)
    return allocation.run(settings, cluster, cluster.clock(slice_of), check_mode=check_mode, resume=resume)


def allocated(on: str) -> Obj:
    """The spec of another user's pod that holds a GPU for a long time."""
    term = {"matchFields": [{"key": "metadata.name", "values": [on]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    return {
        "affinity": affinity,
        "containers": [
            {"name": "cuda", "resources": {"limits": {s.GPU: 1}}, "env": [{"name": "HOLD_SECONDS", "value": "9"}]}
        ],
    }


class Edge(AllocationCluster):
    """Pods on integrated GPUs print the output of deviceQuery."""

    output = GOOD + "Test PASSED\n"

    def log_of(self, pod: str, container: str, previous: bool) -> str:
        return f"{self.output}{allocations.ALL_QUERIED}\n"
