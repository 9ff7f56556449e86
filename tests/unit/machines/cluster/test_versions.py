# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which version a cluster can have after the one that its members run."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import versions
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import (
    ABSENT,
    MEMBER,
    SERVER,
    Found,
    Machine,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Version


def machine(host: str, version: Version, state: str = MEMBER) -> Machine:
    return Machine(host, host, "10.0.0.11", SERVER, Found(state=state, version=version))


@pytest.mark.parametrize(
    ("runs", "wanted", "told"),
    [
        ((1, 36, 4), (1, 36, 1), "Kubernetes cannot be downgraded"),
        ((1, 36, 4), (1, 35, 9), "restore a snapshot that the older version has made"),
        ((1, 33, 2), (1, 36, 4), "upgrade to 1.34 first; the path is 1.34, 1.35, 1.36.4"),
        ((1, 34, 0), (1, 36, 4), "only one minor version at a time can be upgraded"),
        ((1, 35, 9), (1, 36, 4), "or upgrade the cluster to 1.36.4 first"),
        ((1, 36, 3), (1, 36, 4), "or upgrade the cluster to 1.36.4 first"),
        ((), (1, 36, 4), "cp1 runs Kubernetes of an unknown version, and 1.36.4 is set"),
        ((1, 36, 4), (2, 0, 0), "or upgrade the cluster to 2.0.0 first"),
    ],
)
def test_a_version_that_members_do_not_run_is_a_fault_that_says_how_it_can_be_had(
    runs: Version, wanted: Version, told: str
) -> None:
    (fault,) = versions.faults([machine("cp1", runs)], wanted)
    assert told in str(fault)


def test_each_version_beside_the_wanted_one_is_told_once_with_its_machines() -> None:
    found = [
        machine("cp1", (1, 36, 4)),
        machine("cp2", (1, 35, 1)),
        machine("w1", (1, 34, 1)),
        machine("w2", (1, 35, 1)),
    ]
    assert [fault.what for fault in versions.faults(found, (1, 36, 4))] == [
        "w1 runs Kubernetes 1.34.1, and 1.36.4 is set",
        "cp2, w2 run Kubernetes 1.35.1, and 1.36.4 is set",
    ]


def test_a_machine_that_is_no_member_has_no_version_to_keep() -> None:
    assert versions.faults([machine("cp1", (1, 30, 0), ABSENT)], (1, 36, 4)) == []
