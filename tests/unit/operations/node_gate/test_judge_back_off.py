# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container that crashes again and again runs for a moment between two back-offs: what a gate says does not depend on when it looks."""

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
#: Of the try that began under the eyes of the gate, and of the one after it.
DOWN, AGAIN = (
    s.crash_loop("p", 4),
    s.running(ready=False, restarts=5, last={"terminated": {"exitCode": 1, "reason": "Error"}}),
)
Made = c.Callable[..., Obj]


def fleet(clock: Time, made: Made, *states: Obj) -> NodeCluster:
    """One node's pod goes through these states, and then the other's, for which the gate has waited, is ready."""
    first, starting = made(CRASHES, s.crash_loop("p", 3)), made(STARTS, s.running(ready=False))
    steps = [made(CRASHES, state) | {"metadata": first["metadata"]} for state in states] + [
        made(STARTS) | {"metadata": starting["metadata"]}
    ]
    offering = {"allocatable": 8, "labels": {"pool": "training"}}
    nodes = [
        training(0, allocatable=0),
        s.node(STARTS, **(offering if made is s.exporter else offering | {"allocatable": 0})),
    ]
    script = [functools.partial(NodeCluster.put, obj=step) for step in steps]
    if made is s.plugin:
        script.append(functools.partial(NodeCluster.put, obj=s.node(STARTS, **offering)))
    return NodeCluster(nodes, [first, starting], script, clock.advance)


@pytest.mark.parametrize(("gate", "made"), [("devices", s.plugin), ("exporters", s.exporter)])
@pytest.mark.parametrize("states", [[DOWN], [DOWN, AGAIN]], ids=["backing off", "running for a moment"])
def test_what_has_failed_stays_so(clock: Time, gate: str, made: Made, states: list[Obj]) -> None:
    cluster, began = fleet(clock, made, *states), clock.now
    result = run(settings(gate, max_failed=1), cluster)
    assert (result.values["nodes"]["passed"], result.values["failed_nodes"], cluster.script) == (1, [CRASHES], [])
    assert clock.now - began < chain.SETTLE, "the gate ends with the last node that it waits for"


def test_what_has_failed_stays_so_over_slices(clock: Time) -> None:
    """One of which begins just when it runs."""
    cluster, resume, began = fleet(clock, s.plugin, DOWN, AGAIN), t.cast("dict[str, t.Any]", {}), clock.now
    cluster.script.insert(2, lambda _cluster: clock.advance(2))
    for _slice in range(20):
        result = run(settings("devices", max_failed=1), cluster, deadline=clock.monotonic() + 1, resume=resume)
        if result.pending is None:
            break
        resume = json.loads(json.dumps(result.pending))
    assert result.values["failed_nodes"] == [CRASHES]
    assert clock.now - began < chain.SETTLE


def test_the_run_that_works_passes(clock: Time) -> None:
    cluster = fleet(clock, s.plugin, DOWN, AGAIN)
    cluster.script.insert(2, functools.partial(NodeCluster.put, obj=training(0, allocatable=8)))
    assert run(settings("devices"), cluster).values["nodes"]["passed"] == 2


def test_what_has_passed_since_is_no_failure_any_more(clock: Time) -> None:
    """It runs once more, and is waited for like any other."""
    cluster = fleet(clock, s.plugin, DOWN, s.running(restarts=5), AGAIN)
    ready, offered = cluster.script[1], functools.partial(NodeCluster.put, obj=training(0, allocatable=8))
    cluster.script.insert(2, offered)
    cluster.script.insert(3, functools.partial(NodeCluster.put, obj=training(0, allocatable=0)))
    cluster.script += [ready, offered]
    assert run(settings("devices", wait_timeout=60), cluster).values["nodes"]["passed"] == 2
