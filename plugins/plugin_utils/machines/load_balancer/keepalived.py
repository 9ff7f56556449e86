# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of keepalived, which moves virtual addresses to a working load balancer."""

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
    """addresses: with prefix length. peers: addresses of all load balancers, in order of preference. position: of this machine among them."""

    addresses: tuple[str, ...]
    peers: tuple[str, ...]
    position: int
    interface: str
    router_id: int
    unicast: bool


def read(settings: c.Mapping[str, t.Any], machine: Machine) -> tuple[Virtual | None, list[Fault]]:
    """None if there are no virtual addresses, or if there are problems."""
    if not settings["virtual_addresses"]:
        return None, []
    faults: list[Fault] = []
    addresses = _addresses(settings["virtual_addresses"], faults)
    names, peers = [peer["name"] for peer in settings["peers"]], [str(peer["address"]) for peer in settings["peers"]]
    faults += _peer_faults(settings["name"], list(zip(names, peers, strict=True)))
    for taken in sorted({address.split("/")[0] for address in addresses} & set(peers)):
        why = f"{taken} is a load balancer's own address"
        faults.append(Fault(_WHAT, "load_balancer_virtual_addresses", why, "use one that no machine has"))
    router_id = str(settings["router_id"])
    if not router_id.isdecimal() or not 0 < int(router_id) < 256:
        why, step = f"{router_id!r} is not a number from 1 to 255", "use one that is unique on the network segment"
        faults.append(Fault(_WHAT, "load_balancer_router_id", why, step))
    if faults:
        return None, faults
    position = names.index(settings["name"])
    interface = settings["interface"] or machine.addresses.get(peers[position], "")
    if interface not in machine.addresses.values():
        without = f"no interface has the address {peers[position]}"
        why = f"the interface {interface} does not exist or has no address" if interface else without
        step = "set load_balancer_interface to the interface of the virtual addresses"
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
            yield Fault(_WHAT, f"load_balancer_peers, {name}", f"{address!r} is not an IP address", step)


def render(virtual: Virtual, check: str) -> str:
    """check: path of the program that checks HAProxy."""
    own = virtual.peers[virtual.position]
    # An instance can announce addresses of one family only. The others follow these.
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
    """The program that checks HAProxy. port: of its health frontend."""
    return templating.render("load_balancer", "check-haproxy.sh", port=port)
