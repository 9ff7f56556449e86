# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bandwidth between nodes, pair by pair, on a cluster in memory that counts devices like a scheduler."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import bandwidth_judgement as judgement
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.bandwidth_judgement import Verdict
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.findings import FAILED, PASSED
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads import rendezvous
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import Run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.jobs import node_of
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.allocation_fleets import (
    foreign,
    jetson,
    node,
    requested,
)
from ansible_collections.hwaccel.gpu.tests.unit.operations.bandwidth_fleets import (
    DISRUPTED,
    POOL,
    RESOURCE,
    PairCluster,
    go,
    reasons,
    states,
    value,
)


def nodes(count: int) -> list[Obj]:
    return [node(f"n{index}") for index in range(count)]


def pairs_of(cluster: PairCluster) -> list[list[str]]:
    return [
        [node_of(first), node_of(second)]
        for first, second in zip(cluster.created[::2], cluster.created[1::2], strict=True)
    ]


def test_two_pods_connect_and_report_their_bandwidth() -> None:
    cluster = PairCluster(*nodes(2))
    outcome = go(cluster)
    assert outcome.failure is None
    assert outcome.values["nodes"] == {"passed": 2, "busy": 0, "skipped": 0, "suspect": 0, "failed": 0}
    assert outcome.values["pairs"] == [
        {"nodes": ["n0", "n1"], "state": "passed", "bandwidth": 48.0, "networks": ["IBext_v11"], "reason": ""}
    ]
    first, second = cluster.created
    assert requested(first) == requested(second) == {s.GPU: 8, RESOURCE: 1}
    assert [[value(job, name) for name in ("DEVICES", "FIRST_RANK", "RANKS")] for job in cluster.created] == [
        ["8", "0", "16"],
        ["8", "8", "16"],
    ]
    assert value(first, "PATIENCE_SECONDS") == str(60 + 300 + 600)
    assert (value(first, "PEER_ADDRESS"), value(second, "PEER_ADDRESS")) == ("", "at-n0")
    assert cluster.jobs == {}
    assert outcome.progress[-1] == "bandwidth between nodes: 2 of 2 passed"


def test_pods_may_lock_memory_only_for_rdma() -> None:
    cluster = PairCluster(*nodes(2))
    go(cluster)
    spec = cluster.created[0]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "runAsUser": 0,
        "runAsNonRoot": False,
        "capabilities": {"add": ["IPC_LOCK"]},
    }
    assert (
        spec["volumes"][0]["emptyDir"]["medium"] == "Memory" and container["volumeMounts"][0]["mountPath"] == "/dev/shm"
    )
    cluster, pool = (
        PairCluster(*nodes(2)),
        POOL
        | {"interconnect": {"transport": "IB", "environment": {"NCCL_IB_HCA": "mlx5"}, "annotations": {"a/b": "c"}}},
    )
    assert go(cluster, pool=pool).failure is None
    template = cluster.created[0]["spec"]["template"]
    assert "securityContext" not in template["spec"]["containers"][0] and requested(cluster.created[0]) == {s.GPU: 8}
    assert (template["metadata"]["annotations"], value(cluster.created[0], "NCCL_IB_HCA")) == ({"a/b": "c"}, "mlx5")


def test_a_slow_node_is_identified_by_a_test_with_a_passed_one() -> None:
    cluster = PairCluster(*nodes(4))
    cluster.bandwidths = {"n2": 12.0}
    outcome = go(cluster)
    assert [pair["nodes"] for pair in outcome.values["pairs"]] == [
        ["n0", "n1"],
        ["n2", "n3"],
        ["n2", "n0"],
        ["n3", "n1"],
    ]
    assert (outcome.values["failed_nodes"], states(outcome)) == (["n2"], {"n2": "failed"})
    assert reasons(outcome)["n2"] == "with n3: 12 GB/s bus bandwidth, 40 GB/s are expected"
    assert "bandwidth between nodes: 1 of 4 nodes failed, 0 allowed" in str(outcome.failure)
    assert go(cluster, max_failed="1").failure is None


