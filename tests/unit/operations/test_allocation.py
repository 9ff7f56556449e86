# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pod that uses all GPUs of a node, and a second one that waits, on a cluster in memory that counts devices like a scheduler."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import allocations, names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import allocation
from ansible_collections.hwaccel.gpu.tests.unit.clusters.jobs import node_of
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.gpu.test_device_query import GOOD
from ansible_collections.hwaccel.gpu.tests.unit.operations.allocation_fleets import (
    POOLS,
    SLICE,
    AllocationCluster,
    Edge,
    allocated,
    foreign,
    go,
    hold_of,
    jetson,
    node,
    requested,
)
from ansible_collections.hwaccel.gpu.tests.unit.operations.validation_fleets import POD, fault


def test_one_pod_computes_on_all_gpus_of_a_node() -> None:
    cluster = AllocationCluster(node("a"), node("b", 2))
    outcome = go(cluster)
    assert outcome.values["nodes"] == {"passed": 1, "busy": 0, "skipped": 0, "failed": 1}
    assert fault(outcome)["node"] == "b" and fault(outcome)["reason"] == "the pod sees 2 distinct GPUs, 8 are expected"
    assert [requested(job) for job in cluster.created] == [{s.GPU: 8}, {s.GPU: 2}]
    assert [hold_of(job) for job in cluster.created] == [0, 0]
    assert cluster.jobs == {}
    assert outcome.progress[-1] == "allocation: 1 of 2 passed, 1 failed: b"


def test_a_gpu_that_is_missing_or_fails_to_compute_fails_the_node() -> None:
    cluster = AllocationCluster(node("a"))
    cluster.lost = {"GPU-a-3"}
    assert fault(go(cluster))["reason"] == "the pod sees 7 distinct GPUs, 8 are expected"
    cluster.lost, cluster.faulty = set(), {f"GPU-a-{index}" for index in (1, 2, 5, 6)}
    outcome = go(cluster)
    assert fault(outcome)["reason"] == "no CUDA kernel ran on GPU-a-1, GPU-a-2, GPU-a-5 and 1 more"
    assert "allocation: 1 of 1 nodes failed, 0 allowed" in str(outcome.failure)
    assert go(cluster, max_failed="1").failure is None


def test_a_second_pod_waits_for_the_one_with_all_gpus_and_then_runs() -> None:
    cluster = AllocationCluster(node("a"))
    outcome = go(cluster, exclusivity=True)
    assert outcome.failure is None and outcome.values["nodes"]["passed"] == 1
    first, second = cluster.created
    assert (requested(first), requested(second)) == ({s.GPU: 8}, {s.GPU: 1})
    assert hold_of(first) == 2 * 60 + 60 and hold_of(second) == 0
    # After a killed run, the cluster stops and deletes both Jobs, but not before the timeouts of a running one.
    assert [
        (job["spec"]["activeDeadlineSeconds"], job["spec"]["ttlSecondsAfterFinished"]) for job in cluster.created
    ] == [(960 + 60 + 60, 300)] * 2
    assert cluster.jobs == {}
    assert any(
        "1 pending: a (second pod) (Unschedulable: 0/2 nodes are available: 1 Insufficient nvidia.com/gpu" in line
        for line in outcome.progress
    )


def test_the_second_pod_is_created_after_all_gpus_have_computed() -> None:
    cluster = AllocationCluster(node("a"))
    cluster.busy = 100.0
    assert go(cluster, exclusivity=True).failure is None, (
        "while the first pod computes, the second one would wait longer than its timeout"
    )


def test_a_pod_that_never_ends_is_reported_before_anything_is_created() -> None:
    cluster = AllocationCluster(node("a"))
    endless = POD | {"spec": POD["spec"] | {"restartPolicy": "Always"}}
    with pytest.raises(HwaccelError, match="can never end"):
        allocation.run(allocation.Settings(endless, POOLS, exclusivity=True), cluster, cluster.clock())
    assert cluster.created == []


def test_a_slow_scheduler_is_waited_for_twice() -> None:
    cluster = AllocationCluster(node("a"))
    cluster.slow = 50.0
    assert go(cluster, exclusivity=True).failure is None


def test_mig_slices_are_allocated_exclusively_too() -> None:
    sliced = s.node("a", labels={"pool": "training"})
    sliced["status"]["allocatable"] |= {SLICE: "7"}
    sliced["metadata"]["labels"] |= {
        names.MIG_STRATEGY_LABEL: "mixed",
        names.GPU_PRODUCT_LABEL: "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/mig-1g.10gb.count": "7",
    }
    cluster = AllocationCluster(sliced)
    assert go(cluster, exclusivity=True).values["nodes"]["passed"] == 1
    assert [requested(job) for job in cluster.created] == [{SLICE: 7}, {SLICE: 1}]


