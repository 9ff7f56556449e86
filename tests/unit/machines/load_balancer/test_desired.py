# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Desired services from the variables of the role; all problems are reported at once."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.desired import DesiredServices, desired
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.services import Check, Member

CLUSTER = {"name": "ocp", "profile": "openshift", "machine_network": "10.0.0.0/24"}
MACHINES = (
    {"name": "bootstrap", "cluster": "ocp", "role": "bootstrap", "address": "10.0.0.10"},
    {"name": "master-0", "cluster": "ocp", "role": "master", "address": "10.0.0.11"},
    {"name": "master-1", "cluster": "ocp", "role": "master", "address": "10.0.0.12"},
    {"name": "worker-0", "cluster": "ocp", "role": "worker", "address": "10.0.0.21"},
)
MEMBERS = [{"name": "m", "address": "10.0.0.31"}]


def given(
    clusters: t.Any = (CLUSTER,),
    machines: t.Any = MACHINES,
    services: t.Any = (),
    present: str = "",
    clients: str = "machines",
) -> DesiredServices:
    settings = {"clusters": list(clusters), "machines": list(machines), "services": list(services)}
    return desired({**settings, "machine_config_clients": clients}, present)


def clients(found: DesiredServices) -> list[str]:
    return [source for one in found.services if one.name == "ocp-machine-config" for source in one.sources]


def members(found: DesiredServices, service: str) -> list[str]:
    return [member.name for one in found.services if one.name == service for member in one.members]


def test_openshift_has_four_services_with_health_checks() -> None:
    found = given()
    assert found.faults == ()
    services = {
        service.name: (service.port, service.check.type, service.check.path, service.check.port, service.sources)
        for service in found.services
    }
    assert services == {
        "ocp-api": (6443, "https", "/readyz", 0, ()),
        "ocp-machine-config": (
            22623,
            "https",
            "/healthz",
            0,
            ("10.0.0.10/32", "10.0.0.11/32", "10.0.0.12/32", "10.0.0.21/32"),
        ),
        "ocp-ingress-https": (443, "http", "/healthz/ready", 1936, ()),
        "ocp-ingress-http": (80, "http", "/healthz/ready", 1936, ()),
    }
    assert members(found, "ocp-api") == ["bootstrap", "master-0", "master-1"]
    assert members(found, "ocp-ingress-https") == ["worker-0"]


@pytest.mark.parametrize(
    ("complete", "member", "why"),
    [
        (True, False, "is not a member, as bootstrap is complete"),
        (False, True, "is a member, as bootstrap is not complete"),
        (None, True, "health checks decide"),
    ],
)
def test_bootstrap_is_a_member_until_it_is_complete(complete: bool | None, member: bool, why: str) -> None:
    own = {"name": "metrics", "cluster": "ocp", "port": 9000, "roles": ["master", "bootstrap"]}
    found = given([{**CLUSTER, "bootstrap_complete": complete}], services=[own])
    for service in ("ocp-api", "ocp-machine-config", "ocp-metrics"):
        assert ("bootstrap" in members(found, service)) == member
    assert why in found.messages[0]


def test_machine_configs_are_for_machines_of_their_cluster_in_any_order() -> None:
    """Whatever the order of the inventory, HAProxy is reloaded only if the machines are others."""
    other = {"name": "w9", "cluster": "two", "role": "worker", "address": "10.0.0.99"}
    found = given([{**CLUSTER, "bootstrap_complete": True}, {"name": "two"}], [*MACHINES[::-1], other])
    assert clients(found) == ["10.0.0.11/32", "10.0.0.12/32", "10.0.0.21/32"]
    assert found.faults == ()
    assert clients(given([{**CLUSTER, "machine_network": ""}], MACHINES[1:])) == clients(found)


def test_machine_configs_are_for_the_machine_network_on_wish() -> None:
    assert clients(given(clients="machine_network")) == ["10.0.0.0/24"]
    unknown = given([{**CLUSTER, "machine_network": ""}], clients="machine_network")
    assert "its machine network is unknown" in str(unknown.faults[0])
    changed = given(services=[{"name": "machine-config", "cluster": "ocp", "sources": ["10.0.0.0/28"]}])
    assert clients(changed) == ["10.0.0.0/28"]


