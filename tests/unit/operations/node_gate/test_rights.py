# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode reviews exactly the permissions that the run would use; a run reviews none."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.plugins.modules import node_gate as module
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import (
    healthy,
    settings,
    training,
    with_crashed_driver,
)

SPACE = "hwaccel-gpu"
LISTING = [("list", "daemonsets", SPACE)]
WAITING = [("watch", "nodes", ""), ("watch", "pods", SPACE)]
TAINTING = [("get", "nodes", ""), ("patch", "nodes", "")]
REPORTING = [("get", "pods/log", SPACE), ("list", "events", SPACE)]
#: The effect of the taint depends on foreign DaemonSets that repair the node.
CHOOSING_EFFECT = [("list", "daemonsets", "")]


def node(**labels: str) -> Obj:
    result = training(0, allocatable=8)
    result["metadata"]["labels"].update(dict.fromkeys(names.CLIENT_SWITCHES, "true") | labels)
    return result


@pytest.mark.parametrize(
    ("gate", "quarantine", "nodes", "pods", "reviewed"),
    [
        ("driver", True, [node()], healthy("training-0"), LISTING),
        (
            "driver",
            True,
            [node()],
            with_crashed_driver("training-0"),
            LISTING + WAITING + TAINTING + REPORTING + CHOOSING_EFFECT,
        ),
        ("driver", False, [node()], with_crashed_driver("training-0"), LISTING + WAITING + TAINTING + REPORTING),
        ("features", True, [node()], [], [*LISTING, ("list", "deployments", "")]),
        ("devices", True, [training(0)], [], LISTING + WAITING + TAINTING + REPORTING + CHOOSING_EFFECT),
        ("devices", False, [training(0)], [], LISTING + WAITING + REPORTING),
        ("driver", True, [], [], LISTING + WAITING + TAINTING + REPORTING + CHOOSING_EFFECT),
        ("driver", True, [node(**{names.QUARANTINE: "driver"})], healthy("training-0"), LISTING + TAINTING),
    ],
    ids=[
        "passed",
        "waits",
        "waits for a node that may be labeled",
        "features",
        "devices",
        "without quarantine",
        "no node is known yet",
        "to be released",
    ],
)
def test_check_mode_reviews_the_permissions_of_the_run(
    clock: Time, gate: str, quarantine: bool, nodes: list[Obj], pods: list[Obj], reviewed: list[tuple[str, str, str]]
) -> None:
    cluster = NodeCluster(nodes, pods, on_idle=clock.advance)
    found = run(settings(gate, quarantine=quarantine), cluster, check_mode=True)
    assert sorted(cluster.reviews) == sorted(reviewed)
    assert (found.failure, found.values["missing_rights"], cluster.writes) == (None, [], [])


def test_a_run_reviews_no_permissions(clock: Time) -> None:
    cluster = NodeCluster([node()], with_crashed_driver("training-0"), on_idle=clock.advance)
    cluster.forbidden = {("patch", "nodes"), ("get", "pods/log")}
    assert run(settings(), cluster).values["missing_rights"] == []
    assert cluster.reviews == []


def test_all_missing_permissions_are_reported_at_once(clock: Time) -> None:
    cluster = NodeCluster([training(0)], [], on_idle=clock.advance)
    cluster.forbidden = {("patch", "nodes"), ("watch", "pods"), ("get", "pods/log")}
    found = run(settings(), cluster, check_mode=True)
    assert [(one["verb"], one["resource"], one["namespace"]) for one in found.values["missing_rights"]] == [
        ("get", "pods/log", SPACE),
        ("patch", "nodes", ""),
        ("watch", "pods", SPACE),
    ]
    assert isinstance(found.failure, ManyFaults)
    assert [fault.what for fault in found.failure.faults] == [
        "permission to watch pods is missing",
        "permission to patch nodes is missing",
    ]
    assert found.changed is False
    assert found.values["switched"] == ["training-0"]


def test_a_missing_permission_for_logs_stops_no_run(clock: Time) -> None:
    cluster = NodeCluster([training(0)], [], on_idle=clock.advance)
    cluster.forbidden = {("get", "pods/log")}
    found = run(settings(), cluster, check_mode=True)
    assert (found.failure, found.changed) == (None, True)
    assert [one["resource"] for one in found.values["missing_rights"]] == ["pods/log"]
    assert [
        warning
        for warning in found.warnings
        if "permission to get pods/log is missing (in namespace hwaccel-gpu)" in warning
    ]


@pytest.mark.parametrize(("labels", "reviewed"), [({names.QUARANTINE: "devices"}, TAINTING), ({}, [])])
def test_lifting_reviews_the_required_permissions(labels: dict[str, str], reviewed: list[tuple[str, str, str]]) -> None:
    cluster = NodeCluster([node(**labels)], [])
    cluster.forbidden = {("patch", "nodes")}
    params: dict[str, t.Any] = {"gate": "devices", "state": "absent"}
    context = Context(
        check_mode=True, diff=False, deadline=None, resume={}, warn=lambda text: None, client=lambda: cluster
    )
    found = module.operation(params, context)
    assert cluster.reviews == reviewed
    assert (found.failure is not None, bool(found.values["missing_rights"])) == (bool(reviewed), bool(reviewed))