def test_an_integrated_gpu_is_allocated_exclusively_too() -> None:
    cluster, pod = Edge(jetson("a")), POD | {"spec": {"containers": [{"name": "cuda", "image": "jetson:1"}]}}
    outcome = go(cluster, exclusivity=True, integrated_definition=pod)
    assert outcome.failure is None and outcome.values["nodes"]["passed"] == 1
    assert [job["spec"]["template"]["spec"]["containers"][0]["image"] for job in cluster.created] == ["jetson:1"] * 2
    assert [requested(job) for job in cluster.created] == [{s.GPU: 1}] * 2
    cluster.overallocated = ["GPU-a-0"]
    reason = fault(go(cluster, exclusivity=True, integrated_definition=pod))["reason"]
    assert reason == "the second pod was never Pending while the first one had all GPUs: it observed Orin"
    cluster.output = GOOD
    assert fault(go(cluster, integrated_definition=pod))["reason"] == "no CUDA kernel ran on it"


def test_two_pods_with_the_same_gpu_are_reported() -> None:
    cluster = AllocationCluster(node("a"))
    cluster.overallocated = ["GPU-a-5"]
    outcome = go(cluster, exclusivity=True)
    assert fault(outcome)["reason"] == "two pods got the same GPU at the same time: GPU-a-5"
    assert "one device plugin serves this resource" in str(outcome.failure)
    assert cluster.jobs == {}


@pytest.mark.parametrize("quick", [False, True])
def test_an_additional_gpu_of_the_second_pod_is_reported(quick: bool) -> None:
    cluster = AllocationCluster(node("a"))
    cluster.overallocated, cluster.quick = ["GPU-a-8"], quick
    assert (
        fault(go(cluster, exclusivity=True))["reason"]
        == "the second pod was never Pending while the first one had all GPUs: it observed GPU-a-8"
    )


def test_a_second_pod_that_waits_for_another_reason_is_reported() -> None:
    cluster = AllocationCluster(node("a"))
    cluster.taint = True
    reason = fault(go(cluster, exclusivity=True))["reason"]
    assert reason.startswith(
        "the second pod was never Pending because of missing GPUs: it was not scheduled within 60 s: Unschedulable: 0/2 nodes"
    )
    assert "untolerated taint" in reason
    assert cluster.jobs == {}


def test_gpus_that_are_not_released_are_reported() -> None:
    cluster = AllocationCluster(node("a"))
    cluster.stuck = True
    outcome = go(cluster, exclusivity=True)
    assert fault(outcome)["reason"].startswith(
        "the second pod did not start after the first one had ended: it was not scheduled within 60 s"
    )
    assert "restart the device plugin there" in fault(outcome)["next_step"]
    assert cluster.jobs == {}


@pytest.mark.parametrize("exclusivity", [False, True])
def test_nodes_with_foreign_gpu_pods_are_busy_and_run_no_test(exclusivity: bool) -> None:
    cluster = AllocationCluster(node("a"), node("b"))
    for pod in (
        foreign("job", "a"),
        foreign("ended", "b", phase="Succeeded"),
        foreign("network", "b", "nvidia.com/hostdev"),
    ):
        cluster.put(pod)
    starting = foreign("starting", "a")
    starting["spec"] = {"nodeName": "a", "containers": [], "initContainers": starting["spec"]["containers"]}
    cluster.put(starting)
    outcome = go(cluster, exclusivity=exclusivity)
    assert outcome.failure is None
    assert outcome.values["nodes"] == {"passed": 1, "busy": 1, "skipped": 0, "failed": 0}
    assert (fault(outcome)["state"], fault(outcome)["reason"]) == (
        "busy",
        "pods hold GPUs there: team/job, team/starting",
    )
    assert {node_of(job) for job in cluster.created} == {"b"}


def test_gpus_that_are_allocated_during_the_run_make_a_node_busy() -> None:
    cluster = AllocationCluster(node("a"))
    template = {"spec": allocated("a")}
    job = {"kind": "Job", "metadata": {"name": "job", "namespace": "team"}, "spec": {"template": template}}
    cluster.devices["job"] = ["GPU-a-0"]
    cluster.on("create", lambda _request: cluster.put(job), times=1)
    outcome = go(cluster, exclusivity=True)
    assert (
        fault(outcome)["state"] == "busy" and "other pods took GPUs there in the meantime" in fault(outcome)["reason"]
    )
    assert list(cluster.jobs) == ["job"]


