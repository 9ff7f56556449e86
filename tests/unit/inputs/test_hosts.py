# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors in the hosts of an inventory, and tags that do not exist."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import hosts, table

GROUPS = {"gpu_clusters": ["north", "south"], "workers": ["w1", "w2", "north"], "load_balancers": ["lb"]}


@pytest.mark.parametrize(
    ("groups", "in_play", "message"),
    [
        (GROUPS, ["south"], ""),
        (GROUPS, ["w1"], "There is no cluster: the limit of this run excludes all of north, south."),
        ({"workers": ["w1"]}, ["w1"], "There is no cluster: the inventory has no host in the group gpu_clusters."),
        ({"gpu_clusters": []}, [], "There is no cluster: the inventory has no host in the group gpu_clusters."),
    ],
)
def test_a_run_without_a_cluster_is_refused_with_the_next_step(
    groups: dict[str, list[str]], in_play: list[str], message: str
) -> None:
    found = hosts.selected(groups, in_play)
    assert found.partition(" Next: ")[0] == message
    assert bool(found) == ("Next: " in found)


def test_a_run_is_restricted_to_clusters_that_exist_and_are_within_its_limit() -> None:
    assert hosts.only(GROUPS, []) == hosts.only(GROUPS, ["south"]) == ""
    assert hosts.only(GROUPS, ["nort", "x"]) == (
        "hwaccel_only_clusters: the inventory has no cluster nort, x: did you mean north? Next: choose among north, south."
    )
    assert hosts.selected(GROUPS, ["north", "w1"], ["north"]) == ""
    assert hosts.selected(GROUPS, ["north", "w1"], ["south"]).startswith("There is no cluster")


@pytest.mark.parametrize(
    ("requested", "known", "message"),
    [
        (["all"], table.STAGES, ""),
        (["driver", "monitoring"], table.STAGES, ""),
        (["drivers"], ["driver", "x"], "This tag does not exist here: drivers. Next: choose stages among driver, x."),
        (["b", "a"], ["x"], "These tags do not exist here: a, b. Next: choose stages among x."),
        (
            ["a"],
            [],
            "This tag does not exist here: a. Next: remove --tags (AWX: Job Tags), because this playbook has no tags.",
        ),
    ],
)
def test_tags_that_do_not_exist_are_refused(requested: list[str], known: list[str], message: str) -> None:
    assert hosts.tags(requested, known) == message


def test_clusters_are_no_machines() -> None:
    assert hosts.machines(GROUPS, ["workers", "load_balancers", "nowhere"]) == ["lb", "w1", "w2"]


def test_machines_need_a_cluster_if_there_are_several() -> None:
    faults = hosts.unassigned(GROUPS, ["workers"], {"w1": "south", "lb": ""})
    assert faults == [
        "w2 is a machine without a cluster: there are 2, and it has no hwaccel_cluster. Next: set it to one of north, south"
    ]
    assert hosts.unassigned({"gpu_clusters": ["north"], "workers": ["w1"]}, ["workers"], {"w1": ""}) == []


def test_the_cluster_of_a_machine_must_exist_also_of_a_shared_one() -> None:
    [fault] = hosts.unassigned(GROUPS, ["workers"], {"w1": "south", "w2": "north", "lb": "east"})
    assert fault.startswith(
        "lb is a machine without a cluster: its hwaccel_cluster is east, and the clusters are north, south."
    )
