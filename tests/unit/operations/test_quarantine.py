# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits, quarantine, and preservation of other writers' changes to a Node."""

from __future__ import annotations

import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import NODE
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import (
    daemon_set,
    fleet,
    healthy,
    settings,
    training,
)


def test_a_failed_node_is_reported_with_its_logs_and_quarantined(clock: Time) -> None:
    cluster = fleet(16, {3}, clock)
    result = run(settings(), cluster)
    assert result.values["failed_nodes"] == ["training-3"]
    assert result.values["within_limit"]
    assert result.failure is None
    assert result.changed
    assert result.values["quarantined"] == ["training-3"]
    (fault,) = result.values["faults"]
    assert (fault["node"], fault["pool"], fault["link"], fault["container"]) == (
        "training-3",
        "training",
        "driver",
        "nvidia-driver-ctr",
    )
    assert "crashed 5 times" in fault["reason"]
    assert "previous run" in fault["log_tail"]
    assert "current run" in fault["log_tail"]
    assert "secret" not in fault["log_tail"]
    node = cluster.stored("Node", "training-3")
    assert node["spec"]["taints"] == [{"key": "hwaccel.gpu/quarantine", "value": "driver", "effect": "NoSchedule"}]
    assert node["metadata"]["labels"][names.QUARANTINE] == "driver"
    assert "crashed" in node["metadata"]["annotations"][names.QUARANTINE_REASON]
    assert "1 failed: training-3 (2 may fail)" in result.progress[-1]


def test_with_too_many_failures_no_node_is_quarantined(clock: Time) -> None:
    cluster = fleet(16, {1, 2, 3}, clock)
    result = run(settings(), cluster)
    assert not result.values["within_limit"]
    assert cluster.writes == []
    assert result.values["quarantined"] == []
    assert isinstance(result.failure, ManyFaults)
    assert "3 of 16 nodes failed, 2 allowed" in str(result.failure)
    assert "training-2" in str(result.failure)


def test_a_second_run_keeps_the_quarantine_and_a_later_one_lifts_it(clock: Time) -> None:
    cluster = fleet(16, {3}, clock)
    run(settings(), cluster)
    written = len(cluster.writes)
    again = run(settings(), cluster)
    assert again.values["failed_nodes"] == ["training-3"]
    assert len(cluster.writes) == written
    assert not again.changed
    for pod in [pod for pod in cluster.all_of("Pod") if pod["spec"]["nodeName"] == "training-3"]:
        cluster.remove("Pod", pod["metadata"]["name"])
    for pod in healthy("training-3"):
        cluster.put(pod)
    repaired = run(settings(), cluster)
    assert repaired.values["released"] == ["training-3"]
    assert repaired.changed
    node = cluster.stored("Node", "training-3")
    assert node["spec"]["taints"] == []
    assert names.QUARANTINE not in node["metadata"]["labels"]
    assert names.QUARANTINE_REASON not in node["metadata"]["annotations"]


def test_an_earlier_gate_does_not_lift_the_quarantine_of_a_later_one(clock: Time) -> None:
    taint = {"key": names.QUARANTINE, "value": "devices", "effect": "NoSchedule"}
    cluster = NodeCluster([training(0, allocatable=8, taints=[taint])], healthy("training-0"), on_idle=clock.advance)
    assert run(settings(), cluster).values["released"] == []
    assert run(settings("devices"), cluster).values["released"] == ["training-0"]


def test_foreign_taints_and_cordons_are_kept(clock: Time) -> None:
    foreign = [
        {"key": "maintenance", "effect": "NoExecute", "timeAdded": "2026-11-20T10:00:00Z"},
        {"key": names.QUARANTINE, "effect": "NoExecute"},
    ]
    cluster = fleet(16, {3}, clock)
    node = cluster.stored("Node", "training-3")
    node["spec"] |= {"taints": list(foreign), "unschedulable": True}
    run(settings(), cluster)
    assert cluster.stored("Node", "training-3")["spec"]["taints"][:2] == foreign
    assert cluster.stored("Node", "training-3")["spec"]["unschedulable"]


def _quarantine_taint(gate: str) -> dict[str, t.Any]:
    return {"key": names.QUARANTINE, "value": gate, "effect": "NoSchedule"}


