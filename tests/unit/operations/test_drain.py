# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draining and releasing a node: writes, waits, and the owner of the cordon."""

from __future__ import annotations

import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    BudgetRefused,
    Forbidden,
    HwaccelError,
    Invalid,
    ManyFaults,
    Unreachable,
    WebhookDenied,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import drain
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.drain import (
    NOBODY,
    OTHERS,
    OURS,
    Outcome,
    Settings,
)
from ansible_collections.hwaccel.gpu.plugins.modules import node_drain as module
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import DrainCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.modules import documentation
from ansible_collections.hwaccel.gpu.tests.unit.state.test_draining import DAEMONS, pod

LOCAL = [{"name": "tmp", "emptyDir": {}}]
NODE = "gpu-1"


def on_node(pod_object: dict[str, t.Any], node: str = NODE) -> dict[str, t.Any]:
    pod_object["spec"]["nodeName"] = node
    return pod_object | {"kind": "Pod"}


def cluster_of(*pods: dict[str, t.Any], ready: bool = True) -> DrainCluster:
    """A cluster with the node, an agent and these pods."""
    return DrainCluster(s.node(NODE, ready=ready), *(on_node(one) for one in (pod("agent", DAEMONS), *pods)))


def refused(name: str = "train") -> BudgetRefused:
    return BudgetRefused(
        "evicting a pod", "", f"The disruption budget {name} needs 2 healthy pods and has 2 currently", "wait"
    )


def drained(cluster: DrainCluster, *, check_mode: bool = False, **settings: t.Any) -> Outcome:
    return drain.drain(Settings(NODE, **settings), cluster, cluster.clock(), check_mode=check_mode)


def released(cluster: DrainCluster, *, check_mode: bool = False, **settings: t.Any) -> Outcome:
    return drain.release(Settings(NODE, **settings), cluster, cluster.clock(), check_mode=check_mode)


def test_pods_are_evicted_and_the_released_node_is_unchanged() -> None:
    cluster = cluster_of(pod("web"), pod("done", phase="Succeeded"))
    before = dict(cluster.node["spec"])
    outcome = drained(cluster)
    assert (outcome.changed, outcome.failure, outcome.values["evicted"]) == (True, None, ["team-a/web"])
    assert outcome.values["cordoned_by"] == OURS
    assert [one["pod"] for one in outcome.values["staying"]] == ["team-a/agent"]
    assert cluster.unschedulable
    assert names.CORDONED in cluster.node["metadata"]["annotations"]
    release = released(cluster)
    assert (release.changed, release.values["cordoned_by"]) == (True, NOBODY)
    assert cluster.node["spec"] == before
    assert names.CORDONED not in cluster.node["metadata"]["annotations"]


def test_the_second_run_writes_nothing() -> None:
    cluster = cluster_of(pod("web"))
    drained(cluster)
    written = len(cluster.writes), list(cluster.attempted)
    again = drained(cluster)
    assert (again.changed, again.failure, again.values["cordoned_by"]) == (False, None, OURS)
    assert (len(cluster.writes), cluster.attempted) == written
    released(cluster)
    written = len(cluster.writes), list(cluster.attempted)
    assert not released(cluster).changed
    assert (len(cluster.writes), cluster.attempted) == written


def test_a_cordon_of_another_user_is_not_released() -> None:
    cluster = cluster_of(pod("web"))
    cluster.set_cordon(True)
    outcome = drained(cluster)
    assert (outcome.values["cordoned_by"], cluster.evicted, cluster.patched) == (OTHERS, ["web"], [])
    release = released(cluster)
    assert (release.changed, release.values["cordoned_by"], cluster.patched) == (False, OTHERS, [])
    assert "others cordoned it" in release.progress[0]
    assert cluster.unschedulable


def test_a_cordon_that_another_user_replaced_is_not_released() -> None:
    cluster = cluster_of()
    drained(cluster)
    cluster.set_cordon(None)
    cluster.set_cordon(True)
    assert drained(cluster).values["cordoned_by"] == OTHERS
    release = released(cluster)
    assert (release.changed, release.values["cordoned_by"], cluster.unschedulable) == (True, OTHERS, True)
    assert names.CORDONED not in cluster.node["metadata"]["annotations"]


def test_a_cordon_that_another_user_removed_leaves_no_annotation() -> None:
    cluster = cluster_of()
    drained(cluster)
    cluster.set_cordon(None)
    assert (released(cluster).changed, cluster.unschedulable) == (True, False)
    assert names.CORDONED not in cluster.node["metadata"]["annotations"]


