# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of a load balancer on a machine: ports in use, missing addresses, existing configurations."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import firewall
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import haproxy
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.machine import Machine
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.places import (
    CONFIG,
    EXTRA,
    FOLDER,
    FOREIGN,
    MAIN,
    USERS,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.services import ANY, BOTH, Service

_WHAT = "the load balancer cannot be configured"
#: Free bytes in addition to twice the written bytes, because a file is written before the old one is replaced.
_SPARE_BYTES = 65536


def ports(machine: Machine, services: c.Sequence[Service], given: haproxy.Global) -> list[Fault]:
    """Ports that other programs use, or that the role needs itself."""
    statistics = Service("load_balancer_stats_port", given.stats_port, address=given.stats_address)
    own = (statistics, Service("load_balancer_health_port", given.health_port, address="127.0.0.1"))
    faults = []
    for listener in (one for one in machine.listeners if one.protocol == "tcp"):
        for service in (*services, *own):
            if listener.process != "haproxy" and service.listens_with(listener.address, listener.port):
                step = f"stop {listener.process or 'it'}, or give the service another port or address"
                faults.append(
                    Fault(
                        _WHAT,
                        service.where,
                        f"its port {service.port} is in use by {listener.process or 'another program'}",
                        step,
                    )
                )
    for service in services:
        faults += [
            Fault(_WHAT, service.where, f"its port {service.port} is also that of {one.name}", f"change {one.name}")
            for one in own
            if service.listens_with(one.address, one.port)
        ]
    return faults


def addresses(machine: Machine, services: c.Sequence[Service], virtual: c.Collection[str]) -> list[Fault]:
    """Addresses that HAProxy cannot bind: neither of the machine nor virtual. virtual: without prefix lengths."""
    known = {*machine.addresses, *virtual, *ANY, BOTH}
    step = "correct it, or add it to load_balancer_virtual_addresses"
    return [
        Fault(_WHAT, service.where, f"its address {service.address} is not an address of this machine", step)
        for service in services
        if service.address not in known and not service.address.startswith("127.")
    ]


def foreign(machine: Machine, replace: bool) -> list[Fault]:
    """An existing HAProxy that serves with another configuration."""
    runs_another = machine.unit("haproxy").active and not machine.description.startswith(haproxy.MARK)
    serves = any(line.split()[:1] == ["bind"] for line in machine.text(FOREIGN).splitlines())
    if replace or not runs_another or not serves:
        return []
    step = "move its services to load_balancer_services and set load_balancer_replace to true; the file is kept, and teardown restores it"
    return [Fault(_WHAT, FOREIGN, "HAProxy serves with an existing configuration", step)]


def strange(machine: Machine) -> list[Fault]:
    """Files that HAProxy would read in addition to the role's, so that it would load more than was validated."""
    found = [
        path
        for path in sorted(machine.files)
        if path.startswith(f"{CONFIG}/") and path.endswith(".cfg") and path not in (USERS, EXTRA, MAIN)
    ]
    return [
        Fault(
            _WHAT,
            path,
            "HAProxy would read it, although the role has not written it",
            "move its text to load_balancer_extra",
        )
        for path in found
    ]


def room(machine: Machine, written: int) -> list[Fault]:
    """written: bytes of all files."""
    needed = 2 * written + _SPARE_BYTES
    if machine.free_bytes >= needed:
        return []
    return [
        Fault(
            _WHAT,
            FOLDER,
            f"{machine.free_bytes} bytes are free there, but {needed} are needed",
            "free space on that file system",
        )
    ]


def collections(machine: Machine, settings: c.Mapping[str, t.Any], drains: bool) -> list[Fault]:
    """Missing collections on the controller that this machine needs."""
    needed = firewall.needed(machine.firewalls) if settings["firewall"] else {}
    if drains:
        needed["community.general"] = "a serving member has to be drained"
    if settings["selinux"] and machine.selinux:
        needed["ansible.posix"] = "SELinux has to allow HAProxy to connect"
    return firewall.lacking(_WHAT, needed, settings["collections"])