def test_in_a_single_pair_both_nodes_are_suspect() -> None:
    cluster = PairCluster(*nodes(2))
    cluster.tcp = {"n0"}
    outcome = go(cluster)
    assert (outcome.values["failed_nodes"], states(outcome)) == ([], {"n0": "suspect", "n1": "suspect"})
    assert reasons(outcome)["n0"].startswith("with n1: NCCL used NET/Socket, NET/IB is expected (")
    assert "1 of 2 nodes failed, 0 allowed" in str(
        outcome.failure
    ) and "one of the nodes n0 and n1 (pool training)" in str(outcome.failure)
    assert go(cluster, max_failed="1").failure is None, "one of the two nodes is healthy"


def test_two_nodes_that_fail_only_with_each_other_are_suspect() -> None:
    pairs = [("a", "b", PASSED), ("c", "d", FAILED), ("c", "a", PASSED), ("d", "b", PASSED)]
    found = judgement.findings(
        "abcd", [Verdict((one, other), state, "12 GB/s" if state == FAILED else "") for one, other, state in pairs]
    )
    assert {node: finding.state for node, finding in found.items()} == {
        "a": "passed",
        "b": "passed",
        "c": "suspect",
        "d": "suspect",
    }
    assert found["c"].reason == "with d: 12 GB/s (each passed with another node)"


def test_with_an_odd_number_every_node_is_tested_and_none_twice_at_once() -> None:
    cluster = PairCluster(*nodes(5))
    outcome = go(cluster)
    assert outcome.values["nodes"]["passed"] == 5
    assert [pair["nodes"] for pair in outcome.values["pairs"]] == [["n0", "n1"], ["n2", "n3"], ["n4", "n0"]]
    assert cluster.max_nodes == 4
    cluster.bandwidths = {"n4": 3.0}
    assert states(go(cluster)) == {"n4": "failed"}, "its partner has passed before"


def test_a_pod_that_never_listens_fails_its_node_and_its_partner_is_tested_again() -> None:
    cluster = PairCluster(*nodes(4))
    cluster.not_listening = {"n0"}
    outcome = go(cluster)
    assert states(outcome) == {"n0": "failed"}
    assert reasons(outcome)["n0"].startswith("with n1: the pod on n0: it did not end within 600 s")
    assert [pair["nodes"] for pair in outcome.values["pairs"]] == [["n0", "n1"], ["n2", "n3"], ["n1", "n2"]]
    assert cluster.jobs == {}


def test_a_node_whose_only_partner_failed_before_is_skipped() -> None:
    cluster = PairCluster(*nodes(2))
    cluster.not_listening = {"n0"}
    outcome = go(cluster)
    assert states(outcome) == {"n0": "failed", "n1": "skipped"}
    assert reasons(outcome)["n1"] == "n0 failed before the two pods could connect"


def test_when_one_pod_fails_the_other_is_stopped_immediately() -> None:
    cluster = PairCluster(*nodes(2))
    cluster.failing = {"n1": "exit code 1"}
    outcome = go(cluster)
    assert reasons(outcome)["n0"].startswith("with n1: the pod on n1: PodFailurePolicy: exit code 1 (")
    assert cluster.time.now < 1000 + 60, "the timeout of a pod is not exhausted"
    assert cluster.jobs == {}


def test_the_first_pod_waits_while_the_image_of_the_second_is_pulled() -> None:
    cluster = PairCluster(*nodes(2))
    cluster.pull_seconds = {"n0": 250.0, "n1": 290.0}
    assert go(cluster, timeout=100).failure is None
    assert cluster.created[0]["spec"]["activeDeadlineSeconds"] == 2 * (60 + 300 + 100) + 60
    cluster.pull_seconds = {"n1": 400.0}
    outcome = go(cluster, timeout=100)
    assert (
        states(outcome) == {"n1": "failed", "n0": "skipped"}
        and "it did not start within 300 s" in reasons(outcome)["n1"]
    )


