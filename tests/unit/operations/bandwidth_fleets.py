# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fleets for the tests of bandwidth between nodes: pairs of pods on two nodes, in the cluster in memory that counts devices."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import bandwidth
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions
from ansible_collections.hwaccel.gpu.tests.unit.clusters.jobs import COMPLETE, container_status, node_of
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.operations.allocation_fleets import AllocationCluster
from ansible_collections.hwaccel.gpu.tests.unit.operations.validation_fleets import POD

RESOURCE = "rdma/hca_shared_devices_a"
POOL: Obj = {
    "name": "training",
    "selector": "pool=training",
    "interconnect": {"min_bandwidth": 40, "resources": {RESOURCE: 1}},
}
DISRUPTED = "Pod n/v-1-x has condition DisruptionTarget matching FailJob rule at index 0"


class PairCluster(AllocationCluster):
    """Two connected pods end when they are listed the second time after that.

    `bandwidths`: lower GB/s of some nodes. `tcp`: nodes whose pods use it. `not_listening`: nodes whose pods never listen. `failing`: nodes whose pods fail
    as soon as they run, with the message of their Job. `pull_seconds`: seconds until pods of these nodes run.
    """

    def __init__(self, *nodes: Obj) -> None:
        super().__init__(*nodes)
        self.bandwidths: dict[str, float] = {}
        self.tcp: set[str] = set()
        self.not_listening: set[str] = set()
        self.failing: dict[str, str] = {}
        self.pull_seconds: dict[str, float] = {}
        #: Node of the peer, by the name of each connected Job.
        self.connected: dict[str, str] = {}
        self._connected_before: set[str] = set()

    def schedule(self) -> None:
        self._connected_before = set(self.connected)
        super().schedule()
        jobs = self.jobs
        for name, job in jobs.items():
            peer = self._peer(job)
            if self._runs(name) and self._runs(peer) and not self.failing.keys() & {node_of(job), node_of(jobs[peer])}:
                self.connected.setdefault(name, node_of(jobs[peer]))

    def log_of(self, pod: str, container: str, previous: bool) -> str:
        job = self.job_of(pod)
        assert job is not None
        name = job["metadata"]["name"]
        lines = (
            []
            if value(job, "PEER_ADDRESS") or node_of(job) in self.not_listening
            else [f"listening at at-{node_of(job)}"]
        )
        if name in self.connected:
            nodes = {node_of(job), self.connected[name]}
            lines.append(
                f"a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/{'Socket/0' if nodes & self.tcp else 'IBext_v11/0/GDRDMA'}"
            )
            if not value(job, "PEER_ADDRESS"):
                lines.append(
                    json.dumps(
                        {
                            "ranks": 16,
                            "bytes": 1,
                            "seconds": 1.0,
                            "bus_bandwidth": min(self.bandwidths.get(node, 48.0) for node in nodes),
                        }
                    )
                )
        return "\n".join([*lines, ""])

    def job_status(self, name: str, job: Obj) -> Obj:
        message = self.failing.get(node_of(job)) if self._runs(name) else None
        if message is not None:
            why = {"reason": "PodFailurePolicy", "message": message}
            return {"conditions": [{"type": "Failed", "status": "True", **why}]}
        return COMPLETE if name in self._connected_before else {}

    def pod_status(self, name: str, job: Obj) -> tuple[str, Obj]:
        if name in self.devices and not self._runs(name):
            return node_of(job), {"phase": "Pending", **container_status("waiting", reason="ContainerCreating")}
        return super().pod_status(name, job)

    def _runs(self, name: str) -> bool:
        return name in self.devices and self.age(name) >= self.pull_seconds.get(node_of(self.jobs[name]), 0.0)

    def _peer(self, job: Obj) -> str:
        address = value(job, "PEER_ADDRESS")
        if address:
            return next(
                (
                    name
                    for name, one in self.jobs.items()
                    if f"at-{node_of(one)}" == address and not value(one, "PEER_ADDRESS")
                ),
                "",
            )
        return next((name for name, one in self.jobs.items() if value(one, "PEER_ADDRESS") == f"at-{node_of(job)}"), "")


def value(job: Obj, name: str) -> str:
    """The value of an environment variable."""
    found = {entry["name"]: entry.get("value", "") for entry in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    return str(found.get(name, ""))


def go(
    cluster: PairCluster,
    *,
    check_mode: bool = False,
    slice_of: float | None = None,
    resume: Obj | None = None,
    parallel: int = 20,
    timeout: float = 600,
    pool: Obj | None = None,
    **options: t.Any,
) -> Outcome:
    settings = bandwidth.Settings(
        POD,
        parse_pools([pool or POOL]),
        options=RunOptions(namespace="n", parallel=parallel, timeout=timeout),
        **options,
    )
    return bandwidth.run(settings, cluster, cluster.clock(slice_of), check_mode=check_mode, resume=resume)


def states(outcome: Outcome) -> dict[str, str]:
    """States of the nodes that have not passed."""
    return {row["node"]: row["state"] for row in outcome.values["faults"]}


def reasons(outcome: Outcome) -> dict[str, str]:
    return {row["node"]: row["reason"] for row in outcome.values["faults"]}
