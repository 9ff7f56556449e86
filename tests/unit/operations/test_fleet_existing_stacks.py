# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All gates and the validation over the stacks of others, with a driver in pods and one of the host, healthy and with one fault each."""

from __future__ import annotations

import re

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.operations.foreign_cluster import (
    DRIVER_CRASH,
    NO_TOOLKIT,
    PLUGIN_CRASH,
    VALIDATOR_STUCK,
    Foreign,
    only_ours,
    site,
)
from ansible_collections.hwaccel.gpu.tests.unit.operations.foreign_stacks import stack

#: (stack, driver of the host, fault, the gate that tells it, the reason).
FAULTS = [
    (
        "gpu-operator",
        False,
        DRIVER_CRASH,
        "driver",
        r"container nvidia-driver-ctr of pod nvidia-driver-daemonset-gpu-1 crashed",
    ),
    ("gpu-operator", False, NO_TOOLKIT, "driver", r"container nvidia-container-toolkit-ctr of pod \S+ crashed"),
    ("gpu-operator", False, VALIDATOR_STUCK, "driver", r"the CUDA sample is running on every GPU"),
    (
        "gpu-operator",
        False,
        PLUGIN_CRASH,
        "devices",
        r"container nvidia-device-plugin of pod nvidia-device-plugin-daemonset-gpu-1 crashed",
    ),
    ("gpu-operator", True, DRIVER_CRASH, "driver", r"the validator is checking the driver"),
    ("gpu-operator", True, PLUGIN_CRASH, "devices", r"container nvidia-device-plugin of pod \S+ crashed"),
    (
        "openshift",
        False,
        DRIVER_CRASH,
        "driver",
        r"container nvidia-driver-ctr of pod nvidia-driver-daemonset-9\S+ crashed",
    ),
    ("openshift", True, NO_TOOLKIT, "driver", r"container nvidia-container-toolkit-ctr of pod \S+ crashed"),
    ("openshift", False, VALIDATOR_STUCK, "driver", r"the CUDA sample is running on every GPU"),
    ("openshift", False, PLUGIN_CRASH, "devices", r"container nvidia-device-plugin of pod \S+ crashed"),
    ("openshift", True, PLUGIN_CRASH, "devices", r"container nvidia-device-plugin of pod \S+ crashed"),
    ("openshift", True, VALIDATOR_STUCK, "driver", r"the CUDA sample is running on every GPU"),
    ("upstream", False, DRIVER_CRASH, "driver", r"container nvidia-driver-ctr of pod \S+ crashed"),
    ("upstream", False, PLUGIN_CRASH, "driver", r"container nvidia-device-plugin-ctr of pod \S+ crashed"),
    ("upstream", True, PLUGIN_CRASH, "devices", r"container nvidia-device-plugin-ctr of pod \S+ crashed"),
    ("upstream", True, NO_TOOLKIT, "driver", r"pod nvidia-validator-gpu-1: its sandbox is not created"),
    (
        "gke",
        False,
        DRIVER_CRASH,
        "driver",
        r"container nvidia-driver-installer of pod nvidia-driver-installer-gpu-1 crashed",
    ),
    ("gke", False, PLUGIN_CRASH, "driver", r"container nvidia-gpu-device-plugin of pod \S+ crashed"),
    ("gke", True, PLUGIN_CRASH, "driver", r"container nvidia-gpu-device-plugin of pod \S+ crashed"),
    ("k3s", False, DRIVER_CRASH, "driver", r"container nvidia-driver-ctr of pod \S+ crashed"),
    ("k3s", False, PLUGIN_CRASH, "driver", r"container nvidia-device-plugin-ctr of pod \S+ crashed"),
    ("k3s", True, NO_TOOLKIT, "driver", r"pod nvidia-validator-gpu-1: its sandbox is not created"),
    ("k3s", True, PLUGIN_CRASH, "devices", r"container nvidia-device-plugin-ctr of pod \S+ crashed"),
]
#: Whose pods come to a node whatever its taints: there the mark can be hard.
TOLERANT = ("gke",)


STACKS = ("gpu-operator", "openshift", "upstream", "gke", "k3s")


def test_each_stack_has_a_fault_with_either_driver() -> None:
    assert {told[:2] for told in FAULTS} == {(name, host) for name in STACKS for host in (False, True)}
    assert {name for name, _host, fault, *_told in FAULTS if fault in (PLUGIN_CRASH, VALIDATOR_STUCK)} == set(STACKS)


@pytest.mark.parametrize("host", [False, True], ids=["driver in pods", "driver of the host"])
@pytest.mark.parametrize("name", STACKS)
def test_a_ready_stack_of_others_passes_at_once_and_is_left_alone(clock: Time, name: str, host: bool) -> None:
    cluster = Foreign(stack(name, host=host))
    theirs = cluster.theirs()
    first = site(cluster, clock)
    assert (first.failed, first.released, first.proven) == ({}, [], 4)
    assert first.took < 60, "nothing is waited for"
    written = len(cluster.writes)
    second = site(cluster, clock)
    assert (second.failed, second.changed, second.proven, len(cluster.writes)) == ({}, False, 4, written)
    assert only_ours(cluster.patched) and cluster.touched == [] and cluster.theirs() == theirs


@pytest.mark.parametrize(("name", "host", "fault", "gate", "reason"), FAULTS)
def test_one_fault_is_told_by_its_cause_and_released_once_it_is_gone(
    clock: Time, name: str, host: bool, fault: str, gate: str, reason: str
) -> None:
    cluster = Foreign(stack(name, host=host))
    theirs = cluster.theirs()
    cluster.faults["gpu-1"] = fault
    cluster.reconcile()
    first = site(cluster, clock)
    assert set(first.failed) == {"gpu-1"} and first.proven == 3
    told_by, row = first.failed["gpu-1"]
    assert told_by == gate and re.search(reason, row["reason"]), (told_by, row)
    if fault == DRIVER_CRASH and not host:
        assert "Xid" in row["log_tail"] and "Could not load NVIDIA driver kernel modules" in row["log_tail"]
        assert "the GPU does not respond to the driver" in row["next_step"]
    marks = [
        taint["effect"]
        for taint in cluster.stored("Node", "gpu-1")["spec"]["taints"]
        if taint["key"] == names.QUARANTINE
    ]
    assert marks == ["NoSchedule" if name in TOLERANT else "PreferNoSchedule"]

    written, ran = len(cluster.writes), len(cluster.made)
    second = site(cluster, clock)
    assert (second.changed, len(cluster.writes), len(cluster.made)) == (False, written, ran)
    assert (second.failed["gpu-1"][0], second.failed["gpu-1"][1]["reason"]) == (gate, row["reason"])

    cluster.heal("gpu-1")
    third = site(cluster, clock)
    assert (third.failed, third.released, third.proven) == ({}, ["gpu-1"], 4)
    assert not site(cluster, clock).changed
    assert only_ours(cluster.patched) and cluster.touched == [] and cluster.theirs() == theirs