def test_busy_nodes_run_no_test_and_a_node_without_partner_is_skipped() -> None:
    cluster = PairCluster(*nodes(2))
    cluster.put(foreign("job", "n0"))
    outcome = go(cluster)
    assert outcome.failure is None and cluster.created == []
    assert reasons(outcome) == {
        "n0": "pods hold GPUs there: team/job",
        "n1": "no other node of its pool can be tested with it",
    }
    assert states(outcome) == {"n0": "busy", "n1": "skipped"}


@pytest.mark.parametrize("preempted_node", ["n0", "n1"])
def test_a_preempted_pod_is_no_failure(preempted_node: str) -> None:
    cluster = PairCluster(*nodes(2))
    cluster.failing = {preempted_node: DISRUPTED}
    outcome = go(cluster)
    assert outcome.failure is None and states(outcome) == {"n0": "busy", "n1": "busy"}
    assert reasons(outcome)["n0"].startswith(f"the pod on {preempted_node} was preempted")


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (node("n9", 0), "it is not Ready, quarantined, or offers no GPU"),
        (node("n9") | {"spec": {"unschedulable": True}}, "it is cordoned"),
        (jetson("n9"), "its GPU is integrated"),
        (
            node("n9", **{names.GPU_PRODUCT_LABEL: "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}),
            "its GPUs are partitioned: NCCL does not support slices",
        ),
    ],
)
def test_a_node_that_cannot_be_tested_is_skipped(odd: Obj, message: str) -> None:
    outcome = go(PairCluster(*nodes(2), odd))
    assert outcome.failure is None and reasons(outcome) == {"n9": message}


def test_pools_without_an_interconnect_are_not_tested() -> None:
    cluster = PairCluster(*nodes(2))
    outcome = go(cluster, pool={"name": "training", "selector": "pool=training"})
    assert cluster.created == [] and outcome.values["tried"] == [] and not outcome.changed
    assert outcome.warnings == ["no node to test: no pool declares an interconnect, or none of its nodes reports a GPU"]


def test_the_number_of_parallel_pairs_is_limited() -> None:
    cluster = PairCluster(*nodes(8))
    assert go(cluster, parallel=2).values["nodes"]["passed"] == 8
    assert cluster.max_nodes == 4


def test_a_run_continues_where_its_slice_ended() -> None:
    cluster = PairCluster(*nodes(4))
    cluster.bandwidths = {"n3": 12.0}
    outcome, slices = go(cluster, slice_of=0.1), 1
    while outcome.pending is not None:
        outcome, slices = go(cluster, slice_of=0.1, resume=json.loads(json.dumps(outcome.pending))), slices + 1
    assert slices > 4
    assert states(outcome) == {"n3": "failed"} and outcome.values["tried"] == ["n0", "n1", "n2", "n3"]
    assert len(pairs_of(cluster)) == 4 and cluster.jobs == {}


def test_check_mode_reports_nodes_to_test_and_missing_permissions() -> None:
    cluster = PairCluster(*nodes(4))
    cluster.put(foreign("job", "n3"))
    outcome = go(cluster, check_mode=True)
    assert outcome.changed and outcome.failure is None and cluster.created == []
    assert outcome.values["tried"] == ["n0", "n1", "n2"] and outcome.values["pairs"] == []
    for verb, resource in (("list", "pods"), ("create", "jobs")):
        cluster.forbidden = {(verb, resource)}
        assert f"permission to {verb} {resource}" in str(go(cluster, check_mode=True).failure)


def test_a_failed_run_deletes_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = PairCluster(*nodes(2))

    def lose_connection(self: Run, *_arguments: object) -> None:
        if len(cluster.created) == 2:
            raise HwaccelError("the server is unreachable", "", "", "")

    monkeypatch.setattr(rendezvous.Rendezvous, "_show", lose_connection)
    with pytest.raises(HwaccelError):
        go(cluster)
    assert len(cluster.created) == 2 and cluster.jobs == {}
