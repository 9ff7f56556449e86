# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fleets for the tests of validation: a cluster in memory whose Jobs end as the test says, and the pod that runs there."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool, parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Answer, Page
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import validation
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.fake_cluster import FakeCluster

Obj = dict[str, t.Any]

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


class Cluster(FakeCluster):
    """printed: what a node's pod prints; full: nodes that have no free GPU; failing: those whose pod ends badly; takes: seconds that each pod runs.

    refusing: nodes that are thought to have a free GPU, and whose kubelet has none to give.
    read: the kinds that were listed, with their namespaces.
    """

    def __init__(self, *nodes: Obj, pods: t.Sequence[Obj] = ()) -> None:
        super().__init__(list(nodes), list(pods))
        self.jobs: dict[str, Obj] = {}
        self.ran: list[Obj] = []
        self.printed: dict[str, str] = {}
        self.full: set[str] = set()
        self.failing: set[str] = set()
        self.refusing: set[str] = set()
        self.takes = 0.0
        self.read: list[str] = []
        self.at = 1000.0

    def clock(self, slice_of: float | None = None) -> Clock:
        def sleep(seconds: float) -> None:
            self.at += seconds

        return Clock(
            None if slice_of is None else self.at + slice_of,
            now=lambda: self.at,
            monotonic=lambda: self.at,
            sleep=sleep,
        )

    def pages(self, resource: Resource, namespace: str = "", **options: t.Any) -> t.Iterator[Page]:
        self.read.append(f"{resource.kind} {namespace}".rstrip())
        for page in super().pages(resource, namespace, **options):
            yield Page(
                [item for item in page.items if namespace in ("", item["metadata"].get("namespace"))],
                page.resource_version,
            )

    def create(self, obj: Obj, resource: Resource, *, field_manager: str = "", dry_run: bool = False) -> Answer:
        if not dry_run:
            self.jobs[obj["metadata"]["name"]] = obj | {"began": self.at}
            self.ran.append(obj)
        return Answer(obj)

    def delete(self, resource: Resource, name: str, namespace: str = "", **_options: t.Any) -> None:
        if self.jobs.pop(name, None) is None:
            raise NotFound(name)

    def list(self, resource: Resource, namespace: str = "", **options: t.Any) -> Page:
        if resource.kind == "Job":
            return Page([job | {"status": self._status(job)} for job in self.jobs.values()], "1")
        if resource.kind == "Pod" and "hwaccel.gpu/run" in str(options.get("label_selector")):
            return Page([self._pod(name, job) for name, job in self.jobs.items()], "1")
        return super().list(resource, namespace, **options)

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool = False, tail_lines: int = 20) -> str:
        job = self.jobs.get(pod.removesuffix("-x"))
        return (
            self.printed.get(node_of(job), LOG)
            if job
            else super().logs(namespace, pod, container, previous=previous, tail_lines=tail_lines)
        )

    def _status(self, job: Obj) -> Obj:
        ended = {"Succeeded": "Complete", "Failed": "Failed"}.get(self._phase(job))
        return {"conditions": [{"type": ended, "status": "True"}]} if ended else {}

    def _phase(self, job: Obj) -> str:
        if node_of(job) in self.full:
            return "Pending"
        if self.at - job["began"] < self.takes:
            return "Running"
        return "Failed" if node_of(job) in self.failing | self.refusing else "Succeeded"

    def _pod(self, name: str, job: Obj) -> Obj:
        placed = {} if node_of(job) in self.full else {"nodeName": node_of(job)}
        no_room = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/2 nodes are available: 1 Insufficient nvidia.com/gpu.",
        }
        phase = self._phase(job)
        status = (
            {"phase": phase, "containerStatuses": [{"name": "cuda", "state": {"running": {}}}]}
            if placed
            else {"phase": phase, "conditions": [no_room]}
        )
        if node_of(job) in self.refusing:
            status = {
                "phase": phase,
                "reason": "UnexpectedAdmissionError",
                "message": "Allocate failed due to no healthy devices present",
            }
        metadata = {"name": f"{name}-x", "uid": name, "ownerReferences": [{"kind": "Job", "name": name}]}
        return {"metadata": metadata, "spec": job["spec"]["template"]["spec"] | placed, "status": status}

    def proof(self, node: str) -> dict[str, t.Any]:
        return dict(json.loads(self.objects["Node"][node]["metadata"].get("annotations", {}).get(names.PROOF, "{}")))


def node_of(job: Obj) -> str:
    terms = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    return str(terms[0]["matchFields"][0]["values"][0])


def node(name: str, allocatable: int = 8, **options: t.Any) -> Obj:
    return s.node(name, labels=LABELS, allocatable=allocatable, **options)


def deployed(*pods: Obj, namespace: str = s.NAMESPACE) -> list[Obj]:
    """Pods of a namespace, and the DaemonSets that have made them."""
    placed = [pod | {"metadata": pod["metadata"] | {"namespace": namespace}} for pod in pods]
    made = {pod["metadata"]["ownerReferences"][0]["name"]: pod for pod in placed}
    sets = [
        {"kind": "DaemonSet", "metadata": {"name": name, "namespace": namespace}, "spec": {"template": pod}}
        for name, pod in made.items()
    ]
    return [*placed, *sets]


def cordoned(name: str) -> Obj:
    return node(name) | {"spec": {"unschedulable": True}}


def go(
    cluster: Cluster,
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