def test_teardown_lifts_only_the_quarantines_of_one_gate(clock: Time) -> None:
    foreign = [{"key": "maintenance", "effect": "NoExecute"}, {"key": names.QUARANTINE, "effect": "NoExecute"}]
    nodes = [
        training(0, taints=[*foreign, _quarantine_taint("driver")]),
        training(1, taints=[_quarantine_taint("devices")]),
        training(2, taints=list(foreign)),
        training(3),
    ]
    nodes[0]["metadata"]["labels"][names.QUARANTINE] = "driver"
    nodes[0]["metadata"].setdefault("annotations", {})[names.QUARANTINE_REASON] = "driver: it crashed"
    nodes[3]["metadata"].setdefault("annotations", {})[names.QUARANTINE_REASON] = (
        "part of a quarantine that another user removed"
    )
    cluster = NodeCluster(nodes, [], on_idle=clock.advance)
    cluster.stored("Node", "training-0")["spec"]["unschedulable"] = True
    assert quarantine.lift(cluster, "driver", check_mode=True) == ["training-0", "training-3"]
    assert cluster.writes == []
    assert quarantine.lift(cluster, "driver") == ["training-0", "training-3"]
    node = cluster.stored("Node", "training-0")
    assert node["spec"]["taints"] == foreign
    assert node["spec"]["unschedulable"]
    assert names.QUARANTINE not in node["metadata"]["labels"]
    assert names.QUARANTINE_REASON not in node["metadata"]["annotations"]
    assert cluster.stored("Node", "training-1")["spec"]["taints"] == [_quarantine_taint("devices")]
    assert cluster.stored("Node", "training-2")["spec"]["taints"] == foreign
    assert quarantine.lift(cluster, "driver") == []
    assert len(cluster.writes) == 2


def test_concurrent_changes_of_another_writer_are_kept(clock: Time) -> None:
    """Between our read and our write another controller adds a taint, twice."""
    cluster = fleet(16, {3}, clock)
    added = iter(["first", "second"])

    def other_writer(request: Request) -> None:
        if key := next(added, ""):
            node = cluster.get(NODE, request.name)
            node["spec"].setdefault("taints", []).append({"key": key, "effect": "NoSchedule"})
            cluster.put(node)

    cluster.on("patch", other_writer)
    run(settings(), cluster)
    assert [taint["key"] for taint in cluster.stored("Node", "training-3")["spec"]["taints"]] == [
        "first",
        "second",
        names.QUARANTINE,
    ]


