# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy's configuration: the model of its templates, and the mark that identifies the configuration of a running process."""

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

#: Start of a configuration's description. A running process reports the description, which shows the configuration that it has loaded.
MARK = "hwaccel.gpu"
#: Sources in a line, of which HAProxy reads 64 words (MAX_LINE_ARGS in its include/haproxy/defaults.h).
_SOURCES = 50


@dataclasses.dataclass(frozen=True)
class Global:
    """Settings that do not belong to a service.

    stats_*: address, port, user and password of statistics and metrics. health_port: on loopback, for health checks of HAProxy.
    tunnel, hard_stop: durations in HAProxy's notation. virtual: virtual addresses, without prefix length.
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
    """A service with values of its frontend and backend in HAProxy's syntax. bind: address and port. check_path, expect: of an HTTP check.

    sources: of the service, by the lines that they need.
    """

    service: Service
    bind: str
    both_families: bool
    transparent: bool
    servers: tuple[Member, ...]
    check_path: str
    expect: str
    sources: tuple[tuple[str, ...], ...]


def render(services: c.Iterable[Service], settings: Global, others: str) -> str:
    """All sections except those with secrets, in order of their names, so that equal settings give equal texts. others: texts of the other files."""
    proxies = [_proxy(service, settings.virtual) for service in sorted(services, key=lambda service: service.name)]
    unmarked = templating.render("load_balancer", "haproxy.cfg", digest="", settings=settings, proxies=proxies)
    # The digest excludes the header and the first blank line, as in earlier versions: another digest would reload HAProxy.
    hashed = unmarked.partition("\n")[2].replace("\n\n", "\n", 1) + others
    digest = hashlib.sha256(hashed.encode()).hexdigest()[:16]
    return templating.render("load_balancer", "haproxy.cfg", digest=digest, settings=settings, proxies=proxies)


def mark(texts: c.Iterable[str]) -> str:
    """The mark in configuration texts, empty if there is none."""
    for line in (line.strip() for text in texts for line in text.splitlines()):
        if line.startswith(f"description {MARK} "):
            return line.removeprefix("description ")
    return ""


def users(name: str, password: str) -> str:
    """The section with secrets, in a separate file, so that the others can be shown."""
    quoted = _word(password).replace("$", "\\$")
    return templating.render("load_balancer", "haproxy-users.cfg", user=name, password=quoted)


def _word(text: str) -> str:
    """One word of a line, with any characters except line ends (HAProxy 3.0, configuration manual 2.2: a dollar sign is special only in quotes)."""
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
        tuple(service.sources[start : start + _SOURCES] for start in range(0, len(service.sources), _SOURCES)),
    )


def _expected(status: str) -> str:
    return f"status {status}" if status.isdecimal() else f"rstatus {_word(f'^({status})$')}"
