# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters that are to be installed, from an inventory."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import inventory

GROUPS = {
    "gpu_clusters": ["one", "two"],
    "control_plane": ["cp1", "other"],
    "workers": ["w1"],
    "edge_nodes": ["e1"],
}
HOSTS: dict[str, dict[str, t.Any]] = {
    "one": {"hwaccel_installer": "kubeadm", "hwaccel_load_balancer_address": "10.0.0.1"},
    "two": {},
    "cp1": {"hwaccel_cluster": "one", "ansible_host": "10.0.0.11", "hwaccel_node_name": "server-1"},
    "other": {"hwaccel_cluster": "two", "ansible_host": "10.0.0.12"},
    "w1": {"hwaccel_cluster": "one", "hwaccel_address": "10.0.0.21", "hwaccel_node_labels": {"pool": "a100"}},
    "e1": {"hwaccel_cluster": "one", "ansible_host": "e1.example.com"},
}


def test_machines_become_servers_and_agents_by_their_groups() -> None:
    found = inventory.read(GROUPS, HOSTS, "one")["machines"]
    assert [(one["host"], one["node"], one["role"]) for one in found] == [
        ("cp1", "server-1", "server"),
        ("w1", "w1", "agent"),
        ("e1", "e1", "agent"),
    ]
    assert found[1]["address"] == "10.0.0.21"
    assert found[1]["labels"] == {"pool": "a100"}


def test_retired_machines_are_listed_for_themselves() -> None:
    hosts = {**HOSTS, "w1": {**HOSTS["w1"], "hwaccel_retired": "yes"}}
    found = inventory.read(GROUPS, hosts, "one")
    assert [one["host"] for one in found["machines"]] == ["cp1", "e1"]
    assert [one["host"] for one in found["retired"]] == ["w1"]
    assert inventory.installers(GROUPS, hosts)["machines"] == ["cp1", "w1", "e1"]


def test_lost_machines_are_listed_for_themselves_and_not_asked() -> None:
    hosts = {**HOSTS, "w1": {**HOSTS["w1"], "hwaccel_lost": True, "hwaccel_retired": True}}
    found = inventory.read(GROUPS, hosts, "one")
    assert [one["host"] for one in found["machines"]] == ["cp1", "e1"]
    assert (found["retired"], [one["host"] for one in found["lost"]]) == ([], ["w1"])
    assert inventory.installers(GROUPS, hosts)["machines"] == ["cp1", "e1"]


def test_the_endpoint_is_the_given_one_then_the_load_balancer_then_the_only_server() -> None:
    def endpoint(**more: str) -> str:
        return str(inventory.read(GROUPS, {**HOSTS, "one": more}, "one")["endpoint"])

    assert (
        endpoint(hwaccel_api_endpoint="api.example.com:443", hwaccel_load_balancer_address="10.0.0.1")
        == "api.example.com:443"
    )
    assert endpoint(hwaccel_load_balancer_address="10.0.0.1") == "10.0.0.1:6443"
    assert endpoint() == "10.0.0.11:6443"
    groups = {**GROUPS, "control_plane": ["cp1", "w1"]}
    assert inventory.read(groups, {**HOSTS, "one": {}}, "one")["endpoint"] == ""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("10.0.0.1", "10.0.0.1:6443"),
        ("https://api.example.com:443/", "api.example.com:443"),
        ("fd00::1", "[fd00::1]:6443"),
        ("[fd00::1]:443", "[fd00::1]:443"),
        ("", ""),
    ],
)
def test_an_endpoint_gets_a_port(given: str, expected: str) -> None:
    assert inventory.with_port(given) == expected


@pytest.mark.parametrize("only", ["", [], "one", ["one", "two"]])
def test_only_clusters_with_an_installer_are_installed(only: t.Any) -> None:
    assert inventory.installers(GROUPS, HOSTS, only) == {"clusters": ["one"], "machines": ["cp1", "w1", "e1"]}


def test_a_restricted_run_installs_no_other_cluster() -> None:
    assert inventory.installers(GROUPS, HOSTS, ["two"]) == {"clusters": [], "machines": []}


def test_without_a_server_in_the_inventory_no_variable_is_read() -> None:
    class Unread(dict[str, t.Any]):
        def __getitem__(self, name: str) -> t.Any:
            raise AssertionError(name)

    groups = {"gpu_clusters": ["one", "two"], "workers": ["w1"]}
    assert inventory.installers(groups, Unread(HOSTS)) == {"clusters": [], "machines": []}


def test_the_only_cluster_needs_no_name() -> None:
    groups = {"gpu_clusters": ["one"], "control_plane": ["cp1"]}
    hosts = {"one": {"hwaccel_installer": "kubeadm"}, "cp1": {"ansible_host": "10.0.0.11"}}
    assert inventory.installers(groups, hosts)["machines"] == ["cp1"]