@pytest.mark.parametrize(
    ("address", "rest"), [("10.0.0.22", ["fd00::/64"]), ("fd00::22", ["10.0.0.0/24", "fd00::/64"])]
)
def test_the_network_of_a_family_without_known_addresses_stays_open_and_is_told(address: str, rest: list[str]) -> None:
    cluster = {**CLUSTER, "machine_network": ["10.0.0.0/24", "fd00::/64"], "bootstrap_complete": False}
    worker = {"name": "worker-1", "cluster": "ocp", "role": "worker", "address": address}
    found = given([cluster], [*MACHINES, worker])
    assert [one for one in clients(found) if not one.endswith(("/32", "/128"))] == rest
    assert f"cluster ocp: port 22623 answers all of {', '.join(rest)}, as not all machines" in found.messages[1]
    assert len(given(machines=MACHINES).messages) == 1


@pytest.mark.parametrize(("complete", "member"), [(None, False), (False, True)])
def test_a_removed_bootstrap_machine_stays_removed_while_the_cluster_does_not_answer(
    complete: bool | None, member: bool
) -> None:
    present = "backend ocp-api\n    server master-0 10.0.0.11:6443 check\n"
    found = given([{**CLUSTER, "bootstrap_complete": complete}], present=present)
    assert ("bootstrap" in members(found, "ocp-api")) == member
    assert "bootstrap" in members(given(present=present.replace("master-0", "bootstrap")), "ocp-api")


def test_services_of_other_clusters_do_not_count_for_one_that_does_not_answer() -> None:
    """Names of clusters can have the same prefix, and machines of two clusters can have the same name."""
    beginning = "backend ocp-b-api\n    server master-0 10.0.1.11:6443 check\n"
    assert "bootstrap" in members(given(present=beginning), "ocp-api")
    other = "backend ocp-api\n    server master-0 10.0.0.11:6443 check\nbackend other-api\n    server bootstrap 10.0.1.10:6443 check\n"
    assert "bootstrap" not in members(given(present=other), "ocp-api")


def test_masters_serve_ingress_if_there_are_no_workers() -> None:
    assert members(given(machines=MACHINES[:3]), "ocp-ingress-http") == ["master-0", "master-1"]


@pytest.mark.parametrize(
    ("profile", "ports"),
    [
        ("kubeadm", [6443]),
        ("k3s", [6443]),
        ("rke2", [6443, 9345, 443, 80]),
        ("rancher", [6443, 9345, 443, 80]),
        ("kubernetes", []),
    ],
)
def test_other_distributions_have_their_own_services(profile: str, ports: list[int]) -> None:
    found = given([{"name": "ocp", "profile": profile}])
    assert found.faults == ()
    assert [service.port for service in found.services] == ports


@pytest.mark.parametrize(("profile", "status"), [("kubeadm", "200"), ("k3s", "200|401"), ("rke2", "200|401")])
def test_an_api_server_is_asked_each_second_whether_it_is_ready(profile: str, status: str) -> None:
    service = given([{"name": "ocp", "profile": profile}]).services[0]
    assert (service.balance, service.check) == ("leastconn", Check("https", "/readyz", status=status, interval="1s"))


def test_a_service_of_a_profile_can_be_changed_and_omitted() -> None:
    changes = [
        {"name": "api", "cluster": "ocp", "check": {"type": "tcp"}},
        {"name": "ingress-http", "cluster": "ocp", "state": "absent"},
    ]
    services = {service.name: service for service in given(services=changes).services}
    assert services["ocp-api"].check == Check("tcp")
    assert "ocp-ingress-http" not in services


def test_members_can_have_their_own_ports() -> None:
    service = {
        "name": "web",
        "port": 80,
        "member_port": 30080,
        "members": [*MEMBERS, {"name": "n", "address": "fd00::1", "port": 8080}],
    }
    assert given([], [], [service]).services[0].members == (
        Member("m", "10.0.0.31", 30080),
        Member("n", "fd00::1", 8080),
    )


def test_two_clusters_on_one_load_balancer_need_different_addresses() -> None:
    other = [
        {**machine, "cluster": "two", "address": machine["address"].replace("10.0.0", "10.0.1")} for machine in MACHINES
    ]
    second = {**CLUSTER, "name": "two"}
    messages = [str(fault) for fault in given([CLUSTER, second], [*MACHINES, *other]).faults]
    assert len(messages) == 4
    assert (
        "service ocp-api of cluster ocp): its port 6443 is also that of service two-api of cluster two" in messages[0]
    )
    assert (
        given([{**CLUSTER, "address": "10.0.0.5"}, {**second, "address": "10.0.0.6"}], [*MACHINES, *other]).faults == ()
    )


