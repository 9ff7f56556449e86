# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits, quarantine, and what other writers of a Node keep."""

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


def test_a_failed_node_is_told_with_its_logs_and_quarantined(clock: Time) -> None:
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


def test_the_breaker_comes_before_any_quarantine(clock: Time) -> None:
    cluster = fleet(16, {1, 2, 3}, clock)
    result = run(settings(), cluster)
    assert not result.values["within_limit"]
    assert cluster.writes == []
    assert result.values["quarantined"] == []
    assert isinstance(result.failure, ManyFaults)
    assert "3 of 16 nodes failed, 2 allowed" in str(result.failure)
    assert "training-2" in str(result.failure)


def test_second_run_leaves_the_mark_and_a_later_one_lifts_it(clock: Time) -> None:
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


def test_an_earlier_gate_does_not_lift_what_a_later_one_imposed(clock: Time) -> None:
    taint = {"key": names.QUARANTINE, "value": "devices", "effect": "NoSchedule"}
    cluster = NodeCluster([training(0, allocatable=8, taints=[taint])], healthy("training-0"), on_idle=clock.advance)
    assert run(settings(), cluster).values["released"] == []
    assert run(settings("devices"), cluster).values["released"] == ["training-0"]


def test_foreign_taints_and_cordons_stay(clock: Time) -> None:
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


def _marks(gate: str) -> dict[str, t.Any]:
    return {"key": names.QUARANTINE, "value": gate, "effect": "NoSchedule"}


