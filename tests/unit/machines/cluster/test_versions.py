# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which version a cluster can have after the one that its members run."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import versions
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import (
    ABSENT,
    AGENT,
    MEMBER,
    SERVER,
    Found,
    Machine,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Version


def machine(host: str, version: Version, state: str = MEMBER, control_plane: Version = ()) -> Machine:
    found = Found(state=state, version=version, control_plane=control_plane)
    return Machine(host, host, "10.0.0.11", SERVER, found)


@pytest.mark.parametrize(
    ("runs", "wanted", "told"),
    [
        ((1, 36, 4), (1, 36, 1), "Kubernetes cannot be downgraded"),
        ((1, 36, 4), (1, 35, 9), "restore a snapshot that the older version has made"),
        ((1, 33, 2), (1, 36, 4), "upgrade to 1.34 first; the path is 1.34, 1.35, 1.36.4"),
        ((1, 34, 0), (1, 36, 4), "only one minor version at a time can be upgraded"),
        ((), (1, 36, 4), "cp1 runs Kubernetes of an unknown version, and 1.36.4 is set"),
        ((1, 36, 4), (2, 0, 0), "no upgrade between these is known"),
    ],
)
def test_a_version_from_which_no_upgrade_leads_to_the_one_that_is_set_is_a_fault_that_says_what_does(
    runs: Version, wanted: Version, told: str
) -> None:
    (fault,) = versions.faults([machine("cp1", runs)], wanted)
    assert told in str(fault)


@pytest.mark.parametrize(
    ("runs", "role", "plane", "told"),
    [
        # An agent that earlier upgrades have missed.
        ((1, 33, 2), AGENT, (), 0),
        ((1, 32, 9), AGENT, (), 1),
        ((1, 34, 2), SERVER, (1, 35, 9), 0),
        ((1, 34, 2), SERVER, (1, 34, 2), 1),
    ],
)
def test_kubelets_may_be_three_minor_versions_older_and_control_planes_one(
    runs: Version, role: str, plane: Version, told: int
) -> None:
    one = dataclasses.replace(machine("one", runs, control_plane=plane), role=role)
    assert len(versions.faults([one], (1, 36, 4))) == told


@pytest.mark.parametrize("runs", [(1, 35, 9), (1, 36, 3), (1, 36, 4)])
def test_an_older_patch_and_the_minor_before_are_upgraded(runs: Version) -> None:
    assert versions.faults([machine("cp1", runs)], (1, 36, 4)) == []


def test_each_such_version_is_told_once_with_its_machines() -> None:
    found = [
        machine("cp1", (1, 36, 4)),
        machine("cp2", (1, 34, 2)),
        machine("w1", (1, 33, 1)),
        machine("w2", (1, 34, 2)),
    ]
    assert [fault.what for fault in versions.faults(found, (1, 36, 4))] == [
        "w1 runs Kubernetes 1.33.1, and 1.36.4 is set",
        "cp2, w2 run Kubernetes 1.34.2, and 1.36.4 is set",
    ]


def test_both_versions_of_an_interrupted_upgrade_count() -> None:
    (fault,) = versions.faults([machine("cp1", (1, 36, 4), control_plane=(1, 36, 5))], (1, 36, 4))
    assert fault.what == "cp1 runs Kubernetes 1.36.5, and 1.36.4 is set"


def test_a_machine_that_is_no_member_has_no_version_to_keep() -> None:
    assert versions.faults([machine("cp1", (1, 30, 0), ABSENT)], (1, 36, 4)) == []
