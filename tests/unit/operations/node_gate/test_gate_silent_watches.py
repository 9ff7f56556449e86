# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches over a dead connection: no event arrives, and no error. Nodes must not fail by what was read before."""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Event
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import healthy, settings, training


class SilentCluster(NodeCluster):
    def watch(self, *_args: t.Any, **_options: t.Any) -> c.Iterator[Event]:
        self.on_idle()
        return iter(())


def silent(clock: Time, *, seconds: float, repaired: bool) -> SilentCluster:
    """A node that lacks a GPU. Each watch ends after some seconds, and in the first one the GPU appears if it is repaired."""

    def pass_time() -> None:
        clock.advance(seconds)
        if repaired:
            cluster.put(training(0, allocatable=8))

    cluster = SilentCluster([training(0, allocatable=7)], healthy("training-0"), on_idle=pass_time)
    return cluster


@pytest.mark.parametrize(("repaired", "state"), [(True, "passed"), (False, "failed")])
def test_an_overdue_node_is_read_again_before_it_fails(clock: Time, repaired: bool, state: str) -> None:
    cluster = silent(clock, seconds=5, repaired=repaired)
    result = run(settings("devices", max_failed=1), cluster)
    assert result.values["nodes"][state] == 1, result.values
    assert result.values["quarantined"] == ([] if repaired else ["training-0"])


def test_a_node_is_read_again_at_the_end_of_the_timeout(clock: Time) -> None:
    """The one watch takes all the time, so that no grace time was applied before."""
    cluster = silent(clock, seconds=chain.SETTLE + 100_000, repaired=True)
    assert run(settings("devices"), cluster).values["nodes"]["passed"] == 1


def test_a_read_confirms_for_some_seconds(clock: Time) -> None:
    """Many nodes that are overdue one after the other are not many lists."""
    nodes = [training(number, allocatable=7) for number in range(5)]
    pods = [pod for number in range(5) for pod in healthy(f"training-{number}")]
    cluster = SilentCluster(nodes, pods, on_idle=lambda: clock.advance(1))
    assert run(settings("devices", max_failed=5), cluster).values["nodes"]["failed"] == 5
    assert len([request for request in cluster.sent("list") if request.paged and request.kind == "Node"]) == 2


def test_a_server_that_is_lost_then_leaves_the_node_unknown(clock: Time) -> None:
    cluster = silent(clock, seconds=5, repaired=False)
    lost = Unreachable("listing nodes", "https://cluster:6443", "connection refused")
    cluster.fail(lost, "list", at=4)
    result = run(settings("devices"), cluster)
    assert result.values["nodes"]["unknown"] == 1
    assert cluster.writes == []


def test_a_server_that_is_lost_between_two_slices_leaves_the_node_unknown(clock: Time) -> None:
    """The slice that continues has read nothing yet, and its node is overdue at once."""
    cluster = silent(clock, seconds=5, repaired=False)
    pending = run(settings("devices"), cluster, deadline=clock.now).pending
    clock.advance(chain.SETTLE + 10)
    cluster.fail(Unreachable("listing nodes", "https://cluster:6443", "connection refused"), "list")
    result = run(settings("devices"), cluster, resume=json.loads(json.dumps(pending)))
    assert result.values["nodes"]["unknown"] == 1
    assert "lost the connection to the cluster" in str(result.failure)
    assert cluster.writes == []
