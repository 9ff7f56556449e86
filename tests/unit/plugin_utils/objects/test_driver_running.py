# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A running driver is kept, also after other declarations, until its node requests another version by label or is deleted."""

from __future__ import annotations

import itertools
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import placement
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import node_sets
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.driver_fleet import DriverFleet, machine
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.scheduling import INFERENCE, TRAINING, holds

OLD, NEW = "595.91.07", "580.178.04"
OTHER_KERNEL = "6.8.0-57-generic"


def fleet(**more: dict[str, str]) -> DriverFleet:
    return DriverFleet(a=machine("training"), b=machine("training"), c=machine("inference"), **more)


def told(plan: dict[str, t.Any]) -> list[str]:
    return [note for note in plan["notes"] if "stays on" in note]


RENAMED, WIDER = {**TRAINING, "name": "renamed"}, {**TRAINING, "selector": "pool in (training,inference)"}


@pytest.mark.parametrize("pools", [[TRAINING, INFERENCE], [TRAINING], [RENAMED], [WIDER]])
def test_pools_that_are_declared_later_restart_no_driver(pools: list[dict[str, t.Any]]) -> None:
    cluster = fleet()
    cluster.run()
    before = dict(cluster.pods)
    plan = cluster.run(pools=pools)
    assert cluster.pods == before
    assert len(told(plan)) == 1
    assert f"driver {OLD} stays on 3 nodes (a, b, c)" in told(plan)[0]
    assert cluster.plan(pools=pools) == plan


def test_a_pool_that_is_renamed_or_selects_otherwise_restarts_no_driver() -> None:
    cluster = fleet()
    cluster.run(pools=[TRAINING])
    before = dict(cluster.pods)
    for pools in ([RENAMED], [WIDER], [{**TRAINING, "selector": "pool=inference"}], [INFERENCE, TRAINING], []):
        plan = cluster.run(pools=pools)
        assert cluster.pods == before
        assert cluster.plan(pools=pools) == plan


def test_another_version_is_for_nodes_that_are_told_so_and_for_those_without_a_driver() -> None:
    cluster = fleet()
    cluster.run(pools=[TRAINING])
    before = dict(cluster.pods)
    plan = cluster.run(pools=[TRAINING], version=NEW)
    assert cluster.pods == before
    assert [
        note
        for note in told(plan)
        if f"driver {OLD} stays on 2 nodes (a, b)" in note and f"set the label hwaccel.gpu/driver-version={NEW}" in note
    ]
    assert cluster.plan(pools=[TRAINING], version=NEW) == plan

    cluster.nodes["late"] = machine("training", OTHER_KERNEL)
    cluster.nodes["b"] = machine("training", wanted=NEW)
    cluster.run(pools=[TRAINING], version=NEW)
    assert cluster.versions() == {"a": OLD, "b": NEW, "c": OLD, "late": NEW}
    # Reverting the label of a node changes only that node, and reverting the inventory changes none.
    cluster.nodes["b"] = machine("training")
    cluster.reconcile()
    assert cluster.versions() == {"a": OLD, "b": OLD, "c": OLD, "late": NEW}
    before = dict(cluster.pods)
    cluster.run(pools=[TRAINING])
    assert cluster.pods == before


def test_the_old_version_goes_with_its_last_pod_and_the_new_one_takes_every_node() -> None:
    cluster = fleet()
    cluster.run()
    cluster.run(version=NEW)
    cluster.nodes = {name: machine(wanted=NEW) for name in cluster.nodes}
    cluster.reconcile()
    before = dict(cluster.pods)
    plan = cluster.run(version=NEW)
    assert cluster.pods == before
    assert told(plan) == []
    assert {one["metadata"]["labels"]["hwaccel.gpu/driver-version"] for one in cluster.drivers.values()} == {NEW}
    cluster.nodes["late"] = machine()
    cluster.reconcile()
    assert cluster.versions()["late"] == NEW


