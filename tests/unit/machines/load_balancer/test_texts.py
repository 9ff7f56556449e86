# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of HAProxy and keepalived, errors that HAProxy reports, and connection limits of a machine."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import (
    haproxy,
    keepalived,
    limits,
    verdict,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.services import Check, Member, Service

GIVEN = haproxy.Global(9000, "/run/haproxy/admin.sock", "127.0.0.1", 8404, 8405, "", "4h", "4h")
API = Service(
    "ocp-api",
    6443,
    "ocp",
    members=(Member("m1", "10.0.0.12", 6443), Member("m0", "10.0.0.11", 6443)),
    check=Check("https", "/readyz"),
    sources=("10.0.0.0/24", "10.1.0.0/24"),
)
FRONTEND = """frontend ocp-api
    bind *:6443
    tcp-request connection reject unless { src 10.0.0.0/24 10.1.0.0/24 }
    default_backend ocp-api
"""
BACKEND = """backend ocp-api
    balance roundrobin
    option httpchk GET /readyz
    http-check expect status 200
    server m0 10.0.0.11:6443 check inter 5s fall 2 rise 2 check-ssl verify none
    server m1 10.0.0.12:6443 check inter 5s fall 2 rise 2 check-ssl verify none
"""


def text(service: Service = API) -> str:
    return haproxy.render([service], GIVEN, "")


def test_a_service_is_a_frontend_and_a_backend() -> None:
    assert FRONTEND in text()
    assert BACKEND in text()


def test_the_order_of_services_and_members_does_not_change_the_text() -> None:
    other = dataclasses.replace(API, name="b", port=1)
    turned = dataclasses.replace(API, members=API.members[::-1])
    assert haproxy.render([API, other], GIVEN, "") == haproxy.render([other, turned], GIVEN, "")


def test_each_change_has_another_mark() -> None:
    marks = {
        haproxy.mark([haproxy.render([API], given, others)])
        for given, others in ((GIVEN, ""), (dataclasses.replace(GIVEN, maxconn=1), ""), (GIVEN, "listen mine"))
    }
    assert len(marks) == 3
    assert all(mark.startswith(haproxy.MARK) for mark in marks)


def test_the_mark_of_a_configuration_stays_the_same_from_release_to_release() -> None:
    """Another mark reloads HAProxy on every load balancer, so it may only change if the behavior changes."""
    assert haproxy.mark([text()]) == "hwaccel.gpu 2a886f176c240075"


def test_many_sources_are_in_lines_that_haproxy_can_read() -> None:
    """A line has 64 words at most; the others are ignored with an error. The last line refuses whom no line has accepted."""
    sources = tuple(f"10.0.{number}.1/32" for number in range(120))
    lines = [line.split() for line in text(dataclasses.replace(API, sources=sources)).splitlines() if " src " in line]
    assert [line[:4] for line in lines] == [[*["tcp-request", "connection", "accept", "if"]]] * 2 + [
        [*["tcp-request", "connection", "reject", "unless"]]
    ]
    assert max(map(len, lines)) <= 64
    assert [word for line in lines for word in line[6:-1]] == list(sources)


def test_clients_behind_another_proxy_are_identified_by_its_header() -> None:
    found = text(
        dataclasses.replace(
            API,
            address="10.0.0.5",
            accept_proxy=True,
            send_proxy=True,
            check=Check("http", port=1936, status="200|401"),
        )
    )
    assert "bind 10.0.0.5:6443 accept-proxy\n    tcp-request session reject unless" in found
    assert "http-check expect rstatus ^(200|401)$" in found
    assert "server m0 10.0.0.11:6443 check inter 5s fall 2 rise 2 port 1936 send-proxy-v2\n" in found


def test_a_service_can_listen_on_both_address_families() -> None:
    assert "    bind [::]:6443 v4v6\n" in text(dataclasses.replace(API, address="::"))
    assert dataclasses.replace(API, address="::").listens_with("10.0.0.5", 6443)


def test_a_virtual_address_is_bound_while_another_load_balancer_has_it() -> None:
    virtual = dataclasses.replace(GIVEN, virtual=("10.0.0.5",))
    assert "    bind 10.0.0.5:6443 transparent\n" in haproxy.render(
        [dataclasses.replace(API, address="10.0.0.5")], virtual, ""
    )
    assert "transparent" not in haproxy.render([API], virtual, "")


def test_statistics_on_other_addresses_require_a_password() -> None:
    found = haproxy.render([], dataclasses.replace(GIVEN, stats_address="fd00::5", stats_user="ops"), "")
    assert (
        "bind [fd00::5]:8404\n    mode http\n    http-request auth realm statistics unless { http_auth(hwaccel-users) }"
        in found
    )
    assert haproxy.users("ops", 'a b"#$').endswith('user ops insecure-password a\\ b\\"\\#\\$\n')


def test_an_error_of_haproxy_is_reported_with_its_line() -> None:
    output = """[NOTICE]   (549) : haproxy version is 2.6.12-1+deb12u3
[ALERT]    (549) : config : parsing [/dev/stdin:2] : unknown keyword 'foo' in 'global' section
[ALERT]    (549) : config : Error(s) found in configuration file : /dev/stdin
[ALERT]    (549) : config : Fatal errors found in configuration.
"""
    found = verdict.faults("global\n  foo bar\n", 1, output)
    assert [(fault.where, fault.why) for fault in found] == [
        ("line: foo bar", "unknown keyword 'foo' in 'global' section")
    ]
    assert verdict.faults("global\n", 0, output) == []
    assert "Killed" in str(verdict.faults("global\n", 137, "Killed")[0])


@pytest.mark.parametrize(
    ("files", "memory_gib", "maximum"), [(1024, 16, 399), (20000, 16, 9500), (524288, 64, 100000), (524288, 2, 15000)]
)
def test_connections_are_limited_by_open_files_and_memory(files: int, memory_gib: int, maximum: int) -> None:
    found = limits.connections(limits.Limits(files, memory_gib * 1024 * 1024), 6, 20)
    assert found == maximum
    assert limits.shortage(found, limits.Limits(files, memory_gib * 1024 * 1024), 6, 20) == []


def test_too_many_connections_are_reported_with_the_maximum() -> None:
    (fault,) = limits.shortage(20000, limits.Limits(20000, 16 * 1024 * 1024), 6, 20)
    assert "20000 connections need 40226 open files, but the limit of the service is 20000" in str(fault)
    assert "set it to 9500" in fault.next_step
    assert limits.shortage(0, limits.Limits(256, 16 * 1024 * 1024), 6, 20)


def test_load_balancers_are_peers_and_the_first_has_priority() -> None:
    virtual = keepalived.Virtual(("10.0.0.5/24", "fd00::5/64"), ("10.0.0.3", "10.0.0.4"), 1, "eth0", 51, True)
    found = keepalived.render(virtual, "/check")
    assert "    priority 190\n" in found
    assert "    unicast_src_ip 10.0.0.4\n    unicast_peer {\n        10.0.0.3\n    }\n" in found
    assert (
        "    virtual_ipaddress {\n        10.0.0.5/24\n    }\n    virtual_ipaddress_excluded {\n        fd00::5/64\n    }\n"
        in found
    )
    assert "unicast" not in keepalived.render(dataclasses.replace(virtual, unicast=False), "/check")
