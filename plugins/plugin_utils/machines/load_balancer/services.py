# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services of a load balancer as data."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import ipaddress
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine, truth

#: Names of HAProxy's sections and servers. DNS labels of machines are such names.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_CHECKS = ("tcp", "http", "https")
_BALANCES = ("roundrobin", "leastconn", "source", "static-rr", "first")
_DURATION = re.compile(r"\d+(us|ms|s|m|h|d)?")
#: Wildcard addresses: of IPv4, and of both families.
ANY, BOTH = ("", "*", "0.0.0.0"), "::"


@dataclasses.dataclass(frozen=True)
class Check:
    """Health check of a member. port: 0 for the member's own. status: regular expression for HTTP statuses, not for type tcp."""

    type: str = "tcp"
    path: str = "/"
    port: int = 0
    status: str = "200"
    interval: str = "5s"
    rise: int = 2
    fall: int = 2


@dataclasses.dataclass(frozen=True)
class Member:
    name: str
    address: str
    port: int


@dataclasses.dataclass(frozen=True)
class Service:
    """cluster: to which it belongs, can be empty. sources: networks that may connect, empty for all.

    accept_proxy, send_proxy: whether connections begin with a PROXY protocol header, from clients and to members.
    """

    name: str
    port: int
    cluster: str = ""
    address: str = ""
    mode: str = "tcp"
    balance: str = "roundrobin"
    members: tuple[Member, ...] = ()
    check: Check = Check()
    sources: tuple[str, ...] = ()
    accept_proxy: bool = False
    send_proxy: bool = False

    @property
    def where(self) -> str:
        return f"service {self.name}" + (f" of cluster {self.cluster}" if self.cluster else "")

    def listens_with(self, address: str, port: int) -> bool:
        """Whether it conflicts with a listener on this address and port."""
        return self.port == port and (
            self.address == address or any(one in (*ANY, BOTH) for one in (self.address, address))
        )


class Reader:
    """Reads typed values from variables, and collects problems."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults

    def fault(self, where: str, why: str, next_step: str) -> None:
        self.faults.append(Fault("the load balancer cannot be configured", where, why, next_step))

    def known(self, given: c.Mapping[str, t.Any], keys: c.Iterable[str], where: str) -> None:
        unknown = sorted(set(given) - set(keys))
        if unknown:
            self.fault(where, f"unknown: {', '.join(unknown)}", f"use {', '.join(sorted(keys))}")

    def entries(self, value: t.Any, kind: type, where: str) -> list[t.Any]:
        """A list of texts or of dictionaries, or a single one instead."""
        found = [value] if isinstance(value, (str, c.Mapping)) else value
        if isinstance(found, (list, tuple)) and all(
            isinstance(entry, c.Mapping if kind is dict else kind) for entry in found
        ):
            return list(found)
        self.fault(where, f"{value!r} is not a list of {'dictionaries' if kind is dict else 'texts'}", "correct it")
        return []

    def name(self, value: t.Any, where: str) -> str:
        text = str(value)
        if not _NAME.fullmatch(text):
            self.fault(where, f"{text!r} is not a name (letters, digits, - _ and .)", "correct it")
        return text

    def port(self, value: t.Any, where: str) -> int:
        text = str(value)
        if text.isdecimal() and 0 < int(text) < 65536:
            return int(text)
        self.fault(where, f"{text!r} is not a port (1 to 65535)", "correct it")
        return 0

    def count(self, value: t.Any, where: str) -> int:
        text = str(value)
        if text.isdecimal() and int(text) > 0:
            return int(text)
        self.fault(where, f"{text!r} is not a number above 0", "correct it")
        return 1

    def address(self, value: t.Any, where: str) -> str:
        try:
            return str(ipaddress.ip_address(str(value)))
        except ValueError:
            self.fault(where, f"{str(value)!r} is not an IP address", "give an address: names are not resolved here")
            return ""

    def network(self, value: t.Any, where: str) -> str:
        try:
            return str(ipaddress.ip_network(str(value)))
        except ValueError as error:
            self.fault(where, f"not a network: {error}", "give it as 10.0.0.0/24, without host bits")
            return ""

    def choice(self, value: t.Any, choices: c.Sequence[str], where: str) -> str:
        if value not in choices:
            self.fault(where, f"{value!r} is not one of {', '.join(choices)}", "correct it")
        return str(value)

    def truth(self, value: t.Any, where: str) -> bool:
        found = truth(value)
        if found is None:
            self.fault(where, f"{value!r} is neither true nor false", "correct it")
        return bool(found)

    def duration(self, value: t.Any, where: str) -> str:
        if not _DURATION.fullmatch(str(value)):
            self.fault(where, f"{str(value)!r} is not a duration", "write it as 500ms, 5s or 4h")
        return str(value)


_SERVICE_KEYS = (
    "name",
    "cluster",
    "port",
    "address",
    "mode",
    "balance",
    "roles",
    "members",
    "member_port",
    "check",
    "sources",
    "accept_proxy",
    "send_proxy",
)
_CHECK_KEYS = tuple(field.name for field in dataclasses.fields(Check))


def read_service(given: c.Mapping[str, t.Any], machines: c.Sequence[Machine], reader: Reader) -> Service:
    """machines: of the service's cluster, of which its roles select members."""
    where = f"service {given.get('name', '')}" + (f" of cluster {given['cluster']}" if given.get("cluster") else "")
    reader.known(given, _SERVICE_KEYS, where)
    port = reader.port(given.get("port", ""), f"{where}, port")
    member_port = reader.port(given["member_port"], f"{where}, member_port") if given.get("member_port") else port
    roles = reader.entries(given.get("roles", ()), str, f"{where}, roles")
    named = [{"name": machine.name, "address": machine.address} for machine in machines if machine.role in roles]
    members = [
        _member(member, member_port, where, reader)
        for member in [*reader.entries(given.get("members", ()), dict, f"{where}, members"), *named]
    ]
    if not members:
        source = f"no machine has the role {' or '.join(roles)}" if roles else "neither members nor roles are set"
        reader.fault(
            where,
            f"it has no members: {source}",
            "add machines to the inventory, set members, or remove the service",
        )
    for twice in sorted(
        {member.name for member in members if [other.name for other in members].count(member.name) > 1}
    ):
        reader.fault(where, f"two members have the name {twice}", "rename one of them")
    return Service(
        reader.name(given.get("name", ""), where),
        port,
        reader.name(given["cluster"], f"{where}, cluster") if given.get("cluster") else "",
        "" if given.get("address", "") in ANY else reader.address(given["address"], f"{where}, address"),
        reader.choice(given.get("mode", "tcp"), ("tcp", "http"), f"{where}, mode"),
        reader.choice(given.get("balance", "roundrobin"), _BALANCES, f"{where}, balance"),
        tuple(members),
        _check(given.get("check", {}), where, reader),
        tuple(
            reader.network(source, f"{where}, sources")
            for source in reader.entries(given.get("sources", ()), str, f"{where}, sources")
        ),
        reader.truth(given.get("accept_proxy"), f"{where}, accept_proxy"),
        reader.truth(given.get("send_proxy"), f"{where}, send_proxy"),
    )