def test_constant_conflicts_are_an_error(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = fleet(16, {3}, clock)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    cluster.on("patch", lambda request: cluster.put(cluster.objects[request.place]))
    with pytest.raises(HwaccelError, match="another client wrote the node each time"):
        run(settings(), cluster)


def test_without_quarantine_nothing_is_written(clock: Time) -> None:
    cluster = fleet(16, {3}, clock)
    result = run(settings(quarantine=False), cluster)
    assert result.values["failed_nodes"] == ["training-3"]
    assert cluster.writes == []


def test_check_mode_observes_once_and_reports_planned_changes(clock: Time) -> None:
    cluster = fleet(16, {3}, clock)
    before = clock.now
    result = run(settings(max_failed=0), cluster, check_mode=True)
    assert clock.now == before
    assert cluster.writes == []
    assert cluster.sent("logs") == []
    assert result.failure is None
    assert result.values["nodes"]["waiting"] == 1
    node = cluster.stored("Node", "training-1")
    node["spec"]["taints"] = [{"key": names.QUARANTINE, "value": "driver", "effect": "NoSchedule"}]
    planned = run(settings(max_failed=0), cluster, check_mode=True)
    assert planned.values["released"] == ["training-1"]
    assert planned.changed
    assert cluster.writes == []


@pytest.mark.parametrize(
    ("given", "nodes", "limit"),
    [
        ("0", 16, 0),
        (2, 16, 2),
        ("10%", 16, 2),
        ("10%", 3, 1),
        ("10%", 1, 0),
        ("100%", 4, 4),
        ("0%", 9, 0),
        (" 5 %", 100, 5),
    ],
)
def test_limits_are_numbers_or_percentages(given: t.Any, nodes: int, limit: int) -> None:
    assert quarantine.limit_of(given, nodes) == limit


@pytest.mark.parametrize("given", ["", "x", "-1", "101%", "1.5", None])
def test_invalid_limits_are_reported(given: t.Any) -> None:
    with pytest.raises(HwaccelError, match="max_failed"):
        quarantine.limit_of(given, 4)


#: Tolerations of the GPU Operator's DaemonSets, and of ours.
FOREIGN: list[dict[str, t.Any]] = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
OURS: list[dict[str, t.Any]] = [{"operator": "Exists", "effect": "NoSchedule"}]


def _driver_set(tolerations: list[dict[str, t.Any]], **selector: str) -> Obj:
    daemon = s.exporter("") if selector.pop("exporter", "") else s.driver("")
    daemon["spec"] |= {"tolerations": tolerations, "nodeSelector": selector}
    return daemon_set("nvidia-driver-daemonset", daemon, 16) | {
        "metadata": {"name": "nvidia-driver-daemonset", "namespace": "gpu-operator", "generation": 1}
    }


def _taint(cluster: NodeCluster, name: str) -> list[tuple[str, str]]:
    taints = cluster.stored("Node", name)["spec"].get("taints") or []
    return [(taint["value"], taint["effect"]) for taint in taints if taint["key"] == names.QUARANTINE]


@pytest.mark.parametrize(
    ("tolerations", "selector", "effect"),
    [
        (FOREIGN, {}, "PreferNoSchedule"),
        (OURS, {}, "NoSchedule"),
        ([{"operator": "Exists"}], {}, "NoSchedule"),
        ([*FOREIGN, {"key": names.QUARANTINE, "operator": "Exists"}], {}, "NoSchedule"),
        (FOREIGN, {"pool": "training"}, "PreferNoSchedule"),
        (FOREIGN, {"pool": "another"}, "NoSchedule"),
        (FOREIGN, {"exporter": "yes"}, "NoSchedule"),
        (None, None, "NoSchedule"),
    ],
    ids=[
        "foreign pod",
        "ours",
        "foreign pod with a toleration of all taints",
        "foreign pod with a toleration of the quarantine",
        "foreign pod of this pool",
        "foreign pod of another pool",
        "foreign exporter",
        "none",
    ],
)
def test_the_quarantine_never_excludes_daemon_sets_that_repair_the_node(
    clock: Time, tolerations: t.Any, selector: t.Any, effect: str
) -> None:
    cluster = fleet(16, {3}, clock)
    if tolerations is not None:
        cluster.put(_driver_set(tolerations, **selector))
    predicted = run(settings(), cluster, check_mode=True)
    assert (run(settings(), cluster).values["quarantined"], predicted.values["quarantined"]) == (["training-3"], [])
    assert _taint(cluster, "training-3") == [("driver", effect)]
    assert quarantine.marked_by(cluster.stored("Node", "training-3")) == "driver"
    written = len(cluster.writes)
    assert not run(settings(), cluster).changed and len(cluster.writes) == written
    assert run(settings(), cluster, check_mode=True).values["quarantined"] == []


def test_without_permission_to_list_daemon_sets_the_taint_is_a_preference(clock: Time) -> None:
    cluster = fleet(16, {3}, clock)

    def refused(request: Request) -> None:
        if not request.namespace:
            raise Forbidden("listing daemonsets", "", "no", "")

    cluster.on("list", refused, kind="DaemonSet")
    run(settings(), cluster)
    assert _taint(cluster, "training-3") == [("driver", "PreferNoSchedule")]


@pytest.mark.parametrize("repaired", [True, False])
def test_a_quarantine_of_an_earlier_version_is_relaxed_while_the_gate_waits(clock: Time, repaired: bool) -> None:
    """With NoSchedule on the node, the operator could never create a pod there."""
    nodes = [
        training(number, allocatable=8, taints=[_quarantine_taint("driver")] if number == 0 else None)
        for number in range(8)
    ]
    nodes[0]["metadata"]["labels"][names.QUARANTINE] = "driver"
    nodes[0]["metadata"]["annotations"][names.QUARANTINE_REASON] = "driver: it crashed"

    def controller(cluster: NodeCluster) -> None:
        if repaired and ("driver", "NoSchedule") not in _taint(cluster, "training-0"):
            for pod in healthy("training-0"):
                cluster.put(pod)

    cluster = NodeCluster(
        nodes,
        [pod for number in range(1, 8) for pod in healthy(f"training-{number}")],
        [controller],
        on_idle=clock.advance,
    )
    cluster.put(_driver_set(FOREIGN))
    assert run(settings(), cluster, check_mode=True).values["quarantined"] == ["training-0"]
    assert cluster.writes == []
    result = run(settings(), cluster)
    assert result.changed
    if repaired:
        assert (result.values["failed_nodes"], result.values["quarantined"], result.values["released"]) == (
            [],
            [],
            ["training-0"],
        )
        assert (
            _taint(cluster, "training-0") == []
            and names.QUARANTINE not in cluster.stored("Node", "training-0")["metadata"]["labels"]
        )
    else:
        assert (result.values["failed_nodes"], result.values["quarantined"]) == (["training-0"], ["training-0"])
        assert _taint(cluster, "training-0") == [("driver", "PreferNoSchedule")]
        assert (
            cluster.stored("Node", "training-0")["metadata"]["annotations"][names.QUARANTINE_REASON]
            == "driver: it crashed"
        )
        assert quarantine.lift(cluster, "driver") == ["training-0"] and _taint(cluster, "training-0") == []


def test_the_taint_is_noschedule_again_without_foreign_daemon_sets(clock: Time) -> None:
    cluster = fleet(16, {3}, clock)
    cluster.put(_driver_set(FOREIGN))
    run(settings(), cluster)
    cluster.remove("DaemonSet", "nvidia-driver-daemonset")
    assert run(settings(), cluster).values["quarantined"] == ["training-3"]
    assert _taint(cluster, "training-3") == [("driver", "NoSchedule")]