@pytest.mark.parametrize(
    ("services", "message"),
    [
        ([{"name": "a", "port": 80}], "service a): it has no members: neither members nor roles are set"),
        ([{"name": "a", "port": 80, "cluster": "ocp", "roles": ["storage"]}], "no machine has the role storage"),
        ([{"name": "a", "port": 0, "members": MEMBERS}], "service a, port): '0' is not a port"),
        ([{"name": "a", "port": "http", "members": MEMBERS}], "'http' is not a port"),
        ([{"name": "a b", "port": 80, "members": MEMBERS}], "'a b' is not a name"),
        (
            [{"name": "a", "port": 80, "address": "lb", "members": MEMBERS}],
            "service a, address): 'lb' is not an IP address",
        ),
        (
            [{"name": "a", "port": 80, "members": [{"name": "m", "address": "m.example.com"}]}],
            "member m, address): 'm.example.com' is not an IP address",
        ),
        ([{"name": "a", "port": 80, "members": MEMBERS * 2}], "two members have the name m"),
        ([{"name": "a", "port": 80, "members": MEMBERS, "mode": "udp"}], "'udp' is not one of tcp, http"),
        ([{"name": "a", "port": 80, "members": MEMBERS, "weight": 3}], "unknown: weight"),
        ([{"name": "a", "port": 80, "members": MEMBERS, "sources": ["10.0.0.1/24"]}], "has host bits set"),
        (
            [{"name": "a", "port": 80, "members": MEMBERS, "check": {"type": "http", "path": "ready"}}],
            "'ready' is not a URL path",
        ),
        ([{"name": "a", "port": 80, "members": MEMBERS, "check": {"interval": "often"}}], "'often' is not a duration"),
        ([{"name": "a", "port": 80, "members": MEMBERS, "check": {"status": "2(0"}}], "not a regular expression"),
        (
            [{"name": "a", "port": 80, "members": MEMBERS}, {"name": "a", "port": 81, "members": MEMBERS}],
            "another service has this name",
        ),
        (
            [{"name": "a", "port": 80, "members": MEMBERS, "check": "http"}],
            "service a, check): 'http' is not a dictionary",
        ),
        (
            [{"name": "a", "port": 80, "members": MEMBERS, "sources": 10}],
            "service a, sources): 10 is not a list of texts",
        ),
        (
            [{"name": "a", "port": 80, "members": MEMBERS, "send_proxy": "jein"}],
            "service a, send_proxy): 'jein' is neither true nor false",
        ),
        (
            [{"name": "a", "port": 80, "cluster": "ocp", "roles": ["master"], "members": ["10.0.0.32"]}],
            "is not a list of dictionaries",
        ),
        ([{"name": "a", "port": 80, "cluster": "none", "members": MEMBERS}], "its cluster none does not exist"),
    ],
)
def test_a_problem_of_a_service_is_reported(services: list[dict[str, t.Any]], message: str) -> None:
    faults = given([{"name": "ocp", "profile": "k3s"}], services=services).faults
    assert len(faults) == 1
    assert message in str(faults[0])


@pytest.mark.parametrize(
    ("clusters", "machines", "message"),
    [
        ([{**CLUSTER, "profile": "okd"}], MACHINES, "its profile 'okd' is unknown"),
        ([{**CLUSTER, "machine_network": "10.0.0.0/33"}], MACHINES, "not a network"),
        (
            [CLUSTER],
            [*MACHINES, {"name": "lost", "cluster": "ocq", "role": "worker", "address": "10.0.0.22"}],
            "machine lost): its cluster ocq does not exist",
        ),
        (
            [CLUSTER],
            [*MACHINES, {"name": "w", "cluster": "ocp", "role": "worker", "address": "10.0.0.21"}],
            "2 machines have the address 10.0.0.21",
        ),
    ],
)
def test_a_problem_of_a_cluster_is_reported(
    clusters: list[dict[str, t.Any]], machines: list[dict[str, t.Any]], message: str
) -> None:
    assert any(message in str(fault) for fault in given(clusters, machines).faults)


def test_many_clusters_and_machines_have_all_their_members() -> None:
    """Members are correct also for many clusters and machines."""
    clusters = [{**CLUSTER, "name": f"c{number}", "address": f"10.9.0.{number + 1}"} for number in range(10)]
    machines = [
        {
            "name": f"n{number}",
            "cluster": f"c{number % 10}",
            "role": ("master", "worker")[number // 10 % 2],
            "address": f"10.0.{number // 200}.{number % 200 + 1}",
        }
        for number in range(2000)
    ]
    found = given(clusters, machines)
    assert found.faults == ()
    assert sum(len(service.members) for service in found.services) == 10 * 4 * 100
