# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of nodes by pods, on a cluster in memory whose Jobs end immediately, as the test defines."""

from __future__ import annotations

import json
import threading
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, proofs
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import validation
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.operations.validation_fleets import (
    GPU,
    LOG,
    POD,
    POOLS,
    ValidationCluster,
    cordoned,
    fault,
    go,
    node,
)


def slices(cluster: ValidationCluster, max_slices: int = 99, **options: t.Any) -> list[Outcome]:
    """Slices of ten seconds like those of the action plugin, with their state as JSON; after `max_slices` slices the run is killed."""
    settings = validation.Settings(POD, POOLS, options=RunOptions(namespace="n", parallel=1), **options)
    outcomes, resume = [], {}
    while len(outcomes) < max_slices and (not outcomes or outcomes[-1].pending is not None):
        outcomes.append(validation.run(settings, cluster, cluster.clock(10), resume=resume))
        resume = json.loads(json.dumps(outcomes[-1].pending))
    return outcomes


def test_a_node_that_computes_is_proven_and_not_tested_again() -> None:
    cluster = ValidationCluster(node("a"), node("b"))
    outcome = go(cluster)
    assert outcome.failure is None and outcome.changed
    assert outcome.values["nodes"] == {"passed": 2, "unproven": 0, "failed": 0}
    assert outcome.values["pools"][0]["gpus"] == ["NVIDIA H100 80GB HBM3"]
    assert (cluster.proof("a")["gpu"], cluster.proof("a")["driver"]) == ("NVIDIA H100 80GB HBM3", "580.178.04")
    assert cluster.jobs == {}
    container = cluster.created[0]["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    written = len(cluster.writes)
    again = go(cluster)
    assert not again.changed and again.values["nodes"]["passed"] == 2
    assert (len(cluster.created), len(cluster.writes)) == (2, written)
    assert go(cluster, always=True).values["validated"] == ["a", "b"]


@pytest.mark.parametrize("change", ["boot", "driver", "config", "gpus", "image", "declaration"])
def test_a_proof_is_invalid_after_a_change(change: str) -> None:
    cluster, pools = ValidationCluster(node("a")), POOLS
    go(cluster)
    current = cluster.stored("Node", "a")
    definition = None
    if change == "boot":
        current["status"]["nodeInfo"]["bootID"] = "another"
    elif change == "driver":
        current["metadata"]["labels"][names.DRIVER_VERSION_LABEL] = "595.91.07"
        cluster.printed["a"] = LOG.replace("580.178.04", "595.91.07")
    elif change == "config":
        current["metadata"]["labels"][names.PLUGIN_CONFIG_LABEL] = "shared"
    elif change == "gpus":
        current["status"]["allocatable"]["nvidia.com/gpu"] = "7"
        pools = parse_pools([{"name": "training", "selector": "pool=training", "gpu": GPU | {"count": 7}}])
    elif change == "declaration":
        pools = parse_pools([{"name": "training", "selector": "pool=training", "gpu": GPU | {"ecc": True}}])
    else:
        definition = POD | {"spec": {"containers": [{"name": "cuda", "image": "sample:2"}]}}
    before = cluster.proof("a")["subject"]
    assert go(cluster, definition=definition, pools=pools).values["validated"] == ["a"]
    assert cluster.proof("a")["subject"] != before
    assert go(cluster, definition=definition, pools=pools).values["validated"] == []


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (LOG.replace("Test PASSED", "Result verification failed"), "no CUDA kernel ran"),
        (LOG.partition("\n")[2], "nvidia-smi listed no GPU"),
        (
            LOG.replace("H100 80GB HBM3", "A100-SXM4-40GB"),
            "the pod sees a NVIDIA A100-SXM4-40GB, NVIDIA-H100-80GB-HBM3 is expected",
        ),
        (LOG.replace("580.178.04", "595.91.07"), "the pod sees driver 595.91.07, the node's label is 580.178.04"),
        (LOG.replace("81559", "40960"), "the pod sees 40960 MiB of memory, 81559 MiB are expected"),
    ],
)
def test_the_pod_must_observe_the_expected_gpus(log: str, message: str) -> None:
    cluster = ValidationCluster(node("a"))
    go(cluster)
    assert cluster.proof("a")
    cluster.printed["a"] = log
    outcome = go(cluster, always=True)
    assert message in fault(outcome)["reason"] and fault(outcome)["link"] == "cuda"
    assert "validation: 1 of 1 nodes failed, 0 allowed" in str(outcome.failure) and message in str(outcome.failure)
    assert cluster.proof("a") == {}, "a node that has failed is no longer proven"
    assert go(cluster, always=True, max_failed="1").failure is None


