# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine needs to become a node: each condition, its message, and that it can be tolerated."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import prerequisites, surroundings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.prerequisites import Needs, faults
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, Listener

FACTS = {
    "cgroup": "cgroup2fs",
    "endpoint": "10.0.0.5 k8s.example.org",
    "links": "1: lo: <UP> mtu 65536 link/loopback 00:00:00:00:00:00\n2: eth0@if9: <UP> mtu 1500 link/ether 52:54:00:aa:bb:01 brd ff:ff\n",
    "clock": "yes",
    "free_bytes": str(50 << 30),
    "inotify": "8192",
    "ipv6_forward": "1",
    "memory": "MemTotal:        4028440 kB",
    "routes": "default via 10.0.0.1 dev eth0",
    "swap": "",
}
GOOD = Host(facts=FACTS, addresses={"10.0.0.11": "eth0", "10.244.1.1": "cni0", "fe80::1": "eth0"})
NEEDS = Needs(
    {6443: "kube-apiserver", 10250: "kubelet"},
    {"network of pods": "10.244.0.0/16", "network of Services": "10.96.0.0/12,fd00:96::/112"},
    (1, 37, 0),
    serves=True,
    endpoint="k8s.example.org:6443",
    direct=("10.244.0.0/16", "10.96.0.0/12,fd00:96::/112"),
    containerd=(2, 0, 1),
)


def host(**facts: str) -> Host:
    return dataclasses.replace(GOOD, facts={**FACTS, **facts})


def test_a_machine_that_has_all_of_it_has_no_faults() -> None:
    assert faults(GOOD, NEEDS) == []


@pytest.mark.parametrize(
    ("check", "machine", "told"),
    [
        ("cgroup", host(cgroup="tmpfs"), "the machine has cgroup version 1"),
        ("clock", host(clock="no"), "the clock is not synchronized"),
        ("endpoint", host(endpoint=""), "the endpoint's name k8s.example.org has no address"),
        (
            "proxy",
            host(proxied="/etc/environment\n", unproxied="localhost,10.96.0.0/12,.example.org\n"),
            "a proxy would take traffic of the cluster (/etc/environment): NO_PROXY does not have 10.244.0.0/16, fd00:96::/112",
        ),
        ("disk", host(free_bytes=str(2 << 30)), "2.0 GiB are free"),
        ("memory", host(memory="MemTotal: 1020000 kB"), "the machine has 996 MiB of memory"),
        (
            "networks",
            dataclasses.replace(GOOD, addresses={"10.244.0.5": "eth0"}),
            "the network of pods 10.244.0.0/16 overlaps",
        ),
        (
            "networks",
            dataclasses.replace(GOOD, addresses={"fd00:96::5": "eth0"}),
            "the network of Services fd00:96::/112 overlaps",
        ),
        ("route", host(routes=""), "the machine has no default route"),
        ("swap", host(swap="/dev/sda2 partition 1 0 -2"), "swap is on"),
        (
            "ports",
            dataclasses.replace(GOOD, listeners=(Listener("tcp", "*", 6443, "haproxy", unit="haproxy.service"),)),
            "TCP port 6443 is taken by haproxy (haproxy.service): kube-apiserver needs it",
        ),
    ],
)
def test_what_is_missing_is_told_unless_it_is_tolerated(check: str, machine: Host, told: str) -> None:
    (found,) = faults(machine, NEEDS)
    assert told in str(found)
    assert "Next: " in str(found)
    assert faults(machine, NEEDS, [check]) == []


@pytest.mark.parametrize(
    ("machine", "changed"),
    [
        (host(cgroup="tmpfs"), {"version": (1, 34, 0)}),
        (host(cgroup="tmpfs"), {"without_cgroup_1": False}),
        (host(memory="MemTotal: 1020000 kB"), {"serves": False}),
        (host(swap="/dev/sda2 partition 1 0 -2"), {"swap": True}),
        (dataclasses.replace(GOOD, listeners=(Listener("tcp", "*", 6443, "kube-apiserver"),)), {"member": True}),
        (dataclasses.replace(GOOD, listeners=(Listener("udp", "*", 6443, "x"),)), {}),
        (host(routes="", routes6="default via fe80::1 dev eth0"), {}),
    ],
)
def test_what_does_not_hold_for_a_machine_is_not_told(machine: Host, changed: dict[str, t.Any]) -> None:
    assert faults(machine, dataclasses.replace(NEEDS, **changed)) == []


def test_every_check_can_be_tolerated_and_is_known() -> None:
    assert {"identity", *prerequisites.CHECKS} == set(prerequisites.CHECKS)
    bad = dataclasses.replace(GOOD, facts={"clock": "no", "swap": "x"}, addresses={})
    assert faults(bad, NEEDS, prerequisites.CHECKS) == []


def test_what_tells_machines_apart_is_read_unless_that_is_tolerated() -> None:
    machine = host(machine_id="abc", product_uuid="def", host_name="cp1")
    assert prerequisites.identity(machine, "node-1") == {
        "node name": "node-1",
        "host name": "cp1",
        "machine-id": "abc",
        "product UUID": "def",
        "MAC address": "52:54:00:aa:bb:01",
    }
    assert prerequisites.identity(machine, "node-1", ["identity"]) == {"node name": "node-1"}


@pytest.mark.parametrize(
    "unproxied",
    [
        "*",
        "k8s.example.org,10.244.0.0/16,10.96.0.0/12,fd00:96::/112",
        "example.org,10.0.0.0/8\nfd00::/8,localhost",
    ],
)
def test_a_proxy_that_leaves_the_cluster_alone_is_no_problem(unproxied: str) -> None:
    assert faults(host(proxied="/etc/environment", unproxied=unproxied), NEEDS) == []


def test_an_address_as_endpoint_is_not_looked_up() -> None:
    assert "endpoint" not in surroundings.facts("10.0.0.5:6443") and "endpoint" not in surroundings.facts(
        "[fd00::5]:6443"
    )
    assert surroundings.facts("k8s.example.org:6443")["endpoint"] == ("output", "getent", "hosts", "k8s.example.org")
    assert faults(host(endpoint=""), dataclasses.replace(NEEDS, endpoint="[fd00::5]:6443")) == []


@pytest.mark.parametrize(
    ("version", "containerd", "told"),
    [
        ((1, 36, 4), (1, 7, 20), False),
        ((1, 37, 0), (1, 7, 20), True),
        ((1, 37, 0), (2, 1, 0), False),
        ((1, 37, 0), (), False),
    ],
)
def test_a_runtime_that_a_kubelet_cannot_ask_is_a_problem(version: t.Any, containerd: t.Any, told: bool) -> None:
    found = faults(GOOD, dataclasses.replace(NEEDS, version=version, containerd=containerd))
    assert ["does not tell a kubelet its cgroup driver" in one.what for one in found] == [True] * told
    assert faults(GOOD, dataclasses.replace(NEEDS, version=version, containerd=containerd), ["runtime"]) == []


@pytest.mark.parametrize(
    ("routes", "mac"), [("default via 10.0.0.1 dev eth0", "52:54:00:aa:bb:01"), ("default dev lo", ""), ("", "")]
)
def test_cloned_machines_are_known_by_the_address_of_their_interface(routes: str, mac: str) -> None:
    assert prerequisites.identity(host(routes=routes), "a")["MAC address"] == mac
    assert prerequisites.identity(host(routes=routes), "a", ["identity"]) == {"node name": "a"}
