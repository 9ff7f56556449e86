# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a gate keeps seeing: watches that end, a server that is away, slices."""

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
    broken,
    daemon_set,
    fleet,
    healthy,
    settings,
    training,
)


def test_an_observer_that_loses_the_cluster_fails_no_node(clock: Time) -> None:
    def lost(*_args: t.Any) -> t.NoReturn:
        raise Unreachable("watching pods", "https://cluster:6443", "connection refused")

    cluster = fleet(16, {3}, clock, [lost])
    cluster.on("list", lambda request: request.paged or lost())
    result = run(settings(), cluster)
    assert result.values["nodes"] == {"passed": 15, "waiting": 0, "failed": 0, "unknown": 1}
    assert result.values["failed_nodes"] == []
    assert cluster.writes == []
    assert "lost the connection to the cluster" in str(result.failure)


@pytest.mark.parametrize("between_slices", [False, True])
def test_what_could_not_be_seen_does_not_age(clock: Time, between_slices: bool) -> None:
    """A GPU is late by a few seconds, and just then the server is away for longer than a node may lack one."""
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


def test_watches_that_expire_at_once_do_not_ask_for_everything_all_the_time(clock: Time) -> None:
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


def test_a_list_that_breaks_off_leaves_what_was_known(clock: Time) -> None:
    def expires(cluster: NodeCluster) -> None:
        raise Gone("watching pods")

    cluster = fleet(2, {1}, clock, [expires])
    lost = Unreachable("listing pods", "https://cluster:6443", "connection refused")
    cluster.fail(lost, "list", at=3, times=1)
    assert run(settings(max_failed=1), cluster).values["failed_nodes"] == ["training-1"]


def test_slices_go_on_where_the_last_one_stood(clock: Time) -> None:
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
    # DaemonSets once, for how hard the mark of the failed node may be.
    # A node that fails by time is read again before.
    kinds = [request.kind for request in cluster.sent("list") if request.paged]
    assert kinds == ["Node", "Pod", "Node", "Pod", "DaemonSet"]
    assert result.values["failed_nodes"] == ["training-3"]
    assert result.values["quarantined"] == ["training-3"]
    assert len(lines) < slices


def test_pods_that_are_seen_when_no_node_waits_any_more_are_taken_as_they_come(clock: Time) -> None:
    """One event a look made a fleet of 200 nodes wait ten minutes for what had long happened."""
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


def test_the_kind_whose_events_still_come_has_most_of_the_next_look(clock: Time) -> None:
    """Nodes that wait for the device plugin are looked at first, but their pods' events of a large fleet take longer than the rest of a look."""
    asked: list[tuple[str, float]] = []
    cluster = NodeCluster(
        [training(0)], [s.driver("training-0"), s.validator("training-0")], [lambda cluster: None] * 8, clock.advance
    )

    def look(request: Request) -> None:
        asked.append((request.kind, round(request.body["deadline"] - clock.monotonic(), 1)))
        if request.kind == "Pod" and len(asked) < 4:
            cluster.put(s.plugin("training-0", s.running(ready=False)))

    cluster.on("watch", look)
    run(settings("devices", wait_timeout=30), cluster)
    nodes_first, pods_first = [("Node", 3.5), ("Pod", 4.0)], [("Pod", 3.5), ("Node", 4.0)]
    assert asked[:8] == [*nodes_first, *pods_first, *pods_first, *nodes_first]


def test_packed_state_is_the_same_state() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/mig-1g.10gb.count": "7",
        "pool": "training",
    }
    node = s.node(
        "training-0", allocatable=8, labels=labels, taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}]
    )
    cluster = NodeCluster([node], [*healthy("training-0"), *broken("training-0")])
    gate = begin(settings(), cluster, {})
    gate.judge()
    again = begin(settings(), cluster, json.loads(json.dumps(gate.pack())))
    again.judge()
    assert again.fleet.nodes == gate.fleet.nodes
    assert again.fleet._pods == gate.fleet._pods
    assert again.fleet.pool_names == gate.fleet.pool_names
    assert again.verdicts == gate.verdicts
