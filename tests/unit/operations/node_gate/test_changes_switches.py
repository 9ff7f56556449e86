# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes with a driver of this collection get the switches of its clients, and check mode reports which will."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import (
    healthy,
    settings,
    training,
)


@pytest.mark.parametrize(
    ("ours", "switched"), [({names.DESIRED_DRIVER_VERSION_LABEL: "580.178.04"}, ["training-0"]), ({}, [])]
)
def test_nodes_with_our_driver_get_the_switches_of_its_clients(
    clock: Time, ours: dict[str, str], switched: list[str]
) -> None:
    pods = healthy("training-0")
    for pod in pods:
        pod["metadata"]["labels"] = ours
    cluster = NodeCluster([training(0, allocatable=8)], pods, on_idle=clock.advance)
    planned = run(settings(), cluster, check_mode=True)
    assert (planned.changed, planned.values["switched"], cluster.writes) == (bool(switched), switched, [])
    first = run(settings(), cluster)
    assert (first.changed, first.values["switched"], len(cluster.writes)) == (bool(switched), switched, len(switched))
    again = run(settings(), cluster)
    assert (again.changed, again.values["switched"], len(cluster.writes)) == (False, [], len(switched))


@pytest.mark.parametrize(
    ("driver", "labels", "switched"),
    [
        ({}, {}, True),
        ({"provider": "hwaccel"}, {}, True),
        ({"provider": "host"}, {}, False),
        ({"provider": "existing"}, {}, False),
        ({}, {names.HOST_DRIVER_LABEL: "580.178.04"}, False),
        ({}, {names.QUARANTINE: "driver"}, False),
        ({}, dict.fromkeys(names.CLIENT_SWITCHES, "true"), False),
    ],
)
def test_check_mode_reports_the_switches_of_nodes_that_wait_for_our_driver(
    clock: Time, driver: dict[str, str], labels: dict[str, str], switched: bool
) -> None:
    """On an empty cluster no node has passed yet, and the real run writes them to each node that passes."""
    pools = parse_pools([{"name": "training", "selector": "pool=training", "gpu": {"count": 8}, "driver": driver}])
    node = training(0)
    node["metadata"]["labels"].update(labels)
    planned = run(settings(pools=pools), NodeCluster([node], [], on_idle=clock.advance), check_mode=True)
    assert planned.values["nodes"]["waiting"] == 1
    assert (planned.values["switched"], planned.changed) == (["training-0"] if switched else [], switched)


@pytest.mark.parametrize(
    ("ours", "switched"), [({names.DESIRED_DRIVER_VERSION_LABEL: "580.178.04"}, ["training-0"]), ({}, [])]
)
def test_check_mode_reports_the_switches_of_nodes_whose_driver_is_loading(
    clock: Time, ours: dict[str, str], switched: list[str]
) -> None:
    loading = s.driver("training-0", s.running(ready=False, started=False))
    loading["metadata"]["labels"] = ours
    cluster = NodeCluster(
        [training(0)], [loading, s.validator("training-0", s.running(ready=False))], on_idle=clock.advance
    )
    assert run(settings(), cluster, check_mode=True).values["switched"] == switched


@pytest.mark.parametrize(
    ("manager", "switched"),
    [
        (s.crash_loop("k8s-driver-manager", 3), ["training-0"]),
        (s.running(restarts=1, last=s.done(1)["state"]), ["training-0"]),
        (s.running(), []),
    ],
)
def test_a_node_whose_driver_manager_failed_because_of_missing_switches_gets_them(
    clock: Time, manager: dict[str, t.Any], switched: list[str]
) -> None:
    """The node has joined since the last run, or its driver pod was created again: without the switches it would never start."""
    loading = s.driver("training-0", s.waiting(), manager)
    loading["metadata"]["labels"] = {names.DESIRED_DRIVER_VERSION_LABEL: "580.178.04"}
    cluster = NodeCluster(
        [training(0)], [loading, s.validator("training-0", s.running(ready=False))], on_idle=clock.advance
    )
    assert run(settings(), cluster).values["switched"] == switched
