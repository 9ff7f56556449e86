# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fleets for the tests of validation: a cluster in memory whose Jobs end as the test defines, and the pod that runs there."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool, parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import validation
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions
from ansible_collections.hwaccel.gpu.tests.unit.clusters.jobs import (
    JobCluster,
    container_status,
    node_of,
    unschedulable,
)
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s

GPU = {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559}
POOLS = parse_pools([{"name": "training", "selector": "pool=training", "gpu": GPU}])
LOG = "NVIDIA H100 80GB HBM3, 81559 MiB, 580.178.04, Enabled, Disabled\n[Vector addition of 50000 elements]\nTest PASSED\nDone\n"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "v"},
    "spec": {"containers": [{"name": "cuda", "image": "sample:1"}]},
}
LABELS = {"pool": "training", names.DRIVER_VERSION_LABEL: "580.178.04"}


class ValidationCluster(JobCluster):
    """`printed`: output of a node's pod. `full`: nodes without a free GPU. `failing`: nodes whose pod fails. `takes`: seconds that each pod runs.

    `refusing`: nodes where the scheduler assumes a free GPU, and the kubelet has none.
    """

    def __init__(self, *nodes: Obj, pods: t.Sequence[Obj] = ()) -> None:
        super().__init__(*nodes, *pods)
        self.printed: dict[str, str] = {}
        self.full: set[str] = set()
        self.failing: set[str] = set()
        self.refusing: set[str] = set()
        self.takes = 0.0

    @property
    def read(self) -> list[str]:
        """Kinds that were listed completely, page by page, with their namespaces."""
        return [f"{request.kind} {request.namespace}".rstrip() for request in self.sent("list") if request.paged]

    def log_of(self, pod: str, container: str, previous: bool) -> str:
        job = self.job_of(pod)
        return self.printed.get(node_of(job), LOG) if job else super().log_of(pod, container, previous)

    def job_status(self, name: str, job: Obj) -> Obj:
        ended = {"Succeeded": "Complete", "Failed": "Failed"}.get(self._phase(name, job))
        return {"conditions": [{"type": ended, "status": "True"}]} if ended else {}

    def pod_status(self, name: str, job: Obj) -> tuple[str, Obj]:
        node, phase = node_of(job), self._phase(name, job)
        if node in self.refusing:
            why = {"reason": "UnexpectedAdmissionError", "message": "Allocate failed due to no healthy devices present"}
            return node, {"phase": phase, **why}
        if node in self.full:
            return "", unschedulable("0/2 nodes are available: 1 Insufficient nvidia.com/gpu.")
        return node, {"phase": phase, **container_status("running")}

    def _phase(self, name: str, job: Obj) -> str:
        if node_of(job) in self.full:
            return "Pending"
        if self.age(name) < self.takes:
            return "Running"
        return "Failed" if node_of(job) in self.failing | self.refusing else "Succeeded"

    def proof(self, node: str) -> dict[str, t.Any]:
        return dict(json.loads(self.stored("Node", node)["metadata"].get("annotations", {}).get(names.PROOF, "{}")))


def node(name: str, allocatable: int = 8, **options: t.Any) -> Obj:
    return s.node(name, labels=LABELS, allocatable=allocatable, **options)


def deployed(*pods: Obj, namespace: str = s.NAMESPACE) -> list[Obj]:
    """Pods of a namespace, and the DaemonSets that own them."""
    placed = [pod | {"metadata": pod["metadata"] | {"namespace": namespace}} for pod in pods]
    owners = {pod["metadata"]["ownerReferences"][0]["name"]: pod for pod in placed}
    sets = [
        {"kind": "DaemonSet", "metadata": {"name": name, "namespace": namespace}, "spec": {"template": pod}}
        for name, pod in owners.items()
    ]
    return [*placed, *sets]


def cordoned(name: str) -> Obj:
    return node(name) | {"spec": {"unschedulable": True}}


def go(
    cluster: ValidationCluster,
    *,
    check_mode: bool = False,
    definition: Obj | None = None,
    pools: tuple[Pool, ...] = POOLS,
    **options: t.Any,
) -> Outcome:
    settings = validation.Settings(definition or POD, pools, options=RunOptions(namespace="n"), **options)
    return validation.run(settings, cluster, cluster.clock(), check_mode=check_mode)


def fault(outcome: Outcome) -> Obj:
    (row,) = outcome.values["faults"]
    return dict(row)