def test_the_fleet_is_read_in_the_first_slice_only() -> None:
    cluster = ValidationCluster(node("a"), node("b"), node("c"), node("d", ready=False))
    cluster.takes = 15.0
    *between, last = slices(cluster)
    assert len(between) >= 4
    assert cluster.read == ["Node"]
    assert last.values["nodes"] == {"passed": 3, "unproven": 0, "failed": 1}
    assert (last.values["pools"][0]["seen"], last.values["pools"][0]["nodes"]) == (32, 4)
    assert [fault["node"] for fault in last.values["faults"]] == ["d"]


def test_the_state_between_slices_has_only_what_is_still_needed() -> None:
    """It has the finding of a tested node without its log, and the names of waiting nodes."""
    cluster = ValidationCluster(node("a"), node("b"), node("c", ready=False))
    cluster.takes = 15.0
    first, second, *_rest = (outcome.pending for outcome in slices(cluster))
    assert first is not None and second is not None
    assert set(first) == {"began", "resource_by_node", "integrated", "fleet", "findings", "run"}
    assert first["resource_by_node"] == {"a": "nvidia.com/gpu", "b": "nvidia.com/gpu"}
    assert set(first["findings"]) == {"c"} and set(first["run"]["active"]) == {"a"}
    assert second["findings"]["a"]["state"] == "passed"
    assert second["run"]["done"] == {"a": {"name": "a", "state": "succeeded"}}
    assert second["fleet"] == first["fleet"]
    assert "Test PASSED" not in json.dumps(second)


def test_proofs_of_a_killed_run_are_kept() -> None:
    cluster = ValidationCluster(node("a"), node("b"), node("c"))
    cluster.takes = 15.0
    slices(cluster, 2)
    assert (cluster.proof("a")["gpu"], cluster.proof("b"), cluster.proof("c")) == ("NVIDIA H100 80GB HBM3", {}, {})
    last = slices(cluster)[-1]
    assert last.values["validated"] == ["b", "c"] and last.values["nodes"]["passed"] == 3


def test_proofs_are_written_in_parallel() -> None:
    cluster = ValidationCluster(node("a"), node("b"))
    both = threading.Barrier(2, timeout=240)
    cluster.on("patch", lambda _request: both.wait())
    assert go(cluster).values["nodes"]["passed"] == 2


def test_a_proof_describes_the_node_when_its_pod_has_ended() -> None:
    cluster = ValidationCluster(node("a"))
    cluster.takes = 15.0
    (first,) = slices(cluster, 1)
    cluster.stored("Node", "a")["status"]["nodeInfo"]["bootID"] = "another"
    settings = validation.Settings(POD, POOLS, options=RunOptions(namespace="n"))
    validation.run(settings, cluster, cluster.clock(), resume=first.pending)
    assert cluster.proof("a")["subject"] == proofs.subject(
        reduce_node(cluster.stored("Node", "a")), POOLS[0], "sample:1"
    )


def test_a_node_that_leaves_the_cluster_is_reported() -> None:
    cluster = ValidationCluster(node("a"), node("b"))
    cluster.takes = 15.0
    (first,) = slices(cluster, 1)
    cluster.remove("Node", "a")
    settings = validation.Settings(POD, POOLS, options=RunOptions(namespace="n"))
    outcome = validation.run(settings, cluster, cluster.clock(), resume=first.pending)
    assert (fault(outcome)["node"], fault(outcome)["state"], fault(outcome)["reason"]) == (
        "a",
        "unproven",
        "the node has left the cluster in the meantime",
    )
    assert [name for name, _patch in cluster.patched] == ["b"]


@pytest.mark.parametrize(
    ("declared", "observed", "message", "next_step"),
    [
        (
            {"ecc": True},
            "Disabled, Disabled",
            "ECC mode is Disabled, Enabled is expected",
            "run nvidia-smi -e 1 on the node, and reboot it",
        ),
        (
            {"ecc": False},
            "Enabled, Disabled",
            "ECC mode is Enabled, Disabled is expected",
            "run nvidia-smi -e 0 on the node, and reboot it",
        ),
        (
            {"ecc": True},
            "[N/A], [N/A]",
            "ECC mode is [N/A], Enabled is expected",
            "correct gpu.ecc of the pool: this GPU does not have that mode",
        ),
        (
            {"mig": True},
            "Enabled, Disabled",
            "MIG mode is Disabled, Enabled is expected",
            "run nvidia-smi -mig 1 on the node while its GPUs are not in use",
        ),
        (
            {"mig": False},
            "Enabled, Enabled",
            "MIG mode is Enabled, Disabled is expected",
            "run nvidia-smi -mig 0 on the node",
        ),
    ],
)
def test_modes_must_match_the_declaration_of_the_pool(
    declared: Obj, observed: str, message: str, next_step: str
) -> None:
    cluster = ValidationCluster(node("a"))
    cluster.printed["a"] = LOG.replace("Enabled, Disabled", observed)
    pools = parse_pools([{"name": "training", "selector": "pool=training", "gpu": GPU | declared}])
    row = fault(go(cluster, pools=pools))
    assert (row["state"], row["reason"]) == ("failed", message)
    assert row["next_step"].startswith(next_step)
    assert go(cluster).failure is None, "without a declaration both are valid"


