# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine on a cluster in memory: the order of writes, and problems that are reported before them."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.ensure import ensure
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.holder import Holder
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import Report
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    ApiError,
    HwaccelError,
    ManyFaults,
)
from ansible_collections.hwaccel.gpu.plugins.modules.manifest_set import ARGUMENT_SPEC
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import (
    CONFIG_MAP,
    NODE,
)
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time

ME = Holder("me", lambda identity: False)


def call(
    cluster: t.Any,
    definition: t.Any = None,
    *,
    check: bool = False,
    diff: bool = False,
    clock: Clock | None = None,
    resume: t.Any = None,
    **options: t.Any,
) -> Report:
    params = (
        {name: spec.get("default") for name, spec in ARGUMENT_SPEC.items()}
        | {"name": "s", "definition": definition, "wait": False}
        | options
    )
    return ensure(
        cluster,
        params,
        clock or Time().clock(),
        resume or {},
        check_mode=check,
        diff=diff,
        holder=options.pop("holder", ME),
    )


def config_map(name: str, **data: t.Any) -> dict[str, t.Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "n"},
        "data": data or {"a": "1"},
    }


def actions(report: Report) -> dict[str, str]:
    assert report.failure is None, str(report.failure)
    return {key.name: row.action for key, row in report.rows.items()}


def test_apply_then_nothing_then_a_change_then_removal() -> None:
    cluster = Cluster()
    asked = [config_map("a"), config_map("b")]
    assert actions(call(cluster, asked)) == {"a": "created", "b": "created"}
    assert [write.split()[0] for write in cluster.writes] == ["create", "create", "apply", "apply", "replace"]
    cluster.writes.clear()
    assert not call(cluster, asked).changed
    assert cluster.writes == []
    report = call(cluster, [config_map("a", a="2"), asked[1]], diff=True)
    assert actions(report) == {"a": "configured", "b": "unchanged"}
    assert [entry["after_header"] for entry in report.diff] == ["ConfigMap n/a"]
    assert cluster.writes == ["replace ConfigMap s", "apply ConfigMap a", "replace ConfigMap s"]
    assert set(actions(call(cluster, state="absent")).values()) == {"deleted"}
    assert set(cluster.objects) == {("namespaces", "", "n")}


def test_check_mode_writes_nothing_and_predicts_the_run() -> None:
    cluster = Cluster()
    call(cluster, [config_map("a"), config_map("b"), config_map("c")])
    cluster.patch(CONFIG_MAP, "a", "n", {"data": {"a": "theirs"}})
    cluster.delete(CONFIG_MAP, "b", "n")
    cluster.writes.clear()
    asked = [config_map("a"), config_map("b"), config_map("d")]
    planned = call(cluster, asked, check=True)
    assert cluster.writes == []
    assert (
        actions(planned)
        == actions(call(cluster, asked))
        == {"a": "reclaimed", "b": "reclaimed", "d": "created", "c": "deleted"}
    )


def test_foreign_objects_stop_the_run_before_its_first_write() -> None:
    cluster = Cluster()
    cluster.create(config_map("a", theirs="1"), CONFIG_MAP, field_manager="kubectl")
    cluster.writes.clear()
    report = call(cluster, [config_map("a"), config_map("b")])
    assert "ConfigMap n/a does not belong to this set" in str(report.failure)
    assert "kubectl" in str(report.failure)
    assert cluster.writes == []
    assert actions(call(cluster, [config_map("a"), config_map("b")], adopt=True))["a"] == "adopted"
    assert actions(call(cluster, state="absent"))["a"] == "released"
    assert cluster.get(CONFIG_MAP, "a", "n")["data"] == {"theirs": "1"}


def test_messages_name_what_their_reader_can_set() -> None:
    cluster = Cluster()
    call(cluster, [config_map(name) for name in "abc"])
    variables = {"max_prune": "gpu_max_prune", "adopt": "gpu_adopt"}
    refused = str(call(cluster, [config_map("a")], option_variables=variables).failure)
    assert "(gpu_max_prune)" in refused
    assert refused.endswith("run once with gpu_max_prune: 2 or more (-e gpu_max_prune=2)")
    assert str(call(cluster, [config_map("a")]).failure).endswith("run once with max_prune: 2 or more")
    assert actions(call(cluster, [config_map("a")], max_prune="2")) == {
        "a": "unchanged",
        "b": "deleted",
        "c": "deleted",
    }
    cluster.create(config_map("d", theirs="1"), CONFIG_MAP, field_manager="kubectl")
    assert "run with gpu_adopt: true" in str(
        call(cluster, [config_map("a"), config_map("d")], option_variables=variables).failure
    )