def test_what_nodes_that_are_gone_had_is_no_longer_asked_for() -> None:
    cluster = fleet()
    cluster.run()
    cluster.run(pools=[TRAINING, INFERENCE], version=NEW)
    cluster.nodes = {"d": machine("training"), "e": machine("inference")}
    cluster.pods = {}
    plan = cluster.run(pools=[TRAINING, INFERENCE], version=NEW)
    assert told(plan) == []
    assert cluster.versions() == {"d": NEW, "e": NEW}
    assert {one["metadata"]["labels"]["hwaccel.gpu/pool"] for one in cluster.drivers.values()} == {
        "training",
        "inference",
    }


def test_three_versions_side_by_side() -> None:
    cluster = fleet()
    cluster.run()
    cluster.run(version=NEW)
    cluster.nodes["a"] = machine("training", wanted=NEW)
    cluster.reconcile()
    before = dict(cluster.pods)
    cluster.run(version="610.57.04")
    assert cluster.pods == before
    cluster.nodes["b"] = machine("training", wanted="610.57.04")
    cluster.reconcile()
    assert cluster.versions() == {"a": NEW, "b": "610.57.04", "c": OLD}


def test_versions_that_are_declared_side_by_side_are_still_told_apart_by_the_label() -> None:
    cluster = fleet()
    cluster.run(pools=[TRAINING])
    before = dict(cluster.pods)
    cluster.run(pools=[TRAINING], extra_versions={"training": [NEW]})
    assert cluster.pods == before
    cluster.nodes["a"] = machine("training", wanted=NEW)
    cluster.reconcile()
    assert cluster.versions() == {"a": NEW, "b": OLD, "c": OLD}


def test_a_label_that_means_nothing_for_a_nodes_pool_restarts_no_driver() -> None:
    cluster = DriverFleet(a=machine("training"), c=machine("inference", wanted=NEW))
    cluster.run()
    before = dict(cluster.pods)
    cluster.run(pools=[TRAINING], extra_versions={"training": [NEW]})
    assert cluster.pods == before


def test_a_node_that_the_catch_all_has_taken_keeps_its_driver() -> None:
    cluster = fleet()
    cluster.run()
    cluster.nodes["late"] = machine("training", OTHER_KERNEL)
    cluster.reconcile()
    before = dict(cluster.pods)
    assert "other-kernels" in before["late"][0]
    plan = cluster.run()
    assert cluster.pods == before
    assert cluster.plan() == plan
    del cluster.nodes["late"], cluster.pods["late"]
    cluster.nodes["later"] = machine("training", OTHER_KERNEL)
    cluster.run()
    assert "other-kernels" not in cluster.pods["later"][0]


def test_a_driver_stays_with_what_it_needs_where_its_pool_is_another_ones_now() -> None:
    cluster = fleet()
    needed = {
        (one["kind"], one["metadata"]["name"])
        for one in cluster.run()["objects"]
        if "nvidia-driver" in one["metadata"]["name"]
    }
    before = dict(cluster.pods)
    plan = cluster.run(provider="host")
    assert cluster.pods == before
    assert {("ServiceAccount", "nvidia-driver"), ("ConfigMap", "nvidia-driver-startup-probe")} < needed
    assert {one for one in needed if one[0] != "DaemonSet"} <= {
        (one["kind"], one["metadata"]["name"]) for one in plan["objects"]
    }


def test_a_pod_that_has_never_started_a_driver_holds_nothing() -> None:
    """A version that does not exist can be replaced by another one."""
    cluster = fleet()
    cluster.broken = set(cluster.nodes)
    cluster.run(version="595.99.99")
    plan = cluster.run(version=NEW)
    assert told(plan) == []
    assert set(cluster.versions().values()) == {NEW}


def test_a_kernel_that_the_new_version_has_no_image_for_keeps_its_daemon_set_without_pods_too() -> None:
    cluster = fleet()
    cluster.run(source="precompiled")
    (name,) = {pod[0] for pod in cluster.pods.values()}
    cluster.broken = set(cluster.nodes)
    plan = cluster.run(source="precompiled", version="610.57.04")
    assert [
        note
        for note in plan["notes"]
        if f"driver {OLD} stays, by DaemonSet {name}: there is no other image for that kernel" in note
    ]
    assert name in cluster.drivers
    assert not [note for note in plan["notes"] if note.startswith("will fail")]