def test_all_problems_are_reported_before_anything_is_changed() -> None:
    cluster = cluster_of(
        pod("web"), pod("alone", None), pod("local", volumes=LOCAL), pod("twice"), pod("kept"), pod("mine")
    )
    cluster.held["twice"] = Invalid("evicting Pod team-a/twice", "", "more than one PodDisruptionBudget", "leave one")
    for name in ("kept", "mine"):
        cluster.held[name] = Forbidden(
            f"evicting Pod team-a/{name}", "", "no right", "let us create pods/eviction in namespace team-a"
        )
    outcome = drained(cluster, option_variables={"force": "the_role_force"})
    assert isinstance(outcome.failure, ManyFaults)
    messages = [str(fault) for fault in outcome.failure.faults]
    assert len(messages) == 4, messages
    assert "team-a/alone" in messages[0] and "the_role_force" in messages[0]
    assert "team-a/local" in messages[1] and "delete_emptydir_data" in messages[1]
    assert (cluster.writes, cluster.evicted, cluster.unschedulable) == ([], [], False)
    assert drained(cluster, check_mode=True).failure.args == drained(cluster).failure.args  # type: ignore[union-attr]


def test_a_budget_that_allows_eviction_later_does_not_hold_other_pods() -> None:
    cluster = cluster_of(pod("train"), pod("web"))
    cluster.held["train"] = refused()

    def allow_later() -> None:
        assert "web" in cluster.evicted, "other pods are not held"
        if cluster.time.now > 1020:
            cluster.held.clear()

    cluster.time.on_sleep = allow_later
    outcome = drained(cluster)
    assert (outcome.failure, cluster.evicted) == (None, ["web", "train"])
    assert any(
        "1 held (team-a/train: The disruption budget train needs 2 healthy" in line for line in outcome.progress
    ), outcome.progress
    assert outcome.values["evicted"] == ["team-a/train", "team-a/web"]


def test_a_budget_that_never_allows_eviction_is_named_and_the_node_stays_cordoned() -> None:
    cluster = cluster_of(pod("train"), pod("web"))
    cluster.held["train"] = refused()
    outcome = drained(cluster, timeout=30)
    assert 1030 <= cluster.time.now < 1040
    assert "gpu-1 is not drained after 30 s, and stays cordoned" in str(outcome.failure)
    assert "pod team-a/train cannot be evicted: The disruption budget train needs 2 healthy pods" in str(
        outcome.failure
    )
    assert outcome.values["held"] == [
        {"pod": "team-a/train", "why": "The disruption budget train needs 2 healthy pods and has 2 currently"}
    ]
    assert (outcome.changed, cluster.unschedulable, outcome.values["evicted"]) == (True, True, ["team-a/web"])
    cluster.held.clear()
    assert drained(cluster).values["evicted"] == ["team-a/train"]


@pytest.mark.parametrize(
    "error",
    [
        WebhookDenied("evicting", "", "its machine is moved first", "wait"),
        Forbidden(
            "evicting", "", "unable to create", "", body={"details": {"causes": [{"reason": "NamespaceTerminating"}]}}
        ),
    ],
)
def test_evictions_that_are_denied_temporarily_are_retried(error: HwaccelError) -> None:
    cluster = cluster_of(pod("web"))
    error.status = 429 if isinstance(error, WebhookDenied) else 403  # type: ignore[attr-defined]
    cluster.held["web"] = error  # type: ignore[assignment]
    cluster.time.on_sleep = cluster.held.clear
    assert drained(cluster).failure is None
    assert cluster.evicted == ["web"]


@pytest.mark.parametrize(
    ("ready", "message"), [(True, "increase my_timeout"), (False, "the node is not Ready: NodeStatusUnknown")]
)
def test_pods_that_do_not_end_are_reported(ready: bool, message: str) -> None:
    cluster = cluster_of(pod("web"), ready=ready)
    cluster.ends = False
    outcome = drained(cluster, timeout=20, option_variables={"timeout": "my_timeout"})
    assert cluster.evicted == ["web"], "the eviction is not repeated"
    assert "pod team-a/web is terminating" in str(outcome.failure)
    assert message in str(outcome.failure)


def test_an_unreachable_server_is_not_tried_for_each_pod() -> None:
    cluster = cluster_of(pod("web"), pod("db"))
    cluster.held["db"] = Unreachable("evicting Pod team-a/db", "", "no answer", "check it")
    with pytest.raises(Unreachable):
        drained(cluster)
    assert cluster.attempted == ["db"]


def test_a_pod_of_the_same_name_on_another_node_is_not_waited_for() -> None:
    cluster = cluster_of(pod("db-0"))

    def rescheduled(_request: Request) -> None:
        moved = on_node(pod("db-0"), "gpu-2")
        moved["metadata"]["uid"] = "another"
        cluster.put(moved)

    cluster.on("patch", rescheduled)
    outcome = drained(cluster)
    assert (outcome.failure, cluster.evicted) == (None, [])