@pytest.mark.parametrize("check", [True, False])
def test_a_refused_set_reports_nothing_as_done(check: bool) -> None:
    cluster = Cluster()
    call(cluster, [config_map(name) for name in "abc"])
    refused = call(cluster, [config_map("a", key="new"), config_map("d")], check=check)
    assert refused.failure is not None
    assert "2 of 3 members would be deleted" in str(refused.failure)
    assert {key.name: row.action for key, row in refused.rows.items()} == dict.fromkeys("abcd", "unchanged")
    assert {row.key.name: row.reason.rpartition(" ")[2] for row in refused.rows.values()} == {
        "a": "configured",
        "b": "deleted",
        "c": "deleted",
        "d": "created",
    }
    assert (refused.changed, refused.reclaimed, refused.diff) == (False, [], [])


@pytest.mark.parametrize(
    ("counts", "refused"),
    [
        ({}, ""),
        (
            {"numberMisscheduled": 1},
            "1 of 5 members would be deleted, besides 2 DaemonSets without a node (max_prune): 0 allows 0",
        ),
        ({"currentNumberScheduled": 1}, "besides 2 DaemonSets without a node"),
        ({"desiredNumberScheduled": 1}, "besides 2 DaemonSets without a node"),
        ({"observedGeneration": 0}, "besides 2 DaemonSets without a node"),
        (None, "besides 2 DaemonSets without a node"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_daemon_sets_whose_nodes_have_gone_need_no_consent(
    counts: dict[str, int] | None, refused: str, check: bool
) -> None:
    """Deleting them affects no node. This is unknown while the controller has not updated the status. `counts`: status of the third DaemonSet."""
    cluster = Cluster()
    names = ("left", "elsewhere", "third")
    sets = [
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": "n"},
            "spec": {"selector": {}},
        }
        for name in names
    ]
    call(cluster, [config_map("a"), config_map("b"), *sets])
    none = {"desiredNumberScheduled": 0, "currentNumberScheduled": 0, "numberMisscheduled": 0, "observedGeneration": 1}
    for name, more in zip(names, ({}, {}, counts), strict=True):
        cluster.objects["daemonsets", "n", name]["metadata"]["generation"] = 1
        if more is not None:
            cluster.objects["daemonsets", "n", name]["status"] = none | more
    report = call(cluster, [config_map("a"), config_map("b")], max_prune="0", check=check)
    assert refused in str(report.failure) if refused else report.failure is None
    gone = not check and not refused
    assert [name for name in names if ("daemonsets", "n", name) in cluster.objects] == ([] if gone else list(names))
    others = call(cluster, [config_map("a"), *sets], max_prune="0", check=check)
    assert "1 of " in str(others.failure), "what is no DaemonSet counts as before"


def test_a_secret_moves_the_record_into_a_secret() -> None:
    cluster = Cluster()
    call(cluster, [config_map("a")])
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "x", "namespace": "n"},
        "data": {"p": "cGxhbnRlZA=="},
    }
    report = call(cluster, [config_map("a"), secret])
    assert report.record["kind"] == "Secret"
    assert ("configmaps", "hwaccel-gpu-records", "s") not in cluster.objects
    assert not call(cluster, [config_map("a"), secret]).changed
    assert not call(cluster, [config_map("a")], max_prune="1").failure
    assert call(cluster, [config_map("a")]).record["kind"] == "Secret"


def test_the_set_is_held_while_it_is_written_and_free_afterwards() -> None:
    cluster, time = Cluster(), Time()
    seen: list[str] = []

    def spying(_request: Request) -> None:
        annotations = cluster.get(CONFIG_MAP, "s", "hwaccel-gpu-records")["metadata"]["annotations"]
        seen.append(annotations.get("hwaccel.gpu/held-by", ""))

    cluster.on("apply", spying)
    call(cluster, [config_map("a")], clock=time.clock())
    assert seen == ["me"]
    assert "hwaccel.gpu/held-by" not in cluster.get(CONFIG_MAP, "s", "hwaccel-gpu-records")["metadata"]["annotations"]