@pytest.mark.parametrize(
    ("count", "message"),
    [("0", ""), ("[N/A]", ""), ("2", "uncorrectable ECC errors of the GPU's memory since its driver was loaded: 2")],
)
def test_memory_errors_of_a_gpu_are_reported_although_a_kernel_computes(count: str, message: str) -> None:
    cluster = ValidationCluster(node("a"))
    cluster.printed["a"] = LOG.replace("Enabled, Disabled", f"Enabled, Disabled, {count}")
    outcome = go(cluster)
    assert [row["reason"] for row in outcome.values["faults"]] == ([message] if message else [])
    assert all("if it occurs again, replace the GPU" in row["next_step"] for row in outcome.values["faults"])


def test_the_next_step_of_a_failed_pod_depends_on_its_log() -> None:
    cluster = ValidationCluster(node("a"), node("b"))
    cluster.failing = {"a", "b"}
    cluster.printed = {"a": "Failed to initialize NVML: Driver/library version mismatch\n", "b": "no such words\n"}
    first, second = go(cluster).values["faults"]
    assert first["next_step"].startswith("kernel module and libraries have different versions")
    assert second["next_step"].startswith("check the pod's log")


def test_an_admission_error_of_the_kubelet_is_a_fault_of_the_device_plugin() -> None:
    cluster = ValidationCluster(node("a"))
    cluster.refusing = {"a"}
    found = fault(go(cluster))
    assert (found["link"], found["reason"]) == (
        "plugin",
        "UnexpectedAdmissionError: Allocate failed due to no healthy devices present",
    )
    assert "device plugin" in found["next_step"] and found["log_tail"] == ""


@pytest.mark.parametrize("observed", ["Disabled, Disabled", "[N/A], [N/A]"])
def test_a_mode_that_a_gpu_does_not_have_counts_as_disabled(observed: str) -> None:
    cluster = ValidationCluster(node("a"))
    cluster.printed["a"] = LOG.replace("Enabled, Disabled", observed)
    pools = parse_pools([{"name": "training", "selector": "pool=training", "gpu": GPU | {"ecc": False, "mig": False}}])
    assert go(cluster, pools=pools).failure is None


def test_memory_without_permission_to_read_is_not_checked() -> None:
    cluster = ValidationCluster(node("a"))
    cluster.printed["a"] = LOG.replace("81559 MiB", "[Insufficient Permissions]")
    assert go(cluster).failure is None and cluster.proof("a")["gpu"] == "NVIDIA H100 80GB HBM3"


def test_a_busy_node_has_not_failed_and_keeps_its_proof() -> None:
    cluster = ValidationCluster(node("a"), node("b"))
    go(cluster)
    proof, cluster.full = cluster.proof("a"), {"a"}
    outcome = go(cluster, always=True)
    assert outcome.failure is None
    assert outcome.values["nodes"] == {"passed": 1, "unproven": 1, "failed": 0}
    assert fault(outcome)["reason"].startswith(f"busy, last proof of {proof['at']}: it was not scheduled within 60 s")
    assert cluster.proof("a") == proof
    assert cluster.jobs == {}


@pytest.mark.parametrize(
    ("odd", "state", "message"),
    [
        (node("a", ready=False), "failed", "the node is not Ready"),
        (
            node("a", taints=[{"key": names.QUARANTINE, "value": "driver", "effect": "NoSchedule"}]),
            "failed",
            "it is quarantined at gate driver",
        ),
        (cordoned("a"), "unproven", "it is cordoned; never proven"),
    ],
)
def test_no_pod_is_created_on_a_node_that_cannot_run_it(odd: Obj, state: str, message: str) -> None:
    cluster = ValidationCluster(odd)
    outcome = go(cluster)
    assert (fault(outcome)["state"], fault(outcome)["reason"].partition(":")[0]) == (state, message)
    assert cluster.created == []
    assert (outcome.failure is None) == (state == "unproven")