def test_a_pod_that_is_scheduled_before_the_cordon_takes_effect_is_checked_as_well() -> None:
    cluster = cluster_of(pod("web"))
    cluster.on("patch", lambda _request: cluster.put(on_node(pod("late", None))))
    outcome = drained(cluster)
    assert "is not drained, and stays cordoned" in str(outcome.failure)
    assert "team-a/late" in str(outcome.failure)
    assert cluster.evicted == []


def test_check_mode_predicts_and_writes_nothing() -> None:
    cluster = cluster_of(pod("web"), pod("train"))
    cluster.held["train"] = refused()
    outcome = drained(cluster, check_mode=True)
    assert (outcome.changed, outcome.failure, cluster.writes, cluster.evicted) == (True, None, [], [])
    assert outcome.values["evicted"] == ["team-a/train", "team-a/web"]
    assert [one["pod"] for one in outcome.values["held"]] == ["team-a/train"]
    assert outcome.values["cordoned_by"] == OURS
    assert not released(cluster, check_mode=True).changed
    cluster.held.clear()
    drained(cluster)
    assert not drained(cluster, check_mode=True).changed
    assert released(cluster, check_mode=True).changed
    assert cluster.unschedulable


def test_check_mode_reports_a_missing_permission_to_patch_the_node() -> None:
    cluster = cluster_of(pod("web"))
    cluster.fail(Forbidden("patching Node gpu-1", "", "no right", "let us patch nodes"), "patch", dry_run=True)
    assert "let us patch nodes" in str(drained(cluster, check_mode=True).failure)


def test_a_missing_node_fails_or_is_ignored() -> None:
    cluster = cluster_of()
    for operate in (drain.drain, drain.release):
        with pytest.raises(HwaccelError, match="there is no node other"):
            operate(Settings("other"), cluster, cluster.clock())
        outcome = operate(Settings("other", ignore_not_found=True), cluster, cluster.clock())
        assert (outcome.changed, outcome.values["found"]) == (False, False)
        assert "has no node other" in outcome.progress[0]
    assert cluster.writes == []


def test_another_cluster_than_the_intended_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of(pod("web"))
    monkeypatch.setattr(drain.fleet, "cluster_uid", lambda client: "actual")
    for operate in (drained, released):
        with pytest.raises(ManyFaults, match="not the cluster in the inventory"):
            operate(cluster, cluster_uid="intended")
        assert operate(cluster, cluster_uid="actual", check_mode=True).failure is None
    assert (cluster.writes, cluster.evicted) == ([], [])


def test_slices_continue_where_the_last_one_ended() -> None:
    cluster = cluster_of(pod("web"), pod("train"))
    cluster.ends = False
    cluster.held["train"] = refused()
    settings = Settings(NODE, timeout=60)
    first = drain.drain(settings, cluster, cluster.clock(10))
    assert first.changed and first.pending is not None
    cluster.held.clear()
    cluster.requests.clear()
    second = drain.drain(settings, cluster, cluster.clock(10), resume=first.pending)
    assert second.pending is not None
    assert cluster.attempted == ["train"], "the dry run is not repeated"
    for name in ("web", "train"):
        cluster.remove("Pod", name)
    last = drain.drain(settings, cluster, cluster.clock(10), resume=second.pending)
    assert (last.failure, last.pending, last.changed) == (None, None, False)
    assert last.values["evicted"] == ["team-a/train", "team-a/web"]
    assert second.pending["until"] == first.pending["until"] == 1060


def test_a_node_is_released_once_it_is_ready() -> None:
    cluster = cluster_of(ready=False)
    drained(cluster)
    early = drain.release(Settings(NODE, timeout=60), cluster, cluster.clock(10))
    assert early.pending is not None and cluster.unschedulable
    assert "is not Ready yet: NodeStatusUnknown" in early.progress[0]
    late = released(cluster, timeout=30)
    assert "is not Ready after 30 s" in str(late.failure)
    assert cluster.unschedulable
    cluster.time.on_sleep = lambda: cluster.node["status"].update(conditions=[{"type": "Ready", "status": "True"}])
    assert released(cluster).changed
    assert not cluster.unschedulable


def test_a_node_that_another_user_cordoned_is_not_waited_for() -> None:
    cluster = cluster_of(ready=False)
    cluster.set_cordon(True)
    assert released(cluster).failure is None
    assert cluster.time.now == 1000


def test_documented_options_and_values_match_the_module() -> None:
    documentation.options_match(module)
    returned = set(yaml.safe_load(module.RETURN))
    cluster = cluster_of(pod("web"))
    absent = drain.drain(Settings("x", ignore_not_found=True), cluster, cluster.clock())
    outcomes = [absent, drained(cluster, check_mode=True), drained(cluster), released(cluster)]
    assert [set(outcome.values) for outcome in outcomes] == [returned] * 4
