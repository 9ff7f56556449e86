# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions for the action machine_power: responses of BMCs and hypervisors in, plans as plain data out. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import (
    boot_state,
    ipmi,
    libvirt,
    plan,
    redfish,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import request as asking
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.boot_state import BootState
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.request import BootRequest

_Data = c.Mapping[str, t.Any]


def planned(entry: _Data, looked: _Data, nodes: _Data, booted: bool, ended: bool = False) -> dict[str, t.Any]:
    """The plan. looked: response of the machine's BMC or hypervisor. nodes: of its cluster. booted, ended: its progress in the logs."""
    request = asking.read(entry)
    joined = boot_state.joined(request.nodes, nodes)
    result = {
        "messages": [],
        "faults": [],
        "steps": [],
        "back": [],
        "power": "",
        "started": False,
        "ends": False,
        "joined": joined.state,
    }
    found = _observed(request, looked)
    if isinstance(found, Fault):
        return {**result, "faults": [found.as_dict()]}
    made = plan.plan(request, found, joined)
    back = (
        libvirt.back(found) if isinstance(found, libvirt.Machine) else plan.back(request, found, joined, booted, ended)
    )
    if isinstance(found, libvirt.Machine) and not made.faults:
        steps, lines = libvirt.before(request, found)
        made.steps[:0], made.messages[:0] = steps, lines
    return {
        **result,
        "messages": made.messages,
        "faults": [fault.as_dict() for fault in made.faults],
        "steps": plan.done_by(request, found, made.steps),
        "back": plan.done_by(request, found, back),
        "power": found.power,
        "started": made.started,
        "ends": made.ends,
    }


def removed(entry: _Data, looked: _Data, nodes: _Data, disks: bool) -> dict[str, t.Any]:
    """The plan of teardown. A machine with a BMC is not changed."""
    request = asking.read(entry)
    if request.provider != asking.LIBVIRT:
        return {"messages": ["it is not a virtual machine, and is not changed"], "faults": [], "steps": []}
    found = libvirt.read(request, looked)
    if isinstance(found, Fault):
        return {"messages": [], "faults": [found.as_dict()], "steps": []}
    steps, lines, faults = libvirt.removal(request, found, boot_state.joined(request.nodes, nodes), disks)
    return {
        "messages": lines,
        "faults": [fault.as_dict() for fault in faults],
        "steps": plan.done_by(request, found, steps),
    }


def resumed(entry: _Data, looked: _Data) -> dict[str, t.Any]:
    """The plan of a virtual machine that has started from the network once. looked: response of its hypervisor."""
    request = asking.read(entry)
    found = libvirt.read(request, looked)
    if isinstance(found, Fault):
        return {"messages": [], "faults": [found.as_dict()], "steps": []}
    steps, lines = libvirt.resumed(found)
    return {"messages": lines, "faults": [], "steps": plan.done_by(request, found, steps)}


def _observed(request: BootRequest, looked: _Data) -> BootState | Fault:
    """The observed state, or why it could not be read."""
    if request.provider == asking.LIBVIRT:
        return libvirt.read(request, looked)
    try:
        if request.provider == asking.REDFISH and looked.get("redfish_facts"):
            return redfish.read(looked["redfish_facts"], request.bmc.system, looked.get("managers"))
    except redfish.NoSuchSystem as error:
        return boot_state.refused(request.name, request.bmc.address, f"not found: {error}")
    # ansible-core before 2.19 converts the number to text.
    if request.provider == asking.IPMI and str(looked.get("rc", 0)) == "0":
        return ipmi.read(str(looked["stdout"]))
    return boot_state.refused(request.name, request.bmc.address, str(looked.get("msg") or looked.get("stderr") or ""))
