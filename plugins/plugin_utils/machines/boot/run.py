# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role machine_boot asks: results of its tasks in, plain data out. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import asked as asking
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import (
    ipmi,
    journal,
    libvirt,
    plan,
    redfish,
    seen,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.asked import Asked
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.seen import Seen

_Data = c.Mapping[str, t.Any]


def planned(entry: _Data, looked: _Data, nodes: _Data, booted: bool, ended: bool = False) -> dict[str, t.Any]:
    """looked: result of the task that has asked the machine's BMC or hypervisor. nodes: what its cluster has said. booted, ended: what logs have said."""
    asked = asking.read(entry)
    joined = seen.joined(entry.get("nodes") or [asked.name], nodes)
    result = {
        "messages": [],
        "faults": [],
        "steps": [],
        "back": [],
        "power": "",
        "started": False,
        "joined": joined.state,
    }
    found = _seen(asked, looked)
    if isinstance(found, Fault):
        return {**result, "faults": [found.as_dict()]}
    made = plan.plan(asked, found, joined)
    back = libvirt.back(found) if isinstance(found, libvirt.Machine) else plan.back(asked, found, joined, booted, ended)
    if isinstance(found, libvirt.Machine) and not made.faults:
        steps, told = libvirt.before(asked, found)
        made.steps[:0], made.messages[:0] = steps, told
    return {
        **result,
        "messages": made.messages,
        "faults": [fault.as_dict() for fault in made.faults],
        "steps": plan.done_by(asked, found, made.steps),
        "back": plan.done_by(asked, found, back),
        "power": found.power,
        "started": made.started,
    }


def removed(entry: _Data, looked: _Data, nodes: _Data, disks: bool) -> dict[str, t.Any]:
    """What teardown does to a machine. One that has a BMC stays as it is."""
    asked = asking.read(entry)
    if asked.provider != asking.LIBVIRT:
        return {"messages": ["it is no virtual machine, and is left as it is"], "faults": [], "steps": []}
    found = libvirt.read(asked, looked)
    if isinstance(found, Fault):
        return {"messages": [], "faults": [found.as_dict()], "steps": []}
    steps, told, faults = libvirt.removal(asked, found, seen.joined(entry.get("nodes") or [asked.name], nodes), disks)
    return {
        "messages": told,
        "faults": [fault.as_dict() for fault in faults],
        "steps": plan.done_by(asked, found, steps),
    }


def _seen(asked: Asked, looked: _Data) -> Seen | Fault:
    """Why, where nothing could be read."""
    if asked.provider == asking.LIBVIRT:
        return libvirt.read(asked, looked)
    try:
        if asked.provider == asking.REDFISH and looked.get("redfish_facts"):
            return redfish.read(looked["redfish_facts"], asked.bmc.system, looked.get("managers"))
    except redfish.NoSuchSystem as error:
        return seen.refused(asked.name, asked.bmc.address, f"not found: {error}")
    # ansible-core before 2.19 has made a text of the number.
    if asked.provider == asking.IPMI and str(looked.get("rc", 0)) == "0":
        return ipmi.read(str(looked["stdout"]))
    return seen.refused(asked.name, asked.bmc.address, str(looked.get("msg") or looked.get("stderr") or ""))


#: The first line of a log where those after it may be of an earlier boot.
_EARLIER = "earlier"


def judged(read: c.Sequence[_Data], entry: _Data, awaited: str, nodes: _Data | None = None) -> dict[str, t.Any]:
    """How far a machine has come. read: results of the task that has read logs, the last of a boot server counts. nodes: what its cluster has said since."""
    asked = asking.read(entry)
    logs = {one.get("item", ""): one["stdout_lines"] for one in read if "stdout_lines" in one}
    joined = seen.joined(entry.get("nodes") or [asked.name], nodes or {}).state == seen.YES
    media = asked.boot == asking.MEDIA
    found = journal.verdict(asked.machine, [line for lines in logs.values() for line in lines], joined, media)
    # What is done goes by lines of the present boot alone: an old report would end an installation that has begun.
    present = journal.verdict(
        asked.machine, [line for lines in logs.values() if lines[:1] != [_EARLIER] for line in lines], joined, media
    )
    doubt = "" if found.stage == present.stage else ", in this boot or an earlier one"
    # A boot server that has sent a loader sends what comes after it; an address is offered by all of them.
    sending = [name for name, lines in logs.items() if journal.verdict(asked.machine, lines).at_least(journal.LOADER)]
    return {
        "stage": found.stage,
        "text": found.text + doubt,
        "next_step": found.next_step,
        "done": found.at_least(awaited),
        "sending": sending,
        "loaded": present.at_least(journal.ADDRESS if media else journal.KERNEL),
        "ended": present.at_least(journal.REPORTED),
    }
