# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy's configuration: the model of its templates, and the mark by which a running process is recognized."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.services import (
    ANY,
    BOTH,
    Member,
    Service,
)

#: A configuration's description begins with it, and a running process shows the description: so it is known which configuration it has loaded.
MARK = "hwaccel.gpu"


@dataclasses.dataclass(frozen=True)
class Global:
    """Settings that are no service's.

    stats_*: where statistics and metrics are, and who may read them. health_port: on loopback, where a program asks whether HAProxy answers.
    tunnel, hard_stop: durations in HAProxy's notation. virtual: addresses that the machine has only at times, without prefix length.
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


@dataclasses.dataclass(frozen=True)
class _Proxy:
    """A service with what its frontend and its backend say in HAProxy's words. bind: address and port. check_path, expect: of a check by HTTP."""

    service: Service
    bind: str
    both_families: bool
    transparent: bool
    servers: tuple[Member, ...]
    check_path: str
    expect: str


def render(services: c.Iterable[Service], settings: Global, others: str) -> str:
    """All sections but those with secrets, in order of their names: two texts are equal where they mean the same. others: texts of the other files."""
    proxies = [_proxy(service, settings.virtual) for service in sorted(services, key=lambda service: service.name)]
    unmarked = templating.render("load_balancer", "haproxy.cfg", digest="", settings=settings, proxies=proxies)
    # Neither the header nor the first blank line counts: they never did, and another digest would have HAProxy reloaded.
    hashed = unmarked.partition("\n")[2].replace("\n\n", "\n", 1) + others
    digest = hashlib.sha256(hashed.encode()).hexdigest()[:16]
    return templating.render("load_balancer", "haproxy.cfg", digest=digest, settings=settings, proxies=proxies)


def mark(texts: c.Iterable[str]) -> str:
    """The mark within configuration texts, "" where there is none."""
    for line in (line.strip() for text in texts for line in text.splitlines()):
        if line.startswith(f"description {MARK} "):
            return line.removeprefix("description ")
    return ""


def users(name: str, password: str) -> str:
    """The section with secrets, in a file of its own: the others can be shown."""
    quoted = _word(password).replace("$", "\\$")
    return templating.render("load_balancer", "haproxy-users.cfg", user=name, password=quoted)


def _word(text: str) -> str:
    """One word of a line, whatever it holds but line ends (HAProxy 3.0, configuration manual 2.2: a dollar sign means something between quotes alone)."""
    return "".join(f"\\{sign}" if sign in " \\\"'#" else sign for sign in text)


def _proxy(service: Service, virtual: c.Container[str]) -> _Proxy:
    address = "*" if service.address in ANY else templating.bracketed(service.address)
    return _Proxy(
        service,
        f"{address}:{service.port}",
        service.address == BOTH,
        service.address in virtual,
        tuple(sorted(service.members, key=lambda member: member.name)),
        _word(service.check.path),
        _expected(service.check.status),
    )


def _expected(status: str) -> str:
    return f"status {status}" if status.isdecimal() else f"rstatus {_word(f'^({status})$')}"
