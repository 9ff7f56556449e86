# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container that crashes repeatedly runs for a moment between two back-offs. The verdict of a gate does not depend on the time of its observation."""

from __future__ import annotations

import collections.abc as c
import functools
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import settings, training

CRASHES, STARTS = "training-0", "training-1"
#: Status after the attempt that the gate has observed, and during the next one.
BACKING_OFF, RUNNING_AGAIN = (
    s.crash_loop("p", 4),
    s.running(ready=False, restarts=5, last={"terminated": {"exitCode": 1, "reason": "Error"}}),
)
PodFactory = c.Callable[..., Obj]


def fleet(clock: Time, create: PodFactory, *states: Obj) -> NodeCluster:
    """The pod of one node has these states one after the other. Then the pod of the other node, for which the gate waits, is ready."""
    first, starting = create(CRASHES, s.crash_loop("p", 3)), create(STARTS, s.running(ready=False))
    steps = [create(CRASHES, state) | {"metadata": first["metadata"]} for state in states] + [
        create(STARTS) | {"metadata": starting["metadata"]}
    ]
    offering = {"allocatable": 8, "labels": {"pool": "training"}}
    nodes = [
        training(0, allocatable=0),
        s.node(STARTS, **(offering if create is s.exporter else offering | {"allocatable": 0})),
    ]
    script = [functools.partial(NodeCluster.put, obj=step) for step in steps]
    if create is s.plugin:
        script.append(functools.partial(NodeCluster.put, obj=s.node(STARTS, **offering)))
    return NodeCluster(nodes, [first, starting], script, clock.advance)


@pytest.mark.parametrize(("gate", "create"), [("devices", s.plugin), ("exporters", s.exporter)])
@pytest.mark.parametrize(
    "states", [[BACKING_OFF], [BACKING_OFF, RUNNING_AGAIN]], ids=["backing off", "running for a moment"]
)
def test_a_failed_node_stays_failed(clock: Time, gate: str, create: PodFactory, states: list[Obj]) -> None:
    cluster, began = fleet(clock, create, *states), clock.now
    result = run(settings(gate, max_failed=1), cluster)
    assert (result.values["nodes"]["passed"], result.values["failed_nodes"], cluster.script) == (1, [CRASHES], [])
    assert clock.now - began < chain.SETTLE, "the gate ends with the last node that it waits for"


def test_a_failed_node_stays_failed_over_slices(clock: Time) -> None:
    """One of the slices begins while the container runs."""
    cluster, resume, began = (
        fleet(clock, s.plugin, BACKING_OFF, RUNNING_AGAIN),
        t.cast("dict[str, t.Any]", {}),
        clock.now,
    )
    cluster.script.insert(2, lambda _cluster: clock.advance(2))
    for _slice in range(20):
        result = run(settings("devices", max_failed=1), cluster, deadline=clock.monotonic() + 1, resume=resume)
        if result.pending is None:
            break
        resume = json.loads(json.dumps(result.pending))
    assert result.values["failed_nodes"] == [CRASHES]
    assert clock.now - began < chain.SETTLE


def test_an_attempt_that_succeeds_passes(clock: Time) -> None:
    cluster = fleet(clock, s.plugin, BACKING_OFF, RUNNING_AGAIN)
    cluster.script.insert(2, functools.partial(NodeCluster.put, obj=training(0, allocatable=8)))
    assert run(settings("devices"), cluster).values["nodes"]["passed"] == 2


def test_a_node_that_has_passed_in_the_meantime_is_no_longer_failed(clock: Time) -> None:
    """It restarts once more, and is waited for like any other."""
    cluster = fleet(clock, s.plugin, BACKING_OFF, s.running(restarts=5), RUNNING_AGAIN)
    ready, offered = cluster.script[1], functools.partial(NodeCluster.put, obj=training(0, allocatable=8))
    cluster.script.insert(2, offered)
    cluster.script.insert(3, functools.partial(NodeCluster.put, obj=training(0, allocatable=0)))
    cluster.script += [ready, offered]
    assert run(settings("devices", wait_timeout=60), cluster).values["nodes"]["passed"] == 2