def test_teardown_lifts_the_marks_of_one_gate_and_nothing_else(clock: Time) -> None:
    foreign = [{"key": "maintenance", "effect": "NoExecute"}, {"key": names.QUARANTINE, "effect": "NoExecute"}]
    nodes = [
        training(0, taints=[*foreign, _marks("driver")]),
        training(1, taints=[_marks("devices")]),
        training(2, taints=list(foreign)),
        training(3),
    ]
    nodes[0]["metadata"]["labels"][names.QUARANTINE] = "driver"
    nodes[0]["metadata"].setdefault("annotations", {})[names.QUARANTINE_REASON] = "driver: it crashed"
    nodes[3]["metadata"].setdefault("annotations", {})[names.QUARANTINE_REASON] = (
        "a rest of a mark that somebody took away in part"
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
    assert cluster.stored("Node", "training-1")["spec"]["taints"] == [_marks("devices")]
    assert cluster.stored("Node", "training-2")["spec"]["taints"] == foreign
    assert quarantine.lift(cluster, "driver") == []
    assert len(cluster.writes) == 2


def test_two_writers_at_once_lose_nothing(clock: Time) -> None:
    """Between our reading and our writing another controller adds a taint, twice."""
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


def test_a_writer_that_never_stops_is_an_error(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = fleet(16, {3}, clock)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    cluster.on("patch", lambda request: cluster.put(cluster.objects[request.place]))
    with pytest.raises(HwaccelError, match="another client wrote the node each time"):
        run(settings(), cluster)


def test_no_quarantine_where_it_is_off(clock: Time) -> None:
    cluster = fleet(16, {3}, clock)
    result = run(settings(quarantine=False), cluster)
    assert result.values["failed_nodes"] == ["training-3"]
    assert cluster.writes == []


def test_check_mode_looks_once_and_tells_what_it_would_do(clock: Time) -> None:
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
def test_limits(given: t.Any, nodes: int, limit: int) -> None:
    assert quarantine.limit_of(given, nodes) == limit


@pytest.mark.parametrize("given", ["", "x", "-1", "101%", "1.5", None])
def test_limits_that_cannot_be_read(given: t.Any) -> None:
    with pytest.raises(HwaccelError, match="max_failed"):
        quarantine.limit_of(given, 4)


#: What the GPU Operator's DaemonSets tolerate, and what ours do.
THEIRS: list[dict[str, t.Any]] = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
OURS: list[dict[str, t.Any]] = [{"operator": "Exists", "effect": "NoSchedule"}]


def _driver_set(tolerations: list[dict[str, t.Any]], **selector: str) -> Obj:
    made = s.exporter("") if selector.pop("exporter", "") else s.driver("")
    made["spec"] |= {"tolerations": tolerations, "nodeSelector": selector}
    return daemon_set("nvidia-driver-daemonset", made, 16) | {
        "metadata": {"name": "nvidia-driver-daemonset", "namespace": "gpu-operator", "generation": 1}
    }


def _taint(cluster: NodeCluster, name: str) -> list[tuple[str, str]]:
    taints = cluster.stored("Node", name)["spec"].get("taints") or []
    return [(taint["value"], taint["effect"]) for taint in taints if taint["key"] == names.QUARANTINE]


@pytest.mark.parametrize(
    ("tolerations", "selector", "effect"),
    [
        (THEIRS, {}, "PreferNoSchedule"),
        (OURS, {}, "NoSchedule"),
        ([{"operator": "Exists"}], {}, "NoSchedule"),
        ([*THEIRS, {"key": names.QUARANTINE, "operator": "Exists"}], {}, "NoSchedule"),
        (THEIRS, {"pool": "training"}, "PreferNoSchedule"),
        (THEIRS, {"pool": "another"}, "NoSchedule"),
        (THEIRS, {"exporter": "yes"}, "NoSchedule"),
        (None, None, "NoSchedule"),
    ],
    ids=[
        "another's",
        "ours",
        "a cloud's that tolerates all",
        "another's that knows us",
        "another's of this pool",
        "another's of another pool",
        "another's exporter",
        "none",
    ],
)
def test_a_mark_never_keeps_off_those_that_mend_the_node(
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


def test_who_may_not_see_whose_daemon_sets_there_are_marks_softly(clock: Time) -> None:
    cluster = fleet(16, {3}, clock)

    def refused(request: Request) -> None:
        if not request.namespace:
            raise Forbidden("listing daemonsets", "", "no", "")

    cluster.on("list", refused, kind="DaemonSet")
    run(settings(), cluster)
    assert _taint(cluster, "training-3") == [("driver", "PreferNoSchedule")]


@pytest.mark.parametrize("mended", [True, False])
def test_a_mark_of_an_earlier_version_lets_them_in_while_the_gate_still_waits(clock: Time, mended: bool) -> None:
    """Under it the operator could make no pod: with NoSchedule on the node it would stay without one for ever."""
    nodes = [training(number, allocatable=8, taints=[_marks("driver")] if number == 0 else None) for number in range(8)]
    nodes[0]["metadata"]["labels"][names.QUARANTINE] = "driver"
    nodes[0]["metadata"]["annotations"][names.QUARANTINE_REASON] = "driver: it crashed"

    def controller(cluster: NodeCluster) -> None:
        if mended and ("driver", "NoSchedule") not in _taint(cluster, "training-0"):
            for pod in healthy("training-0"):
                cluster.put(pod)

    cluster = NodeCluster(
        nodes,
        [pod for number in range(1, 8) for pod in healthy(f"training-{number}")],
        [controller],
        on_idle=clock.advance,
    )
    cluster.put(_driver_set(THEIRS))
    assert run(settings(), cluster, check_mode=True).values["quarantined"] == ["training-0"]
    assert cluster.writes == []
    result = run(settings(), cluster)
    assert result.changed
    if mended:
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


def test_a_mark_is_hard_again_once_only_ours_are_there(clock: Time) -> None:
    cluster = fleet(16, {3}, clock)
    cluster.put(_driver_set(THEIRS))
    run(settings(), cluster)
    cluster.remove("DaemonSet", "nvidia-driver-daemonset")
    assert run(settings(), cluster).values["quarantined"] == ["training-3"]
    assert _taint(cluster, "training-3") == [("driver", "NoSchedule")]
