# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a gate observes the cluster: watches that end, an unreachable server, slices."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Gone, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import begin, run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster, Step
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import (
    daemon_set,
    fleet,
    healthy,
    settings,
    training,
    with_crashed_driver,
)


def test_a_gate_that_loses_the_connection_fails_no_node(clock: Time) -> None:
    def lost(*_args: t.Any) -> t.NoReturn:
        raise Unreachable("watching pods", "https://cluster:6443", "connection refused")

    cluster = fleet(16, {3}, clock, [lost])
    cluster.on("list", lost, kind="DaemonSet", at=2)
    result = run(settings(), cluster)
    assert result.values["nodes"] == {"passed": 15, "waiting": 0, "failed": 0, "unknown": 1}
    assert result.values["failed_nodes"] == []
    assert cluster.writes == []
    assert "lost the connection to the cluster" in str(result.failure)


@pytest.mark.parametrize("between_slices", [False, True])
def test_time_without_observation_does_not_count(clock: Time, between_slices: bool) -> None:
    """A GPU is late by a few seconds, and in that moment the server is unreachable for longer than the grace time."""
    cluster = NodeCluster([training(0, allocatable=7)], healthy("training-0"), on_idle=clock.advance)
    resume: dict[str, t.Any] = {}
    known = cluster.resource
    steps: list[Step] = [lambda cluster: None, lambda cluster: cluster.put(training(0, allocatable=8))]

    def away(*_args: t.Any) -> t.Any:
        clock.advance(chain.SETTLE + 10)
        raise Unreachable("watching nodes", "https://cluster:6443", "connection refused")

    def late(*args: t.Any) -> t.Any:
        clock.advance(chain.SETTLE + 10)
        cluster.resource = known  # type: ignore[method-assign]
        return known(*args)

    if between_slices:
        resume = json.loads(json.dumps(run(settings("devices"), cluster, deadline=clock.now).pending))
        cluster.resource = late  # type: ignore[method-assign]
    cluster.script = steps if between_slices else [away, *steps]
    assert run(settings("devices"), cluster, resume=resume).values["nodes"]["passed"] == 1


def test_watches_that_expire_immediately_do_not_cause_constant_lists(clock: Time) -> None:
    lists: list[float] = []

    def expires(_cluster: NodeCluster) -> None:
        raise Gone("watching pods")

    cluster = fleet(16, {3}, clock, [expires] * 1000)
    cluster.on("list", lambda request: request.paged and lists.append(clock.now))
    began = clock.now
    assert run(settings(), cluster).values["nodes"]["failed"] == 1
    assert len(lists) < (clock.now - began) / 10, f"{len(lists)} lists in {clock.now - began:.0f} s"


def test_an_expired_watch_lists_again(clock: Time) -> None:
    def expires(cluster: NodeCluster) -> None:
        for pod in [pod for pod in cluster.all_of("Pod") if pod["spec"]["nodeName"] == "training-3"]:
            cluster.remove("Pod", pod["metadata"]["name"])
        for pod in healthy("training-3"):
            cluster.put(pod)
        raise Gone("watching pods")

    cluster = fleet(16, {3}, clock, [expires])
    assert run(settings(), cluster).values["nodes"]["passed"] == 16


def test_a_failed_list_keeps_the_known_state(clock: Time) -> None:
    def expires(cluster: NodeCluster) -> None:
        raise Gone("watching pods")

    cluster = fleet(2, {1}, clock, [expires])
    lost = Unreachable("listing pods", "https://cluster:6443", "connection refused")
    cluster.fail(lost, "list", at=4, times=1)
    assert run(settings(max_failed=1), cluster).values["failed_nodes"] == ["training-1"]


def test_slices_continue_where_the_last_one_ended(clock: Time) -> None:
    cluster = fleet(16, {3}, clock, [lambda cluster: clock.advance(6), lambda cluster: clock.advance(6)])
    resume: dict[str, t.Any] = {}
    slices = 0
    lines: list[str] = []
    while True:
        result = run(settings(), cluster, deadline=clock.now + 10, resume=resume)
        slices += 1
        lines += result.progress
        if result.pending is None:
            break
        resume = json.loads(json.dumps(result.pending))
        clock.advance(1)
    assert slices > 5
    # DaemonSets are listed once, to choose the effect of the failed node's taint, and the node is read again before it fails by time.
    kinds = [request.kind for request in cluster.sent("list") if request.paged]
    assert kinds == ["Node", "Pod", "Node", "Pod", "DaemonSet"]
    assert result.values["failed_nodes"] == ["training-3"]
    assert result.values["quarantined"] == ["training-3"]
    assert len(lines) < slices


def test_all_pod_events_are_processed_when_no_node_waits(clock: Time) -> None:
    """With one event per iteration, a fleet of 200 nodes had waited ten minutes for events of the past."""
    others = [s.plugin(f"training-{number}") for number in range(20)]
    for other in others:
        other["metadata"]["ownerReferences"][0]["name"] = "gpu-feature-discovery"

    def appear(cluster: NodeCluster) -> None:
        for other in others:
            cluster.put(other)

    cluster = fleet(20, clock=clock, script=[appear])
    cluster.put(daemon_set("gpu-feature-discovery", others[0], 20))
    began = clock.now
    assert run(settings("devices"), cluster).values["nodes"]["passed"] == 20
    assert clock.now - began <= 20


def test_a_kind_with_further_events_has_most_of_the_next_iteration(clock: Time) -> None:
    """Nodes that wait for the device plugin are watched first, but pod events of a large fleet take longer than the rest of an iteration."""
    watched: list[tuple[str, float]] = []
    cluster = NodeCluster(
        [training(0)], [s.driver("training-0"), s.validator("training-0")], [lambda cluster: None] * 8, clock.advance
    )

    def on_watch(request: Request) -> None:
        watched.append((request.kind, round(request.body["deadline"] - clock.monotonic(), 1)))
        if request.kind == "Pod" and len(watched) < 4:
            cluster.put(s.plugin("training-0", s.running(ready=False)))

    cluster.on("watch", on_watch)
    run(settings("devices", wait_timeout=30), cluster)
    nodes_first, pods_first = [("Node", 3.5), ("Pod", 4.0)], [("Pod", 3.5), ("Node", 4.0)]
    assert watched[:8] == [*nodes_first, *pods_first, *pods_first, *nodes_first]


def test_packed_state_can_be_restored() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/mig-1g.10gb.count": "7",
        "pool": "training",
    }
    node = s.node(
        "training-0", allocatable=8, labels=labels, taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}]
    )
    cluster = NodeCluster([node], [*healthy("training-0"), *with_crashed_driver("training-0")])
    gate = begin(settings(), cluster, {})
    gate.judge()
    again = begin(settings(), cluster, json.loads(json.dumps(gate.pack())))
    again.judge()
    assert again.fleet.nodes == gate.fleet.nodes
    assert again.fleet._pods == gate.fleet._pods
    assert again.fleet.pool_names == gate.fleet.pool_names
    assert again.verdicts == gate.verdicts
