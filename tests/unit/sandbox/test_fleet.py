# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes to a fleet: reboots, kernels, and faults."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.fleet_file import parse
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.sandbox import fleet_changes

OLD, NEW, NEWER = "6.8.0-45-generic", "6.8.0-48-generic", "6.8.0-50-generic"


def declared(count: int = 2, **fields: t.Any) -> dict[str, t.Any]:
    return parse({"pools": [{"name": "a", "count": count, "kernel": OLD, **fields}]})


def test_the_same_fleet_is_unchanged() -> None:
    first = fleet.advance({}, declared(), [])
    assert fleet.advance(first, declared(), []) == first


def test_a_reboot_is_counted_once() -> None:
    first = fleet.advance({}, declared(), [])
    second = fleet.advance(first, declared(), [fleet.Reboot("a-1")])
    assert [node["boot"] for node in second["nodes"].values()] == [1, 2]
    assert fleet.advance(second, declared(), []) == second


def test_a_kernel_of_a_reboot_is_kept_until_the_file_has_another() -> None:
    first = fleet.advance({}, declared(), [])
    second = fleet.advance(first, declared(), [fleet.Reboot("a-0", NEW)])
    assert (second["nodes"]["a-0"]["kernel"], second["nodes"]["a-0"]["boot"]) == (NEW, 2)
    assert fleet.advance(second, declared(), []) == second
    third = fleet.advance(second, declared(kernel=NEWER), [])
    assert [(node["kernel"], node["boot"]) for node in third["nodes"].values()] == [(NEWER, 3), (NEWER, 2)]


def test_a_new_kernel_or_system_in_the_file_is_a_reboot() -> None:
    first = fleet.advance({}, declared(), [])
    assert fleet.advance(first, declared(kernel=NEW), [])["nodes"]["a-0"]["boot"] == 2
    assert fleet.advance(first, declared(os_image="Ubuntu 22.04.5 LTS"), [])["nodes"]["a-0"]["boot"] == 2
    assert fleet.advance(first, declared(labels={"x": "y"}), [])["nodes"]["a-0"]["boot"] == 1


def test_changes_are_reported_by_kind() -> None:
    first = fleet.advance({}, declared(4), [])
    second = fleet.advance(first, declared(3, labels={"x": "y"}), [fleet.Reboot("a-0")])
    assert fleet_changes(first, second) == ["nodes removed: a-3", "nodes rebooted: a-0", "nodes changed: a-1, a-2"]
    assert fleet_changes({}, declared(7)) == ["nodes added: a-0, a-1, a-2, a-3, a-4 and 2 more"]


def test_faults_are_applied_to_nodes_and_pools() -> None:
    base = declared(faults=["plugin_fewer_gpus"])
    faulty = fleet.with_faults(
        base,
        [{"name": "driver_load_failure", "node": "a-1"}, {"name": "plugin_fewer_gpus", "pool": "a", "image": None}],
    )
    assert [one["name"] for one in faulty["nodes"]["a-0"]["faults"]] == ["plugin_fewer_gpus"]
    assert [one["name"] for one in faulty["nodes"]["a-1"]["faults"]] == ["plugin_fewer_gpus", "driver_load_failure"]
    assert [one["name"] for one in base["nodes"]["a-1"]["faults"]] == ["plugin_fewer_gpus"]


def test_all_invalid_faults_and_reboots_are_reported() -> None:
    base = declared()
    with pytest.raises(ManyFaults) as caught:
        fleet.with_faults(
            base,
            [
                {"name": "meteorite", "node": "a-0"},
                {"name": "driver_load_failure"},
                {"name": "driver_load_failure", "pool": "b"},
            ],
        )
    assert [fault.where for fault in caught.value.faults] == ["faults[0].faults[0]", "faults[1]", "faults[2]"]
    with pytest.raises(ManyFaults) as caught:
        fleet.check_reboots([{"node": "a-9"}, {"node": "a-0", "kernel": "?"}], base["nodes"])
    assert [fault.where for fault in caught.value.faults] == ["reboot[0]", "reboot[1]"]


def test_pools_are_counted_in_their_order() -> None:
    both = parse(
        {
            "pools": [
                {"name": "z", "count": 2, "gpu": {"product": "NVIDIA-L40S", "count": 4, "memory_mib": 1}},
                {"name": "a"},
            ]
        }
    )
    assert fleet.count_by_pool(both) == [
        {"name": "z", "nodes": 2, "gpus": 8, "gpu_product": "NVIDIA-L40S"},
        {"name": "a", "nodes": 1, "gpus": 0, "gpu_product": ""},
    ]
