# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is asked what while an installation is waited for."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.filter.machine_inventory import machine_inventory
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import witnesses
from ansible_collections.hwaccel.gpu.tests.unit.roles.stack import TOP, load

GROUPS = {
    "gpu_clusters": ["ocp", "edge"],
    "boot_servers": ["boot-0", "boot-9"],
    "load_balancers": ["lb-0"],
    "hypervisors": ["hv"],
    "bootstrap": ["both"],
    "control_plane": ["m0"],
    "workers": ["both", "w1", "k0"],
    "edge_nodes": ["e0"],
}
HOSTS: dict[str, dict[str, t.Any]] = {
    "ocp": {"hwaccel_domain": "ocp.example.com", "hwaccel_load_balancer_address": "10.0.0.5"},
    "edge": {"hwaccel_domain": "edge.example.com"},
    "boot-0": {"ansible_host": "10.0.0.2", "machine_boot_dhcp_log": "/var/log/dhcp.log"},
    "boot-9": {"ansible_host": "10.0.0.9", "hwaccel_cluster": "edge"},
    "lb-0": {},
    "hv": {},
    "both": {
        "hwaccel_cluster": "ocp",
        "hwaccel_address": "10.0.0.10",
        "hwaccel_mac": "52-54-00-77-00-AA",
        "hwaccel_hypervisor": "hv",
    },
    "m0": {
        "hwaccel_cluster": "ocp",
        "ansible_host": "10.0.0.11",
        "hwaccel_node_name": "master-0",
        "hwaccel_hypervisor": "elsewhere",
    },
    "w1": {"hwaccel_cluster": "ocp", "hwaccel_address": "10.0.0.21", "hwaccel_retired": True},
    "k0": {"hwaccel_cluster": "edge", "hwaccel_address": "10.0.0.31"},
    "e0": {"hwaccel_cluster": "ocp", "ansible_host": "e0.example.com"},
}


def asked(cluster: str = "ocp", **changed: dict[str, t.Any]) -> dict[str, t.Any]:
    hosts = {name: {**variables, **changed.get(name.replace("-", "_"), {})} for name, variables in HOSTS.items()}
    return machine_inventory(GROUPS, "evidence", hosts, cluster)


def test_machines_of_the_cluster_have_the_names_of_nodes_boot_servers_and_load_balancers() -> None:
    rows = [
        (one["host"], one["name"], one["label"], one["role"], one["address"], one["mac"]) for one in asked()["machines"]
    ]
    both = ("10.0.0.10", "52:54:00:77:00:aa")
    assert rows == [
        ("both", "both.ocp.example.com", "both", "bootstrap", *both),
        ("m0", "master-0.ocp.example.com", "master-0", "master", "10.0.0.11", ""),
        ("both", "both.ocp.example.com", "both", "worker", *both),
        ("e0", "e0.ocp.example.com", "e0", "worker", "e0.example.com", ""),
    ]


def test_nodes_are_those_whose_requests_are_approved() -> None:
    hosts = {name: dict(variables) for name, variables in HOSTS.items()}
    expected = {one["name"] for one in machine_inventory(GROUPS, "approvals", hosts, "ocp")["expected_nodes"]}
    assert {one["name"] for one in asked()["machines"] if one["role"] != "bootstrap"} == expected


def test_each_kind_of_host_is_asked_for_what_it_has() -> None:
    found = asked()["witnesses"]
    assert [(one["host"], one["kind"]) for one in found] == [
        ("boot-0", "boot server"),
        ("lb-0", "load balancer"),
        ("hv", "hypervisor"),
    ]
    assert found[0]["reads"] == {
        "marks": "/run/hwaccel-gpu/machine_boot",
        "dhcp": "/var/log/dhcp.log",
        "web": "/var/log/nginx/access.log",
        "machines": [["52:54:00:77:00:aa", "10.0.0.10"], ["", "10.0.0.11"]],
        "files": [f"/var/lib/hwaccel-gpu/dns_pxe/{name}.json" for name in ("joined", "wishes", "written")],
    }
    assert found[1]["reads"] == {"sockets": ["/run/haproxy/admin.sock", "/var/lib/haproxy/stats"]}
    assert found[2]["reads"] == {"tails": ["/var/log/libvirt/qemu/both-console.log"] * 2}
    assert not found[1]["requests"] and not found[2]["requests"]


@pytest.mark.parametrize(
    ("changed", "names", "ports"),
    [
        ({}, [("api-int", "A", ["10.0.0.5"]), ("any.name.apps", "A", ["10.0.0.5"])], ["10.0.0.5"]),
        (
            {"ocp": {"hwaccel_api_int_address": "10.0.0.6", "hwaccel_ingress_address": ["10.0.0.7", "fd00::7"]}},
            [
                ("api-int", "A", ["10.0.0.6"]),
                ("any.name.apps", "A", ["10.0.0.7"]),
                ("any.name.apps", "AAAA", ["fd00::7"]),
            ],
            ["10.0.0.6"],
        ),
        ({"boot_0": {"dns_pxe_dns": False}}, [], ["10.0.0.5"]),
        ({"boot_0": {"ansible_host": "boot.example.com"}}, [], ["10.0.0.5"]),
        (
            {"lb_0": {"hwaccel_cluster": "edge"}},
            [("api-int", "A", ["10.0.0.5"]), ("any.name.apps", "A", ["10.0.0.5"])],
            [],
        ),
        ({"ocp": {"hwaccel_load_balancer_address": ""}}, [], []),
        ({"ocp": {"hwaccel_load_balancer_address": "lb.example.com"}}, [], []),
    ],
)
def test_what_a_machine_would_request(
    changed: dict[str, dict[str, t.Any]], names: list[t.Any], ports: list[str]
) -> None:
    requests = asked(**changed)["witnesses"][0]["requests"]
    assert requests.get("names", []) == [(f"{name}.ocp.example.com", kind, values) for name, kind, values in names]
    assert [one["address"] for one in requests.get("apis", [])] == ports
    assert all(
        (one["name"], one["port"], one["there"]) == ("api-int.ocp.example.com", 22623, True)
        for one in requests.get("apis", [])
    )
    assert bool(requests) == bool(names or ports)


def test_a_cluster_is_served_by_hosts_of_its_own_and_by_those_of_all() -> None:
    assert [one["host"] for one in asked("edge")["witnesses"]] == ["boot-0", "boot-9", "lb-0"]


def test_places_of_logs_are_those_of_machine_boot() -> None:
    defaults = load(TOP / "roles" / "machine_boot" / "defaults" / "main.yml")
    assert {name: defaults[name] for name, _default in witnesses.LOGS.values()} == dict(witnesses.LOGS.values())
