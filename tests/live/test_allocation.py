# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that validate whole nodes. One pod holds all GPUs, and the scheduler keeps a second one pending. For the bandwidth between nodes,
pods on two nodes connect to each other, and the node that has fallen back to TCP is reported.

Runtime: one run of site, four of validate.
"""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import allocation
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import AGENTS, GPU, Cluster
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

FLEET: dict[str, t.Any] = {
    "time_scale": 0.01,
    "pools": [
        {
            "name": "gpu",
            "count": 3,
            "labels": {"pool": "gpu"},
            "kernel": "6.8.0-134-generic",
            "gpu": GPU,
            "interconnect": {"transport": "IB", "bandwidth": 46.5},
            "nodes": {"gpu-2": {"interconnect": {"transport": "Socket", "bandwidth": 1.1}}},
        },
        {
            "name": "jetson",
            "count": 1,
            "labels": {"pool": "jetson"},
            "architecture": "arm64",
            "kernel": "5.15.148-tegra",
            "host_driver": "540.4.0",
            "gpu": {"product": "Orin", "count": 1, "memory_mib": 15388},
        },
    ],
}
POOLS = [
    {"name": "training", "selector": "pool=gpu", "gpu": GPU, "interconnect": {"transport": "IB", "min_bandwidth": 40}},
    {
        "name": "edge",
        "selector": "pool=jetson",
        "gpu": {"product": "Orin", "count": 1, "memory_mib": 16384},
        "driver": {"provider": "host"},
    },
]
NODES = ["gpu-0", "gpu-1", "gpu-2", "jetson-0"]
#: Nodes of the pool that declares its interconnect.
LINKED = NODES[:3]


def validate(cluster: Cluster, *arguments: str, **variables: t.Any) -> site.Run:
    """The first pod stays for twice the timeout and a minute of simulated time, of which this sandbox needs a hundredth."""
    return cluster.run(
        "validate", *arguments, gpu_validation_always=False, gpu_validation_schedule_timeout=6000, **variables
    )


def result(run: site.Run, module: str) -> dict[str, t.Any]:
    results = run.results(module)
    assert len(results) == 1, run.stdout[-6000:]
    return results[0]


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    cluster = Cluster(make_sandbox(FLEET), hwaccel_pools=POOLS)
    cluster.deploy(hwaccel_wait_timeout=240)
    return cluster


def test_check_mode_reports_the_nodes_and_creates_nothing(cluster: Cluster) -> None:
    audit = AuditLog(cluster.sandbox.audit_log)
    run = validate(cluster, "--check", gpu_validation_exclusivity=True, gpu_validation_bandwidth=True)
    assert run.rc == 0, run.stdout[-4000:]
    for module, tried in (("node_allocation", NODES), ("node_bandwidth", LINKED)):
        outcome = result(run, module)
        assert outcome["tried"] == tried and outcome["missing_rights"] == []
    assert [str(request) for request in audit.our_writes()] == []


def test_a_second_pod_is_pending_until_all_gpus_are_free_again(cluster: Cluster) -> None:
    run = validate(cluster, gpu_validation_exclusivity=True)
    assert run.rc == 0, run.stdout[-6000:]
    assert result(run, "node_allocation")["nodes"] == {"passed": 4, "busy": 0, "skipped": 0, "failed": 0}
    proof = json.loads(cluster.node("jetson-0")["metadata"]["annotations"][names.PROOF])
    assert (proof["gpu"], proof["driver"]) == ("Orin", "CUDA 12.6")
    assert "Insufficient nvidia.com/gpu" in run.stdout, "the progress reports why a pod waits"
    assert "one: allocation: 4 of 4 passed" in run.stdout
    assert cluster.jobs() == []


def test_one_pod_computes_on_all_gpus_and_nodes_in_use_are_busy(cluster: Cluster) -> None:
    with cluster.user_pod("gpu-1", gpus=1):
        run = validate(cluster, gpu_validation_all_gpus="true")
    assert run.rc == 0, run.stdout[-6000:]
    outcome = result(run, "node_allocation")
    assert outcome["nodes"] == {"passed": 3, "busy": 1, "skipped": 0, "failed": 0}
    (row,) = outcome["faults"]
    assert (row["node"], row["reason"]) == ("gpu-1", "pods hold GPUs there: default/job")
    assert cluster.jobs() == []


def test_a_node_with_more_gpus_than_its_pod_sees_has_failed(cluster: Cluster) -> None:
    """This calls the module's operation, because in the playbook an earlier check fails for the same reason."""
    script = stack.load(stack.TOP / "roles" / "gpu_validation" / "vars" / "main.yml")[
        "__gpu_validation_all_gpus_script"
    ]
    pod = stack.validation_pod(script=script)
    more = parse_pools([POOLS[0] | {"gpu": GPU | {"count": 9}}, POOLS[1]])
    outcome = allocation.run(
        allocation.Settings(pod, more, frozenset(NODES[1:]), options=RunOptions(AGENTS)), cluster.client, Clock()
    )
    assert outcome.values["failed_nodes"] == ["gpu-0"]
    assert "node gpu-0 (pool training): the pod sees 8 distinct GPUs, 9 are expected" in str(outcome.failure)
    assert cluster.jobs() == []


def test_the_node_that_has_fallen_back_to_tcp_is_named(cluster: Cluster) -> None:
    run = validate(cluster, gpu_validation_bandwidth=True)
    outcome = result(run, "node_bandwidth")
    assert run.rc != 0 and outcome["failed_nodes"] == ["gpu-2"]
    assert [(pair["nodes"], pair["state"], pair["bandwidth"], pair["networks"]) for pair in outcome["pairs"]] == [
        (["gpu-0", "gpu-1"], "passed", 46.5, ["IB"]),
        (["gpu-2", "gpu-0"], "failed", 1.1, ["Socket"]),
    ]
    message = "node gpu-2 (pool training): with gpu-0: 1.1 GB/s bus bandwidth, 40 GB/s are expected; NCCL used NET/Socket, NET/IB is expected"
    assert message in run.stdout, run.stdout[-6000:]
    assert "one: bandwidth between nodes: 2 of 3 passed, 1 failed: gpu-2" in run.stdout
    assert cluster.jobs() == []
