# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses that go with whichever load balancer works: keepalived's configuration."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import ipaddress
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.machine import Machine

_WHAT = "keepalived cannot be configured"


@dataclasses.dataclass(frozen=True)
class Virtual:
    """addresses: with prefix length. peers: own address and those of the others, in order of preference. position: this machine's among them."""

    addresses: tuple[str, ...]
    peers: tuple[str, ...]
    position: int
    interface: str
    router_id: int
    unicast: bool


def read(settings: c.Mapping[str, t.Any], machine: Machine) -> tuple[Virtual | None, list[Fault]]:
    """None where there are no virtual addresses, or something is wrong."""
    if not settings["virtual_addresses"]:
        return None, []
    faults: list[Fault] = []
    addresses = _addresses(settings["virtual_addresses"], faults)
    names, peers = [peer["name"] for peer in settings["peers"]], [str(peer["address"]) for peer in settings["peers"]]
    faults += _peer_faults(settings["name"], list(zip(names, peers, strict=True)))
    for taken in sorted({address.split("/")[0] for address in addresses} & set(peers)):
        why = f"{taken} is a load balancer's own address"
        faults.append(Fault(_WHAT, "load_balancer_virtual_addresses", why, "take one that no machine has"))
    router_id = str(settings["router_id"])
    if not router_id.isdecimal() or not 0 < int(router_id) < 256:
        why, step = f"{router_id!r} is no number from 1 to 255", "take one that nobody else on the segment has"
        faults.append(Fault(_WHAT, "load_balancer_router_id", why, step))
    if faults:
        return None, faults
    position = names.index(settings["name"])
    interface = settings["interface"] or machine.addresses.get(peers[position], "")
    if interface not in machine.addresses.values():
        without = f"no interface has the address {peers[position]}"
        why = f"there is no interface {interface} with an address" if interface else without
        step = "set load_balancer_interface to the one that the virtual addresses go to"
        return None, [Fault(_WHAT, settings["name"], why, step)]
    return Virtual(tuple(addresses), tuple(peers), position, interface, int(router_id), bool(settings["unicast"])), []


def _addresses(given: c.Iterable[str], faults: list[Fault]) -> list[str]:
    addresses = []
    for one in given:
        try:
            addresses.append(str(ipaddress.ip_interface(one)))
        except ValueError as error:
            where = f"load_balancer_virtual_addresses, {one}"
            faults.append(Fault(_WHAT, where, str(error), "write it as 10.0.0.5/24"))
    return addresses


def _peer_faults(own: str, peers: c.Sequence[tuple[str, str]]) -> c.Iterator[Fault]:
    """peers: names with addresses."""
    if own not in [name for name, _address in peers]:
        step = "name all load balancers that share the addresses"
        yield Fault(_WHAT, "load_balancer_peers", f"{own} is not among them", step)
    for name, address in peers:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            step = "set hwaccel_address of that host"
            yield Fault(_WHAT, f"load_balancer_peers, {name}", f"{address!r} is no IP address", step)


def render(virtual: Virtual, check: str) -> str:
    """check: path of the program that asks HAProxy whether it answers."""
    own = virtual.peers[virtual.position]
    # One instance announces addresses of one family; the others go with them.
    family = ipaddress.ip_interface(virtual.addresses[0]).version
    return templating.render(
        "load_balancer",
        "keepalived.conf",
        check=check,
        interface=virtual.interface,
        router_id=virtual.router_id,
        priority=200 - 10 * virtual.position,
        address=own,
        unicast_peers=[peer for peer in virtual.peers if peer != own] if virtual.unicast else [],
        announced=[one for one in virtual.addresses if ipaddress.ip_interface(one).version == family],
        excluded=[one for one in virtual.addresses if ipaddress.ip_interface(one).version != family],
    )


def check_program(port: int) -> str:
    """The program that asks HAProxy whether it answers. port: of its health frontend."""
    return templating.render("load_balancer", "check-haproxy.sh", port=port)