def test_a_node_that_a_pool_names_must_exist() -> None:
    cluster = ValidationCluster(node("a"))
    pools = parse_pools([{"name": "training", "nodes": ["a", "b"], "gpu": GPU}])
    outcome = validation.run(
        validation.Settings(POD, pools, options=RunOptions(namespace="n")), cluster, cluster.clock()
    )
    assert (fault(outcome)["node"], fault(outcome)["reason"]) == ("b", "the cluster has no such node")
    assert outcome.values["nodes"] == {"passed": 1, "unproven": 0, "failed": 1}
    assert go(cluster, exclude=frozenset({"a"})).values["nodes"]["passed"] == 0


def test_check_mode_reports_nodes_to_test_and_creates_nothing() -> None:
    cluster = ValidationCluster(node("a"), node("b", ready=False))
    outcome = go(cluster, check_mode=True)
    assert outcome.values["validated"] == ["a"] and outcome.changed and outcome.failure is None
    assert cluster.created == [] and cluster.writes == []
    cluster.forbidden = {("create", "jobs")}
    assert "permission to create jobs.batch is missing" in str(go(cluster, check_mode=True).failure)
    cluster.forbidden |= {("patch", "nodes")}
    outcome = go(cluster, check_mode=True)
    assert "create jobs.batch" in str(outcome.failure) and "patch nodes" in str(outcome.failure) and not outcome.changed
    assert {right["resource"] for right in outcome.values["missing_rights"]} == {"jobs", "nodes"}


def test_proofs_are_removed() -> None:
    cluster = ValidationCluster(node("a"), node("b"))
    go(cluster)
    assert validation.forget(cluster, check_mode=True) == ["a", "b"]
    assert cluster.proof("a")
    assert validation.forget(cluster) == ["a", "b"]
    assert validation.forget(cluster) == [] and cluster.proof("a") == {}


def test_an_invalid_annotation_is_no_proof() -> None:
    for text in ("", "no JSON", "[]", '{"subject": 7}'):
        assert proofs.parse(text).at == ""
    cluster = ValidationCluster(node("a"))
    cluster.stored("Node", "a")["metadata"]["annotations"] = {names.PROOF: "{"}
    assert go(cluster).values["validated"] == ["a"]
    facts = reduce_node(cluster.stored("Node", "a"))
    assert proofs.parse(facts.proof).subject == proofs.subject(facts, POOLS[0], "sample:1")


#: Tolerations of our agents, and earlier ones of the pod.
AS_AGENTS, GPU_ONLY = (
    [{"operator": "Exists", "effect": "NoSchedule"}],
    [{"key": "nvidia.com/gpu", "operator": "Exists"}],
)


@pytest.mark.parametrize(
    ("tolerations", "taint", "message"),
    [
        (AS_AGENTS, {"key": "gpu", "value": "true", "effect": "NoSchedule"}, ""),
        (GPU_ONLY, {"key": "gpu", "value": "true", "effect": "NoSchedule"}, "gpu=true:NoSchedule"),
        (AS_AGENTS, {"key": "gpu", "effect": "NoExecute"}, "gpu:NoExecute"),
        (GPU_ONLY, {"key": "gpu", "effect": "PreferNoSchedule"}, ""),
        (GPU_ONLY, {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}, ""),
    ],
)
def test_a_taint_that_the_pod_does_not_tolerate_is_reported_without_a_pod(
    tolerations: list[Obj], taint: Obj, message: str
) -> None:
    cluster = ValidationCluster(node("a", taints=[taint]), node("b"))
    definition = POD | {"spec": {**POD["spec"], "tolerations": tolerations}}
    assert go(cluster, definition=definition).values["failed_nodes"] == (["a"] if message else [])
    ran, written = len(cluster.created), len(cluster.writes)
    again = go(cluster, definition=definition)
    assert not again.changed and (len(cluster.created), len(cluster.writes)) == (ran, written)
    assert not message or (
        fault(again)["reason"] == f"the node has taint {message}, which the pod does not tolerate"
        and "a" not in again.values["validated"]
    )


def test_a_node_that_fails_again_has_the_same_result_without_changes() -> None:
    """Its pod is created and deleted; everything else is unchanged."""
    cluster = ValidationCluster(node("a"))
    cluster.failing.add("a")
    first, second = go(cluster), go(cluster)
    remaining = [write for write in cluster.writes if " Job " not in write]
    assert (first.changed, second.changed, remaining) == (False, False, [])
    assert fault(first) | {"pod": ""} == fault(second) | {"pod": ""}
    cluster.failing.clear()
    assert go(cluster).changed and cluster.proof("a")
    cluster.failing.add("a")
    assert go(cluster, always=True).changed and not go(cluster, always=True).changed, "its proof is removed once"
    assert not any(outcome.changed for outcome in slices(cluster))
