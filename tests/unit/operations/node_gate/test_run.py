# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that a gate evaluates, and its result for a fleet."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import parse_plugin_config
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import (
    fleet,
    healthy,
    settings,
    training,
)


def test_a_healthy_fleet_passes_immediately_and_nothing_is_written(clock: Time) -> None:
    cluster = fleet(16, clock=clock)
    result = run(settings(), cluster)
    assert result.values["nodes"] == {"passed": 16, "waiting": 0, "failed": 0, "unknown": 0}
    assert result.failure is None
    assert not result.changed
    assert cluster.writes == []
    assert result.values["pools"] == [
        {
            "pool": "training",
            "nodes": 16,
            "expected": 128,
            "seen": 128,
            "resources": {s.GPU: {"expected": 128, "seen": 128}},
            "passed": 16,
            "waiting": 0,
            "failed": 0,
            "unknown": 0,
            "settled": clock.now,
            "simulated": 0,
            "kernels": [s.KERNEL],
            "drivers": ["580"],
        }
    ]


def test_a_driver_branch_is_not_listed_beside_a_full_version_of_it(clock: Time) -> None:
    labeled = s.node("training-0", labels={"pool": "training", names.DRIVER_VERSION_LABEL: "580.178.04"}, allocatable=8)
    cluster = NodeCluster(
        [labeled, training(1, allocatable=8)], [*healthy("training-0"), *healthy("training-1")], on_idle=clock.advance
    )
    assert run(settings(), cluster).values["pools"][0]["drivers"] == ["580.178.04"]


def test_a_precompiled_driver_has_its_version_before_gpu_feature_discovery(clock: Time) -> None:
    driver = s.driver("training-0")
    driver["metadata"]["labels"] = {names.DESIRED_DRIVER_VERSION_LABEL: "595.91.07"}
    driver["spec"]["containers"][0]["image"] = "nvcr.io/nvidia/driver:595-6.8.0-134-generic-ubuntu24.04"
    cluster = NodeCluster(
        [training(0, allocatable=8)],
        [driver, s.toolkit("training-0"), s.validator("training-0")],
        on_idle=clock.advance,
    )
    assert run(settings(), cluster).values["pools"][0]["drivers"] == ["595.91.07"]


def test_a_missing_gpu_is_reported(clock: Time) -> None:
    cluster = NodeCluster(
        [training(number, allocatable=7 if number == 5 else 8) for number in range(16)],
        [pod for number in range(16) for pod in healthy(f"training-{number}")],
        on_idle=clock.advance,
    )
    result = run(settings("devices"), cluster)
    assert result.values["failed_nodes"] == ["training-5"]
    assert result.values["faults"][0]["reason"] == "7 nvidia.com/gpu allocatable, 8 nvidia.com/gpu expected"
    assert result.values["pools"][0]["seen"] == 127


def test_gpus_in_use_do_not_change_the_result(clock: Time) -> None:
    """Allocatable GPUs include those in use."""
    cluster = fleet(2)
    for number in range(2):
        job = s.pod("job", f"training-{number}", {}, {"train": s.running()}, "example.org/train:1")
        job["spec"]["containers"][0]["resources"] = {"limits": {s.GPU: "8"}}
        cluster.put(job)
    result = run(settings("devices"), cluster)
    assert result.values["nodes"]["passed"] == 2
    assert cluster.writes == []


def test_expected_shared_gpus_depend_on_the_plugin_configuration(clock: Time) -> None:
    config = parse_plugin_config(
        {"sharing": {"timeSlicing": {"renameByDefault": True, "resources": [{"name": s.GPU, "replicas": 4}]}}}
    )
    node = training(0)
    node["status"]["allocatable"][s.GPU + ".shared"] = "32"
    cluster = NodeCluster([node], healthy("training-0"), on_idle=clock.advance)
    assert run(settings("devices", plugin_configs={"default": config}), cluster).values["nodes"]["passed"] == 1
    assert run(settings("devices"), cluster).values["nodes"]["failed"] == 1


def test_excluded_and_opted_out_nodes_are_not_evaluated(clock: Time) -> None:
    nodes = [training(0), training(1), s.node("out", labels={names.OPERANDS_LABEL: "false"}), s.node("cpu-0", gpus=0)]
    result = run(
        settings(exclude=frozenset({"training-1"})), NodeCluster(nodes, healthy("training-0"), on_idle=clock.advance)
    )
    assert result.values["nodes"]["passed"] == 1
    assert sum(result.values["nodes"].values()) == 1


def test_nodes_are_evaluated_while_their_nfd_labels_are_missing(clock: Time) -> None:
    cluster = NodeCluster([s.node("n", nfd=False)], healthy("n"), on_idle=clock.advance)
    assert run(settings(pools=()), cluster).values["nodes"]["passed"] == 1


def test_all_overlapping_pools_are_reported_at_once(clock: Time) -> None:
    pools = parse_pools(
        [
            {"name": "a", "selector": "pool=training"},
            {"name": "b", "nodes": ["training-0", "gone"]},
            {"name": "c", "nodes": ["gone"]},
        ]
    )
    with pytest.raises(ManyFaults) as raised:
        run(settings(pools=pools), fleet(2, clock=clock))
    assert "pools a and b overlap" in str(raised.value)
    assert "pools b and c overlap" in str(raised.value)


def test_nodes_that_nfd_does_not_label_are_unknown(clock: Time) -> None:
    cluster = NodeCluster([s.node("n", nfd=False)], [s.worker("n")], on_idle=clock.advance)
    result = run(settings("features", pools=()), cluster)
    assert result.values["nodes"] == {"passed": 0, "waiting": 0, "failed": 0, "unknown": 1}
    assert result.values["failed_nodes"] == []
    assert cluster.writes == []
    assert "0 of 1 nodes failed and 1 are unknown" in str(result.failure)