@pytest.mark.parametrize(("dead", "timeout", "works"), [(False, 60, False), (True, 0, True), (False, 120, True)])
@pytest.mark.parametrize("skew", [-100.0, 0.0, 100.0])
def test_a_hold_of_another_run(dead: bool, timeout: int, works: bool, skew: float) -> None:
    """A hold ends if its run is known to be dead, or if no renewal is observed for its duration. The clock of its run does not matter."""
    cluster, time = Cluster(), Time()
    call(cluster, [config_map("a")], clock=time.clock())
    from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import record

    stamps = {
        record.HELD_SINCE: record.stamp(time.now + skew - 5),
        record.HELD_RENEWED: record.stamp(time.now + skew),
        record.HELD_SECONDS: "90",
    }
    cluster.patch(
        CONFIG_MAP,
        "s",
        "hwaccel-gpu-records",
        {"metadata": {"annotations": {record.HELD_BY: "host pid 9 (x)", **stamps}}},
    )
    holder = Holder("me", lambda identity: identity != "me" and dead)
    started = time.now
    report = call(cluster, [config_map("a", a="2")], clock=time.clock(), lock_timeout=timeout, holder=holder)
    assert (report.failure is None) is works
    assert dead or time.now - started == pytest.approx(90 if works else 60, abs=1.5)
    if not works:
        assert "is held by host pid 9 since" in str(report.failure)
        assert "its last renewal was observed 60 s ago; without another one it expires in 30 s" in str(report.failure)


def test_a_failure_keeps_what_was_done_and_the_next_run_goes_on() -> None:
    cluster = Cluster()
    cluster.fail(ApiError("applying ConfigMap n/b", why="the disk is full"), "apply", name="b")
    runtime_class = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "first"},
        "handler": "x",
    }
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "last", "namespace": "n"},
        "spec": {"selector": {}},
    }
    asked = [daemon_set, config_map("a"), config_map("b"), runtime_class]
    report = call(cluster, asked)
    assert "the disk is full" in str(report.failure)
    assert "2 of 4 were written" in str(report.failure)
    assert report.changed
    told = {key.name: (row.action, row.reason) for key, row in report.rows.items()}
    assert told["first"] == told["a"] == ("created", "")
    assert told["last"] == ("unchanged", "not reached: it would have been created")
    cluster.mend()
    assert actions(call(cluster, asked)) == {"last": "created", "a": "unchanged", "b": "created", "first": "unchanged"}


def test_waiting_in_slices_keeps_what_the_first_slice_did() -> None:
    cluster, time = Cluster(), Time()
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}, "status": ready}, NODE)
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "n"},
        "spec": {"selector": {}},
    }
    asked = [daemon_set, config_map("a")]
    first = call(cluster, asked, wait=True, clock=time.clock(5.0))
    assert first.changed
    assert first.pending is not None
    assert first.progress == ["0 of 1 ready, DaemonSet n/d: 0 of 0 pods, though nodes match its selector"]
    status = {"desiredNumberScheduled": 2, "numberAvailable": 1, "numberReady": 1, "updatedNumberScheduled": 2}
    cluster.objects["daemonsets", "n", "d"]["status"] = status
    second = call(cluster, asked, wait=True, clock=time.clock(5.0), resume=first.pending)
    assert second.progress == ["0 of 1 ready, DaemonSet n/d: 1 of 2 pods"]
    status |= {"numberAvailable": 2, "numberReady": 2}
    last = call(cluster, asked, wait=True, clock=time.clock(5.0), resume=second.pending)
    assert last.pending is None
    assert last.changed
    assert actions(last) == {"d": "created", "a": "created"}
    assert all(row.ready is not False for row in last.rows.values())


def test_waiting_ends_with_the_names_of_what_lags() -> None:
    cluster, time = Cluster(), Time()
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}}, NODE)
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "n"},
        "spec": {"selector": {}},
    }
    report = call(cluster, [daemon_set], wait=True, wait_timeout=7, clock=time.clock())
    assert "1 object is not ready after 7 s" in str(report.failure)
    assert "DaemonSet n/d: 0 of 0 pods, though nodes match its selector" in str(report.failure)
    assert report.changed


def test_missing_rights_where_nothing_could_be_asked() -> None:
    cluster = Cluster()
    cluster.forbidden |= {("create", "daemonsets"), ("create", "configmaps")}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
    body = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "new"},
        "spec": {"selector": {}},
    }
    report = call(cluster, [namespace, body])
    assert [(right["verb"], right["resource"], right["namespace"]) for right in report.missing_rights] == [
        ("create", "daemonsets", "new")
    ]
    planned = call(cluster, [namespace, body], check=True)
    assert [(right["verb"], right["resource"], right["namespace"]) for right in planned.missing_rights] == [
        ("create", "configmaps", "hwaccel-gpu-records"),
        ("create", "daemonsets", "new"),
    ]
    assert cluster.writes == []


