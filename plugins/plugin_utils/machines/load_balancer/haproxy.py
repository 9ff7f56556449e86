# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy's configuration as text."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import ipaddress
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.services import (
    ANY,
    BOTH,
    Check,
    Member,
    Service,
)

#: The running process tells by it which configuration it has read.
MARK = "hwaccel.gpu"
#: Section names of the role itself.
STATISTICS, HEALTH, USERS = "hwaccel-statistics", "hwaccel-health", "hwaccel-users"
_HEADER = "# Written by the role load_balancer of hwaccel.gpu: changes are lost with its next run.\n"


@dataclasses.dataclass(frozen=True)
class Global:
    """virtual: addresses that it has only at times.

    stats_*: where statistics and metrics are, and who may read them. health_port: on loopback, where a program asks whether HAProxy answers.
    """

    maxconn: int
    socket: str
    stats_address: str
    stats_port: int
    health_port: int
    stats_user: str
    tunnel: str
    hard_stop: str
    virtual: tuple[str, ...] = ()


def render(services: c.Sequence[Service], given: Global, others: str) -> str:
    """All sections but those with secrets, in order of their names: two texts are equal where they mean the same. others: texts of the other files."""
    sections = [_defaults(given), _statistics(given), _health(given)]
    for service in sorted(services, key=lambda service: service.name):
        sections += [_frontend(service, given.virtual), _backend(service)]
    text = "\n".join(sections)
    mark = hashlib.sha256((_global(given, "") + text + others).encode()).hexdigest()[:16]
    return "\n".join([_HEADER + _global(given, mark), text])


def mark(texts: c.Iterable[str]) -> str:
    """The mark within configuration texts, "" where there is none."""
    for line in (line.strip() for text in texts for line in text.splitlines()):
        if line.startswith(f"description {MARK} "):
            return line.removeprefix("description ")
    return ""


def users(name: str, password: str) -> str:
    """The section with secrets, in a file of its own: the others can be shown."""
    quoted = _word(password).replace("$", "\\$")
    return f"{_HEADER}userlist {USERS}\n    user {name} insecure-password {quoted}\n" if name else ""


def _word(text: str) -> str:
    """One word of a line, whatever it holds but line ends (HAProxy 3.0, configuration manual 2.2: a dollar sign means something between quotes alone)."""
    return "".join(f"\\{sign}" if sign in " \\\"'#" else sign for sign in text)


def _section(header: str, lines: c.Iterable[str]) -> str:
    return "\n".join([header, *(f"    {line}" for line in lines if line), ""])


def _global(given: Global, mark: str) -> str:
    lines = (
        f"description {MARK} {mark}",
        "chroot /var/lib/haproxy",
        "user haproxy",
        "group haproxy",
        f"maxconn {given.maxconn}",
        f"stats socket {given.socket} mode 600 level admin expose-fd listeners",
        # A worker that has been replaced stays until its last connection ends; watches of the API never end by themselves.
        f"hard-stop-after {given.hard_stop}",
    )
    return _section("global", lines)


def _defaults(given: Global) -> str:
    lines = (
        "mode tcp",
        "option redispatch",
        "retries 3",
        "timeout connect 5s",
        "timeout client 1m",
        "timeout server 1m",
        f"timeout tunnel {given.tunnel}",
        "timeout check 5s",
        "timeout http-request 10s",
        "timeout queue 1m",
    )
    return _section("defaults", lines)


def _statistics(given: Global) -> str:
    bind = f"{_bracketed(given.stats_address)}:{given.stats_port}"
    allowed = f"http-request auth realm statistics unless {{ http_auth({USERS}) }}" if given.stats_user else ""
    lines = (
        f"bind {bind}",
        "mode http",
        allowed,
        "http-request use-service prometheus-exporter if { path /metrics }",
        "stats enable",
        "stats uri /",
    )
    return _section(f"frontend {STATISTICS}", lines)


def _health(given: Global) -> str:
    return _section(f"frontend {HEALTH}", (f"bind 127.0.0.1:{given.health_port}", "mode http", "monitor-uri /"))


def _frontend(service: Service, virtual: c.Container[str]) -> str:
    accept = (" v4v6" if service.address == BOTH else "") + (" accept-proxy" if service.accept_proxy else "")
    # Bound although another load balancer has the address now: whoever takes it over serves at once.
    accept += " transparent" if service.address in virtual else ""
    address = "*" if service.address in ANY else _bracketed(service.address)
    # With accept-proxy, the address of the client is known only after the header is read.
    rule = "tcp-request session" if service.accept_proxy else "tcp-request connection"
    sources = f"{rule} reject unless {{ src {' '.join(service.sources)} }}" if service.sources else ""
    mode = f"mode {service.mode}" if service.mode != "tcp" else ""
    return _section(
        f"frontend {service.name}",
        (f"bind {address}:{service.port}{accept}", mode, sources, f"default_backend {service.name}"),
    )


def _backend(service: Service) -> str:
    check = service.check
    asked = (
        (f"option httpchk GET {_word(check.path)}", f"http-check expect {_expected(check.status)}")
        if check.type != "tcp"
        else ()
    )
    consistent = "hash-type consistent" if service.balance == "source" else ""
    mode = f"mode {service.mode}" if service.mode != "tcp" else ""
    servers = [_server(member, service) for member in sorted(service.members, key=lambda member: member.name)]
    return _section(f"backend {service.name}", (mode, f"balance {service.balance}", consistent, *asked, *servers))


def _expected(status: str) -> str:
    return f"status {status}" if status.isdecimal() else f"rstatus {_word(f'^({status})$')}"


def _server(member: Member, service: Service) -> str:
    check: Check = service.check
    words: list[t.Any] = [
        "server",
        member.name,
        f"{_bracketed(member.address)}:{member.port}",
        "check",
        "inter",
        check.interval,
        "fall",
        check.fall,
    ]
    words += ["rise", check.rise]
    if check.port:
        words += ["port", check.port]
    if check.type == "https":
        # Certificates change while a cluster is made, and the answer is a status, no secret.
        words += ["check-ssl", "verify", "none"]
    if service.send_proxy:
        words.append("send-proxy-v2")
        # A health port of its own knows nothing of it.
        words += [] if check.port else ["check-send-proxy"]
    return " ".join(str(word) for word in words)


def _bracketed(address: str) -> str:
    return f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