def test_the_job_reports_a_preempted_pod() -> None:
    cluster = AllocationCluster(node("a"))
    go(cluster)
    (rule,) = cluster.created[0]["spec"]["podFailurePolicy"]["rules"]
    assert (
        rule["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
        and cluster.created[0]["spec"]["backoffLimit"] == 0
    )


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (node("a", 0), "it is not Ready, quarantined, or offers no GPU"),
        (
            node("a") | {"spec": {"taints": [{"key": names.QUARANTINE, "effect": "NoSchedule"}]}},
            "it is not Ready, quarantined, or offers no GPU",
        ),
        (node("a") | {"spec": {"unschedulable": True}}, "it is cordoned"),
        (
            node("a", **{names.GPU_COUNT_LABEL: "8", names.GPU_REPLICAS_LABEL: "4"}),
            "each of its GPUs is shared by up to 4 pods",
        ),
        (jetson("a"), "its GPU is integrated: nvidia-smi does not list it"),
    ],
)
def test_a_node_that_cannot_allocate_all_its_gpus_is_skipped(odd: Obj, message: str) -> None:
    cluster = AllocationCluster(odd)
    outcome = go(cluster, exclusivity=True)
    assert outcome.failure is None and not outcome.changed
    assert (fault(outcome)["state"], fault(outcome)["reason"]) == ("skipped", message)
    assert cluster.created == []


def test_excluded_nodes_and_nodes_without_driver_are_not_tested() -> None:
    cluster, none = (
        AllocationCluster(node("a"), node("b")),
        parse_pools([{"name": "training", "selector": "pool=training", "driver": {"provider": "none"}}]),
    )
    assert go(cluster, exclude=frozenset({"a"})).values["tried"] == ["b"]
    outcome = allocation.run(allocation.Settings(POD, none), cluster, cluster.clock())
    assert outcome.values["tried"] == [] and outcome.warnings == [
        "no node to test: no node reports a GPU, and no declared pool with GPUs has a node"
    ]


def test_the_number_of_parallel_nodes_is_limited() -> None:
    cluster = AllocationCluster(*(node(f"n{index}") for index in range(5)))
    outcome = go(cluster, exclusivity=True, parallel=2)
    assert outcome.values["nodes"]["passed"] == 5
    assert cluster.max_nodes == 2


def test_a_run_continues_where_its_slice_ended() -> None:
    cluster = AllocationCluster(node("a"), node("b"))
    outcome, slices = go(cluster, exclusivity=True, slice_of=0.1), 1
    while outcome.pending is not None:
        outcome, slices = (
            go(cluster, exclusivity=True, slice_of=0.1, resume=json.loads(json.dumps(outcome.pending))),
            slices + 1,
        )
    assert slices > 3
    assert outcome.values["nodes"]["passed"] == 2 and outcome.values["tried"] == ["a", "b"]
    assert len(cluster.created) == 4 and cluster.jobs == {}


def test_check_mode_reports_nodes_to_test_and_missing_permissions() -> None:
    cluster = AllocationCluster(node("a"), node("b"))
    cluster.put(foreign("job", "b"))
    outcome = go(cluster, check_mode=True, exclusivity=True)
    assert outcome.changed and outcome.values["tried"] == ["a"] and outcome.values["nodes"]["busy"] == 1
    assert cluster.created == []
    for verb, resource in (("list", "pods"), ("create", "jobs")):
        cluster.forbidden = {(verb, resource)}
        outcome = go(cluster, check_mode=True, exclusivity=True)
        assert f"permission to {verb} {resource}" in str(outcome.failure)
        assert [(right["verb"], right["resource"]) for right in outcome.values["missing_rights"]] == [(verb, resource)]


def test_a_partitioned_gpu_counts_as_its_slices() -> None:
    slices = "".join(f"  MIG 1g.10gb     Device  {index}: (UUID: MIG-{index + 1})\n" for index in range(2))
    log = f"GPU 0: NVIDIA H100 (UUID: GPU-1)\n{slices}GPU 1: NVIDIA H100 (UUID: GPU-2)\n"
    assert allocations.listed(log) == ["MIG-1", "MIG-2", "GPU-2"]
    assert allocations.deviations("Failed to initialize NVML: Unknown Error\n", 1) == [
        "nvidia-smi -L listed no GPU in the pod"
    ]