def test_a_move_to_another_namespace_under_running_drivers_is_refused() -> None:
    cluster = fleet()
    cluster.run()
    for one in cluster.drivers.values():
        one["metadata"]["namespace"] = "before"
    (fault,) = cluster.plan()["faults"]
    assert "runs on 3 nodes in namespace before" in fault["text"]
    assert "set hwaccel_namespace to before" in fault["text"]


# -- arbitrary histories

DECLARED = st.sampled_from(
    [
        [],
        [TRAINING],
        [INFERENCE],
        [TRAINING, INFERENCE],
        [RENAMED],
        [WIDER],
        [{**TRAINING, "selector": "pool!=inference"}],
        [{**TRAINING, "nodes": ["c"]}],
    ]
)
RUNS = st.tuples(
    DECLARED,
    st.sampled_from([OLD, NEW, "610.57.04"]),
    st.sampled_from([{}, {"training": [OLD]}, {"renamed": [NEW, "610.57.04"]}]),
)
CHANGES = st.one_of(
    RUNS,
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["", OLD, NEW])),
    st.tuples(st.sampled_from("abcd"), st.just("gone")),
    st.tuples(
        st.sampled_from("abcd"),
        st.just("joins"),
        st.sampled_from(["6.8.0-134-generic", OTHER_KERNEL]),
        st.sampled_from(["training", "inference", ""]),
    ),
)


@settings(deadline=None, max_examples=40)
@given(st.lists(CHANGES, max_size=8), RUNS)
def test_whatever_happens_a_driver_goes_only_with_its_node_or_by_the_nodes_label(
    changes: list[t.Any], last: t.Any
) -> None:
    cluster = DriverFleet(a=machine("training"), b=machine("training", OTHER_KERNEL), c=machine("inference"))
    for change in [*changes, last]:
        if isinstance(change[0], list):
            before = dict(cluster.pods)
            wanted = {"pools": change[0], "version": change[1], "extra_versions": change[2]}
            plan = cluster.run(**wanted)
            gone = {name for name, pod in before.items() if cluster.pods.get(name) != pod}
            assert all(
                cluster.nodes[name].get("hwaccel.gpu/driver-version") == cluster.versions()[name] for name in gone
            )
            assert set(cluster.pods) == set(cluster.nodes)
            assert cluster.plan(**wanted)["objects"] == plan["objects"] or gone
            continue
        name, what = change[:2]
        if what == "gone":
            cluster.nodes.pop(name, None)
        elif what == "joins":
            cluster.nodes.setdefault(name, machine(change[3], change[2]))
        elif name in cluster.nodes:
            cluster.nodes[name] = {
                key: value for key, value in cluster.nodes[name].items() if key != "hwaccel.gpu/driver-version"
            }
            cluster.nodes[name] |= {"hwaccel.gpu/driver-version": what} if what else {}
        cluster.reconcile()


REQUIREMENTS = st.one_of(
    st.tuples(st.sampled_from("xyz"), st.sampled_from(["In", "NotIn"]), st.sets(st.sampled_from("123"), min_size=1)),
    st.tuples(st.sampled_from("xyz"), st.sampled_from(["Exists", "DoesNotExist"]), st.just(set())),
)
TERM = st.lists(REQUIREMENTS, max_size=3).map(
    lambda term: tuple(placement.need(key, operator, *values) for key, operator, values in term)
)
TERMS = st.lists(TERM, max_size=3)


@given(TERMS, TERMS)
def test_sets_of_nodes_are_told_exactly(first: list[placement.Term], second: list[placement.Term]) -> None:
    def within(terms: list[placement.Term], labels: dict[str, str]) -> bool:
        return any(all(holds(requirement, labels) for requirement in term) for term in terms)

    nodes = [dict(zip("xyz", values, strict=True)) for values in itertools.product(["", "1", "2", "3", "4"], repeat=3)]
    nodes = [{key: value for key, value in labels.items() if value} for labels in nodes]
    common, left = node_sets.common(first, second), node_sets.without(first, second)
    for labels in nodes:
        assert within(common, labels) == (within(first, labels) and within(second, labels))
        assert within(left, labels) == (within(first, labels) and not within(second, labels))
    assert node_sets.covers(second, first) == (not [labels for labels in nodes if within(left, labels)])
    assert node_sets.without(first, []) == first
