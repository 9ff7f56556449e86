# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode asks whether the run may do what it would do, and for nothing else; a run asks nothing."""

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
    broken,
    healthy,
    settings,
    training,
)

SPACE = "hwaccel-gpu"
LOOKING = [("list", "daemonsets", SPACE)]
WAITING = [("watch", "nodes", ""), ("watch", "pods", SPACE)]
MARKING = [("get", "nodes", ""), ("patch", "nodes", "")]
TELLING = [("get", "pods/log", SPACE), ("list", "events", SPACE)]
#: Whether another's DaemonSets have to mend a node that may be marked.
WEIGHING = [("list", "daemonsets", "")]


def node(**labels: str) -> Obj:
    made = training(0, allocatable=8)
    made["metadata"]["labels"].update(dict.fromkeys(names.CLIENT_SWITCHES, "true") | labels)
    return made


@pytest.mark.parametrize(
    ("gate", "quarantine", "nodes", "pods", "asked"),
    [
        ("driver", True, [node()], healthy("training-0"), LOOKING),
        ("driver", True, [node()], broken("training-0"), LOOKING + WAITING + MARKING + TELLING + WEIGHING),
        ("driver", False, [node()], broken("training-0"), LOOKING + WAITING + MARKING + TELLING),
        ("features", True, [node()], [], [*LOOKING, ("list", "deployments", "")]),
        ("devices", True, [training(0)], [], LOOKING + WAITING + MARKING + TELLING + WEIGHING),
        ("devices", False, [training(0)], [], LOOKING + WAITING + TELLING),
        ("driver", True, [], [], LOOKING + WAITING + MARKING + TELLING + WEIGHING),
        ("driver", True, [node(**{names.QUARANTINE: "driver"})], healthy("training-0"), LOOKING + MARKING),
    ],
    ids=[
        "passed",
        "waits",
        "waits for what may be labeled",
        "features",
        "devices",
        "marks nothing",
        "no node is known yet",
        "to be freed",
    ],
)
def test_check_mode_asks_for_what_the_run_would_use(
    clock: Time, gate: str, quarantine: bool, nodes: list[Obj], pods: list[Obj], asked: list[tuple[str, str, str]]
) -> None:
    cluster = NodeCluster(nodes, pods, on_idle=clock.advance)
    found = run(settings(gate, quarantine=quarantine), cluster, check_mode=True)
    assert sorted(cluster.reviews) == sorted(asked)
    assert (found.failure, found.values["missing_rights"], cluster.writes) == (None, [], [])


def test_a_run_asks_nothing(clock: Time) -> None:
    cluster = NodeCluster([node()], broken("training-0"), on_idle=clock.advance)
    cluster.forbidden = {("patch", "nodes"), ("get", "pods/log")}
    assert run(settings(), cluster).values["missing_rights"] == []
    assert cluster.reviews == []


def test_all_missing_rights_are_told_at_once(clock: Time) -> None:
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


def test_a_log_that_may_not_be_read_stops_no_run(clock: Time) -> None:
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


@pytest.mark.parametrize(("labels", "asked"), [({names.QUARANTINE: "devices"}, MARKING), ({}, [])])
def test_lifting_asks_for_what_it_takes(labels: dict[str, str], asked: list[tuple[str, str, str]]) -> None:
    cluster = NodeCluster([node(**labels)], [])
    cluster.forbidden = {("patch", "nodes")}
    params: dict[str, t.Any] = {"gate": "devices", "state": "absent"}
    context = Context(
        check_mode=True, diff=False, deadline=None, resume={}, warn=lambda text: None, client=lambda: cluster
    )
    found = module.operation(params, context)
    assert cluster.reviews == asked
    assert (found.failure is not None, bool(found.values["missing_rights"])) == (bool(asked), bool(asked))