def _member(given: c.Mapping[str, t.Any], port: int, where: str, reader: Reader) -> Member:
    member = f"{where}, member {given.get('name', '')}"
    reader.known(given, ("name", "address", "port"), member)
    own = reader.port(given["port"], f"{member}, port") if given.get("port") else port
    return Member(
        reader.name(given.get("name", ""), member), reader.address(given.get("address", ""), f"{member}, address"), own
    )


def _check(given: c.Mapping[str, t.Any], where: str, reader: Reader) -> Check:
    where = f"{where}, check"
    if not isinstance(given, c.Mapping):
        reader.fault(where, f"{given!r} is not a dictionary", "write it as {type: http, path: /ready}")
        return Check()
    reader.known(given, _CHECK_KEYS, where)
    default = Check()
    path, status = str(given.get("path", default.path)), str(given.get("status", default.status))
    if not path.startswith("/") or any(sign.isspace() for sign in path):
        reader.fault(where, f"{path!r} is not a URL path", "start it with /, without blanks")
    try:
        re.compile(status)
    except re.error as error:
        reader.fault(where, f"status {status!r} is not a regular expression: {error}", "write 200, or 200|401")
    return Check(
        reader.choice(given.get("type", default.type), _CHECKS, f"{where}, type"),
        path,
        reader.port(given["port"], f"{where}, port") if given.get("port") else 0,
        status,
        reader.duration(given.get("interval", default.interval), f"{where}, interval"),
        reader.count(given.get("rise", default.rise), f"{where}, rise"),
        reader.count(given.get("fall", default.fall), f"{where}, fall"),
    )


def collisions(services: c.Sequence[Service]) -> list[Fault]:
    """Conflicting services: with the same name, or with the same address and port."""
    faults = []
    for number, one in enumerate(services):
        for other in services[number + 1 :]:
            if one.name == other.name:
                faults.append(
                    Fault(
                        "the load balancer cannot be configured",
                        one.where,
                        "another service has this name",
                        "rename one of them",
                    )
                )
            if one.listens_with(other.address, other.port):
                step = "give each a separate address (load_balancer_clusters, or address of a service), other ports, or another load balancer"
                faults.append(
                    Fault(
                        "the load balancer cannot be configured",
                        one.where,
                        f"its port {one.port} is also that of {other.where}",
                        step,
                    )
                )
    return faults
