# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that a pool names and that are not in the cluster."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import BASE_TIMEOUT
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import (
    fleet,
    healthy,
    settings,
    training,
)

NAMED = parse_pools([{"name": "training", "nodes": ["training-0", "training-1"], "gpu": {"count": 8}}])


@pytest.mark.parametrize(
    ("gate", "max_failed", "within"), [("features", "1", True), ("driver", "50%", True), ("devices", "0", False)]
)
def test_a_declared_node_that_does_not_join_fails_at_the_end(
    clock: Time, gate: str, max_failed: str, within: bool
) -> None:
    """There is no node to taint. It stays a member of its pool, also over slices."""
    cluster, resume = fleet(1, clock=clock), {}
    began = clock.now
    while (
        result := run(
            settings(gate, pools=NAMED, max_failed=max_failed), cluster, deadline=clock.now + 100, resume=resume
        )
    ).pending is not None:
        resume = json.loads(json.dumps(result.pending))
    assert clock.now - began >= BASE_TIMEOUT[gate]
    assert result.values["nodes"] == {"passed": 1, "waiting": 0, "failed": 1, "unknown": 0}
    assert (result.values["failed_nodes"], result.failure is None) == (["training-1"], within)
    fault = result.values["faults"][0]
    assert (fault["node"], fault["pool"], fault["state"], fault["link"]) == (
        "training-1",
        "training",
        "failed",
        "hardware seen",
    )
    assert fault["reason"].endswith("the cluster has no such node")
    assert "let the node join" in fault["next_step"]
    row = result.values["pools"][0]
    assert (row["nodes"], row["expected"], row["seen"], row["kernels"]) == (2, 16, 8, [s.KERNEL])
    assert (cluster.writes, result.values["quarantined"]) == ([], [])


def test_a_declared_node_that_joins_is_evaluated(clock: Time) -> None:
    def joins(cluster: NodeCluster) -> None:
        for obj in (training(1, allocatable=8), *healthy("training-1")):
            cluster.put(obj)

    cluster = fleet(1, clock=clock, script=[lambda cluster: None, joins])
    result = run(settings(pools=NAMED), cluster)
    assert (result.values["nodes"]["passed"], result.warnings) == (2, [])


def test_a_declared_node_that_is_removed_is_waited_for(clock: Time) -> None:
    cluster = fleet(2, {0}, clock=clock, script=[lambda cluster: cluster.remove("Node", "training-1")])
    assert run(settings(pools=NAMED, wait_timeout=30), cluster).values["failed_nodes"] == ["training-0", "training-1"]


def test_check_mode_only_warns_of_a_missing_declared_node(clock: Time) -> None:
    pools = (*NAMED, *parse_pools([{"name": "cpu", "nodes": ["cpu-0"]}]))
    result = run(settings(pools=pools), fleet(1, clock=clock), check_mode=True)
    assert result.values["nodes"] == {"passed": 1, "waiting": 1, "failed": 0, "unknown": 0}
    assert (result.failure, result.warnings) == (None, ["the cluster has no node training-1, and a pool names it"])
    excluded = run(settings(pools=pools, exclude=frozenset({"training-1"})), fleet(1, clock=clock), check_mode=True)
    assert (excluded.values["nodes"]["waiting"], excluded.warnings) == (0, [])


def test_only_the_named_nodes_are_judged(clock: Time) -> None:
    only = settings(pools=NAMED, nodes=frozenset({"training-0"}))
    result = run(only, fleet(2, {1}, clock=clock))
    assert (result.values["nodes"]["passed"], result.failure, result.warnings) == (1, None, [])
    nobody = run(settings(pools=NAMED, nodes=frozenset()), fleet(1, clock=clock))
    assert (sum(nobody.values["nodes"].values()), nobody.failure, nobody.warnings) == (0, None, [])
