# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks of one stack and of two, and images that nodes share."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Listener
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import configuration, networks, plan
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_configuration import SETTINGS as CLUSTER
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_configuration import read
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_plan import BARE, SETTINGS

#: As https://docs.k3s.io/networking/basic-network-options has them.
DUAL = {"pod_network": "10.42.0.0/16,2001:cafe:42::/56", "service_network": "10.43.0.0/16,2001:cafe:43::/112"}


def test_networks_of_one_stack_and_of_two_do() -> None:
    assert networks.faults(CLUSTER) == networks.faults({**CLUSTER, **DUAL}) == []
    six = {name: text.partition(",")[2] for name, text in DUAL.items()}
    assert networks.faults({**CLUSTER, **six}) == []
    found = read(**DUAL)
    assert (found["cluster-dns"], "node-ip" in found) == ("10.43.0.10,2001:cafe:43::a", False)


@pytest.mark.parametrize(
    ("pods", "services", "told"),
    [
        ("10.42.0.1/16", "10.43.0.0/16", "the network of pods cannot be read (cluster_k3s_pod_network)"),
        ("10.42.0.0/16,10.44.0.0/16", "10.43.0.0/16", "the network of pods has two parts of the same family"),
        ("10.42.0.0/16", DUAL["service_network"], "Services have a family of addresses that pods have not"),
        (DUAL["pod_network"], "2001:cafe:43::/112,10.43.0.0/16", "begin with another family"),
        ("10.42.0.0/16", "10.42.128.0/17", "10.42.0.0/16 and 10.42.128.0/17 overlap"),
        (
            DUAL["pod_network"],
            "10.43.0.0/16,2001:cafe:43::/64",
            "set one with a prefix length of 108 or more, such as 2001:cafe:43::/112",
        ),
        (
            "10.42.0.0/16,2001:cafe:42::/96",
            DUAL["service_network"],
            "is too small (cluster_k3s_pod_network): each node gets a /64",
        ),
    ],
)
def test_networks_that_cannot_be_are_told(pods: str, services: str, told: str) -> None:
    (fault,) = configuration.faults({**CLUSTER, "pod_network": pods, "service_network": services})
    assert told in str(fault)


def test_nodes_may_get_smaller_networks_of_pods() -> None:
    own = {"server_configuration": {"kube-controller-manager-arg": ["node-cidr-mask-size=28"]}}
    assert networks.faults({**CLUSTER, **own, "pod_network": "10.42.0.0/26"}) == []


def test_a_machine_needs_addresses_and_routes_of_both() -> None:
    facts = {**BARE.facts, "ipv6_forward": "1", "routes6": "default via fe80::1 dev eth0"}
    both = dataclasses.replace(
        BARE, facts=facts, addresses={"10.0.0.11": "eth0", "fe80::2": "eth0", "2001:db8::2": "eth0"}
    )

    def told(host: t.Any, **changed: t.Any) -> list[str]:
        return [one["text"] for one in plan.plan(host, {**SETTINGS, **DUAL, **changed})["faults"]]

    assert told(both) == []
    (fault,) = told(dataclasses.replace(both, addresses={"10.0.0.11": "eth0", "fe80::2": "eth0"}))
    assert "the machine has no address of IPv6" in fault
    (fault,) = told(dataclasses.replace(both, facts={**facts, "routes6": ""}))
    assert "the machine has no default route of IPv6" in fault
    assert told(dataclasses.replace(both, facts={**facts, "routes6": ""}), skipped_checks=["networks"]) == []


SHARED = {"embedded_registry": True, "registries": {"mirrors": {"docker.io": {}}}}


def test_nodes_share_images_of_registries_that_are_mirrored() -> None:
    assert read(**SHARED)["embedded-registry"] is True and configuration.faults({**CLUSTER, **SHARED}) == []
    assert "embedded-registry" not in read() and "embedded-registry" not in read(**SHARED, role="agent")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"registries": {"configs": {}}}, "nodes would share no images (cluster_k3s_embedded_registry)"),
        ({"engine": "docker"}, "Docker cannot share images"),
        ({"server_configuration": {"embedded-registry": True}}, "embedded-registry cannot be set there"),
    ],
)
def test_what_cannot_be_shared_is_told(changed: dict[str, t.Any], told: str) -> None:
    (fault,) = configuration.faults({**CLUSTER, **SHARED, **changed})
    assert told in str(fault)


def test_its_ports_are_needed_on_agents_too() -> None:
    taken = dataclasses.replace(BARE, listeners=(Listener("tcp", "0.0.0.0", 5001, "registry", "registry.service"),))
    faults = plan.plan(taken, {**SETTINGS, **SHARED, "role": "agent"})["faults"]
    assert ["TCP port 5001 is taken by registry" in one["text"] for one in faults] == [True]
    assert plan.plan(taken, {**SETTINGS, "role": "agent"})["faults"] == []
