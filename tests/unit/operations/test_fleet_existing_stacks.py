# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All gates and the validation on existing stacks, with the driver in pods or on the host, healthy and with one fault."""

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

#: (stack, driver on the host, fault, the gate that reports it, the reason).
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
#: Stacks whose pods tolerate all taints, so that the quarantine can have the effect NoSchedule.
TOLERANT = ("gke",)


STACKS = ("gpu-operator", "openshift", "upstream", "gke", "k3s")


def test_each_stack_has_a_fault_with_either_driver() -> None:
    assert {entry[:2] for entry in FAULTS} == {(name, host) for name in STACKS for host in (False, True)}
    assert {name for name, _host, fault, *_rest in FAULTS if fault in (PLUGIN_CRASH, VALIDATOR_STUCK)} == set(STACKS)


@pytest.mark.parametrize("host", [False, True], ids=["driver in pods", "driver of the host"])
@pytest.mark.parametrize("name", STACKS)
def test_a_ready_existing_stack_passes_immediately_and_is_not_changed(clock: Time, name: str, host: bool) -> None:
    cluster = Foreign(stack(name, host=host))
    before = cluster.foreign_objects()
    first = site(cluster, clock)
    assert (first.failed, first.released, first.proven) == ({}, [], 4)
    assert first.took < 60, "there is nothing to wait for"
    written = len(cluster.writes)
    second = site(cluster, clock)
    assert (second.failed, second.changed, second.proven, len(cluster.writes)) == ({}, False, 4, written)
    assert only_ours(cluster.patched) and cluster.changed_foreign == [] and cluster.foreign_objects() == before


@pytest.mark.parametrize(("name", "host", "fault", "gate", "reason"), FAULTS)
def test_a_fault_is_reported_with_its_cause_and_the_node_released_after_repair(
    clock: Time, name: str, host: bool, fault: str, gate: str, reason: str
) -> None:
    cluster = Foreign(stack(name, host=host))
    before = cluster.foreign_objects()
    cluster.faults["gpu-1"] = fault
    cluster.reconcile()
    first = site(cluster, clock)
    assert set(first.failed) == {"gpu-1"} and first.proven == 3
    reported_by, row = first.failed["gpu-1"]
    assert reported_by == gate and re.search(reason, row["reason"]), (reported_by, row)
    if fault == DRIVER_CRASH and not host:
        assert "Xid" in row["log_tail"] and "Could not load NVIDIA driver kernel modules" in row["log_tail"]
        assert "the GPU does not respond to the driver" in row["next_step"]
    effects = [
        taint["effect"]
        for taint in cluster.stored("Node", "gpu-1")["spec"]["taints"]
        if taint["key"] == names.QUARANTINE
    ]
    assert effects == ["NoSchedule" if name in TOLERANT else "PreferNoSchedule"]

    written, ran = len(cluster.writes), len(cluster.created)
    second = site(cluster, clock)
    assert (second.changed, len(cluster.writes), len(cluster.created)) == (False, written, ran)
    assert (second.failed["gpu-1"][0], second.failed["gpu-1"][1]["reason"]) == (gate, row["reason"])

    cluster.repair("gpu-1")
    third = site(cluster, clock)
    assert (third.failed, third.released, third.proven) == ({}, ["gpu-1"], 4)
    assert not site(cluster, clock).changed
    assert only_ours(cluster.patched) and cluster.changed_foreign == [] and cluster.foreign_objects() == before