def test_who_may_not_list_a_kind_is_served_by_name() -> None:
    cluster = Cluster()
    cluster.forbidden.add(("list", "configmaps"))
    asked = [config_map(name) for name in "abcdefgh"]
    assert set(actions(call(cluster, asked)).values()) == {"created"}
    again = call(cluster, asked)
    assert (again.changed, set(actions(again).values())) == (False, {"unchanged"})
    foreign = config_map("foreign")
    cluster.create(foreign, CONFIG_MAP)
    assert "ConfigMap n/foreign does not belong to this set" in str(call(cluster, [*asked, foreign]).failure)


def test_adopted_objects_keep_their_namespace_alive() -> None:
    cluster = Cluster()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu"}}
    call(cluster, [namespace, config_map("ours") | {"metadata": {"name": "ours", "namespace": "gpu"}}])
    users = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "users", "namespace": "gpu"},
        "data": {"b": "2"},
    }
    cluster.create(users, CONFIG_MAP)
    call(cluster, [namespace, users | {"data": {"a": "1"}}], adopt=True, max_prune="50%")
    planned = call(cluster, state="absent", wait=True, check=True)
    told = actions(planned)
    assert told == {"gpu": "kept", "users": "released"}
    assert actions(call(cluster, state="absent", wait=True)) == told
    assert ("configmaps", "gpu", "users") in cluster.objects
    assert ("namespaces", "", "gpu") in cluster.objects


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "Bad Name"}, "is not a valid name of a set"),
        ({"max_prune": "many"}, "max_prune 'many' is invalid"),
        ({"on_immutable": {"Job": "explode"}}, "on_immutable of Job"),
        ({"ready_when": {"Job": "a ["}}, "ready_when of Job"),
        ({"record_namespace": "No/Good"}, "not a name of a namespace"),
        ({"definition": []}, "the set has no objects"),
        ({"definition": "kind: [", "patches": [{"target": {}, "patch": {}}]}, "a patch is invalid"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, t.Any], told: str) -> None:
    with pytest.raises(HwaccelError) as caught:
        call(Cluster(), **({"definition": [config_map("a")]} | options))
    assert told in str(caught.value)


def test_all_offline_faults_at_once() -> None:
    definition = [config_map("a"), config_map("a"), {"kind": "x"}, "kind: ["]
    with pytest.raises(ManyFaults) as caught:
        call(Cluster(), definition, patches=[{"target": {"kind": "Secret"}, "patch": {}}])
    assert len(caught.value.faults) == 4


names = st.sampled_from(["a", "b", "c", "d"])
asks = st.dictionaries(
    names, st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"]), min_size=1), min_size=1
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(asks, min_size=1, max_size=4),
    st.lists(st.tuples(names, st.sampled_from(["edit", "delete", "extra"])), max_size=3),
)
def test_any_row_of_asks_and_drifts_ends_in_the_last_ask(
    history: list[dict[str, dict[str, str]]], drifts: list[tuple[str, str]]
) -> None:
    cluster = Cluster()
    for ask in history:
        report = call(cluster, [config_map(name, **data) for name, data in ask.items()], max_prune="100%")
        if report.failure is not None:
            assert "never removes all" in str(report.failure)
            return
    for name, drift in drifts:
        if ("configmaps", "n", name) not in cluster.objects:
            continue
        if drift == "delete":
            cluster.delete(CONFIG_MAP, name, "n")
        else:
            cluster.patch(CONFIG_MAP, name, "n", {"data": {"x" if drift == "edit" else "extra": "theirs"}})
    asked = [config_map(name, **data) for name, data in history[-1].items()]
    planned = call(cluster, asked, check=True, force_conflicts=True)
    done = call(cluster, asked, force_conflicts=True)
    assert actions(planned) == actions(done)
    for name, data in history[-1].items():
        live = cluster.get(CONFIG_MAP, name, "n")["data"]
        assert {key: live[key] for key in data} == data
    left = {place[2] for place in cluster.objects if place[:2] == ("configmaps", "n")}
    assert left == set(history[-1])
    cluster.writes.clear()
    assert not call(cluster, asked).changed
    assert cluster.writes == []
