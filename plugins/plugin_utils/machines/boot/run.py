# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions for tasks of the role machine_boot: results of tasks in, plain data out. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import (
    boot_log,
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
    joined = boot_state.joined(entry.get("nodes") or [request.name], nodes)
    result = {
        "messages": [],
        "faults": [],
        "steps": [],
        "back": [],
        "power": "",
        "started": False,
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
    }


def removed(entry: _Data, looked: _Data, nodes: _Data, disks: bool) -> dict[str, t.Any]:
    """The plan of teardown. A machine with a BMC is not changed."""
    request = asking.read(entry)
    if request.provider != asking.LIBVIRT:
        return {"messages": ["it is not a virtual machine, and is not changed"], "faults": [], "steps": []}
    found = libvirt.read(request, looked)
    if isinstance(found, Fault):
        return {"messages": [], "faults": [found.as_dict()], "steps": []}
    steps, lines, faults = libvirt.removal(
        request, found, boot_state.joined(entry.get("nodes") or [request.name], nodes), disks
    )
    return {
        "messages": lines,
        "faults": [fault.as_dict() for fault in faults],
        "steps": plan.done_by(request, found, steps),
    }


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


#: First line of logs whose other lines may belong to an earlier boot.
_EARLIER = "earlier"


def judged(read: c.Sequence[_Data], entry: _Data, awaited: str, nodes: _Data | None = None) -> dict[str, t.Any]:
    """Progress of a machine. read: results of the task that has read logs; the last of each boot server counts. nodes: of its cluster since the start."""
    request = asking.read(entry)
    logs = {one.get("item", ""): one["stdout_lines"] for one in read if "stdout_lines" in one}
    joined = boot_state.joined(entry.get("nodes") or [request.name], nodes or {}).state == boot_state.YES
    media = request.boot == asking.MEDIA
    found = boot_log.verdict(request.machine, [line for lines in logs.values() for line in lines], joined, media)
    # Only lines of the present boot lead to actions: an old report would end an installation in progress.
    present = boot_log.verdict(
        request.machine, [line for lines in logs.values() if lines[:1] != [_EARLIER] for line in lines], joined, media
    )
    doubt = "" if found.stage == present.stage else ", in this boot or an earlier one"
    # All boot servers offer an address, but the one that has sent a boot loader also sends the rest.
    sending = [
        name for name, lines in logs.items() if boot_log.verdict(request.machine, lines).at_least(boot_log.LOADER)
    ]
    return {
        "stage": found.stage,
        "text": found.text + doubt,
        "next_step": found.next_step,
        "done": found.at_least(awaited),
        "sending": sending,
        "loaded": present.at_least(boot_log.ADDRESS if media else boot_log.KERNEL),
        "ended": present.at_least(boot_log.REPORTED),
    }
