# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes get the switches that the driver manager uses to evict GPU clients. All are removed later, except those of users or another deployer."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet_existing, quarantine, switches
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import training

DEPLOY = "nvidia.com/gpu.deploy."


def node(number: int, by_manager: dict[str, str], by_users: dict[str, str] | None = None) -> dict[str, t.Any]:
    result = training(number)
    result["metadata"]["labels"] |= by_manager | (by_users or {})
    result["metadata"]["managedFields"] = [
        {
            "manager": manager,
            "operation": "Update",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {f"f:{key}": {} for key in keys}}},
        }
        for manager, keys in (("driver-manager", by_manager), ("kubectl-label", by_users or {}))
    ]
    return result


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {"nfd": [], "device_plugin": [], "driver": [], "cluster_policy": []}
    monkeypatch.setattr(fleet_existing, "components", lambda _client: found)
    return found


@pytest.mark.usefixtures("others")
def test_empty_switches_are_removed_and_values_of_users_stay() -> None:
    cluster = NodeCluster(
        [
            node(
                0,
                {DEPLOY + "dcgm": "", DEPLOY + "mig-manager": "true", "nvidia.com/other": ""},
                {DEPLOY + "client": ""},
            ),
            node(1, {DEPLOY + "driver": "pre-installed"}),
            node(2, {}, {DEPLOY + "driver": "pre-installed"}),
        ],
        [],
    )
    before = cluster.stored("Node", "training-2")["metadata"]
    assert switches.take_back(cluster, check_mode=True) == ["training-0", "training-1"]
    assert cluster.writes == []
    assert switches.take_back(cluster) == ["training-0", "training-1"]
    assert [(name, patch["metadata"]["labels"]) for name, patch in cluster.patched] == [
        ("training-0", {DEPLOY + "dcgm": None}),
        ("training-1", {DEPLOY + "driver": None}),
    ]
    assert cluster.stored("Node", "training-2")["metadata"] == before
    assert switches.take_back(cluster) == []


@pytest.mark.parametrize("component", ["driver", "cluster_policy"])
def test_beside_another_deployer_no_switch_is_removed(others: dict[str, list[dict[str, str]]], component: str) -> None:
    cluster = NodeCluster([node(0, {DEPLOY + "dcgm": ""})], [])
    others[component].append(
        {"kind": "DaemonSet", "namespace": "gpu-operator", "name": "nvidia-driver-daemonset", "image": ""}
    )
    assert switches.take_back(cluster) == []
    assert cluster.writes == []


@pytest.mark.usefixtures("others")
def test_missing_switches_are_added_and_removed_again() -> None:
    cluster = NodeCluster([node(0, {DEPLOY + "container-toolkit": ""}, {DEPLOY + "device-plugin": "false"})], [])
    assert not reduce_node(cluster.stored("Node", "training-0")).switched
    assert switches.provide(cluster, "training-0")
    missing = ("container-toolkit", "dcgm-exporter", "gpu-feature-discovery", "operator-validator")
    given = {DEPLOY + component: "true" for component in missing}
    result = cluster.stored("Node", "training-0")
    assert result["metadata"]["labels"].items() >= (given | {DEPLOY + "device-plugin": "false"}).items()
    assert reduce_node(result).switched
    assert not switches.provide(cluster, "training-0")
    fields = {"f:metadata": {"f:labels": {f"f:{key}": {} for key in given}}}
    result["metadata"]["managedFields"].append(
        {"manager": quarantine.FIELD_MANAGER, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
    )
    assert switches.take_back(cluster) == ["training-0"]
    assert not cluster.stored("Node", "training-0")["metadata"]["labels"].keys() & given.keys()
    assert cluster.stored("Node", "training-0")["metadata"]["labels"][DEPLOY + "device-plugin"] == "false"
