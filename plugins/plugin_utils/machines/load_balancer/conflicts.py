# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of a load balancer on a machine: who listens already, what is missing."""

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
#: To be free beside twice what is written: a file is written beside the one that it replaces.
_SPARE_BYTES = 65536


def ports(machine: Machine, services: c.Sequence[Service], given: haproxy.Global) -> list[Fault]:
    """Ports that others have, or that the role itself needs."""
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
                        f"its port {service.port} is taken by {listener.process or 'another program'}",
                        step,
                    )
                )
    for service in services:
        faults += [
            Fault(_WHAT, service.where, f"its port {service.port} is {one.name}'s", f"set {one.name}")
            for one in own
            if service.listens_with(one.address, one.port)
        ]
    return faults


def addresses(machine: Machine, services: c.Sequence[Service], virtual: c.Collection[str]) -> list[Fault]:
    """Addresses that HAProxy could not listen on: neither the machine's nor virtual ones. virtual: without prefix lengths."""
    known = {*machine.addresses, *virtual, *ANY, BOTH}
    step = "correct it, or add it to load_balancer_virtual_addresses"
    return [
        Fault(_WHAT, service.where, f"its address {service.address} is none of this machine's", step)
        for service in services
        if service.address not in known and not service.address.startswith("127.")
    ]


def foreign(machine: Machine, replace: bool) -> list[Fault]:
    """A HAProxy that serves for somebody else."""
    runs_another = machine.unit("haproxy").active and not machine.description.startswith(haproxy.MARK)
    serves = any(line.split()[:1] == ["bind"] for line in machine.text(FOREIGN).splitlines())
    if replace or not runs_another or not serves:
        return []
    step = "bring its services into load_balancer_services and set load_balancer_replace to true: the file stays, and teardown points back to it"
    return [Fault(_WHAT, FOREIGN, "HAProxy serves with a configuration of somebody else's", step)]


def strange(machine: Machine) -> list[Fault]:
    """Files of others that HAProxy would read with the role's: what is checked would not be what it reads."""
    found = [
        path
        for path in sorted(machine.files)
        if path.startswith(f"{CONFIG}/") and path.endswith(".cfg") and path not in (USERS, EXTRA, MAIN)
    ]
    return [
        Fault(
            _WHAT,
            path,
            "HAProxy would read it, and the role has not written it",
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
            f"{machine.free_bytes} bytes are free there, and {needed} are needed",
            "make room on that file system",
        )
    ]


def collections(machine: Machine, settings: c.Mapping[str, t.Any], drains: bool) -> list[Fault]:
    """Collections that are missing on the controller, where this machine needs them."""
    needed = firewall.needed(machine.firewalls) if settings["firewall"] else {}
    if drains:
        needed["community.general"] = "a member that serves is to be taken out"
    if settings["selinux"] and machine.selinux:
        needed["ansible.posix"] = "SELinux has to let HAProxy connect"
    return firewall.lacking(_WHAT, needed, settings["collections"])
