# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps for one machine with their reasons, or why none are taken, from its observed state. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import ipmi, libvirt, redfish
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.boot_state import (
    ALWAYS,
    NO,
    ONCE,
    UNKNOWN,
    YES,
    BootState,
    Joined,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.request import (
    CYCLE,
    DISK,
    IPMI,
    LIBVIRT,
    MEDIA,
    NETWORK,
    OFF,
    ON,
    REDFISH,
    BootRequest,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.step import (
    BOOT,
    DEFINE,
    EJECT,
    INSERT,
    POWER,
    REMOVE,
    SHUTDOWN,
    Step,
)


@dataclasses.dataclass
class BootPlan:
    """started: whether these steps start a boot that can be watched. ends: whether the machine is off after what it boots, before it starts from its disk."""

    steps: list[Step] = dataclasses.field(default_factory=list)
    messages: list[str] = dataclasses.field(default_factory=list)
    faults: list[Fault] = dataclasses.field(default_factory=list)
    started: bool = False
    ends: bool = False


def plan(request: BootRequest, observed: BootState, joined: Joined) -> BootPlan:
    """No steps if the machine is as requested. The boot device is set only if this run starts the machine."""
    made = BootPlan()
    if observed.power not in (ON, OFF):
        made.faults.append(
            _fault(
                request,
                f"its power is {observed.power or 'unknown'}",
                "it is changing, or the BMC does not report it",
                "run this again in a minute",
            )
        )
    elif observed.power == OFF and request.power == OFF:
        made.messages.append("it is off, as requested")
    elif observed.power == OFF:
        _start(made, request, observed, joined, ON)
    elif request.power == ON:
        made.messages.append(
            "it is on, its power is not changed" + (", its node has joined the cluster" if joined.state == YES else "")
        )
    elif refusal := _refusal(request, joined):
        made.faults.append(refusal)
    elif request.power == OFF:
        made.steps += _off(request)
    else:
        _start(made, request, observed, joined, CYCLE)
    if made.faults:
        made.steps.clear()
    return made


def _off(request: BootRequest) -> list[Step]:
    """Shuts down the operating system first, so that file systems are unmounted and pods terminate."""
    if not request.shutdown:
        return [Step(POWER, OFF, "off is requested", OFF)]
    return [
        Step(POWER, SHUTDOWN, f"off is requested, within {request.shutdown} s", OFF, limit=request.shutdown),
        Step(POWER, OFF, f"only if it is still on after {request.shutdown} s", OFF, instead=True),
    ]


def back(request: BootRequest, observed: BootState, joined: Joined, boots: bool, ended: bool) -> list[Step]:
    """Steps that reset what was set for one boot. boots: whether logs show that the machine has loaded what it boots. ended: whether it has reported."""
    # A machine that is reinstalled because it was requested by name may still have its old node.
    is_node = joined.state == YES and not request.named
    steps = _back_to_disk(observed, is_node, boots)
    if request.media in observed.images and (ended or is_node):
        steps.append(Step(EJECT, request.media, "its node has joined" if is_node else "it has reported"))
    return steps


def _back_to_disk(observed: BootState, is_node: bool, boots: bool) -> list[Step]:
    """A BMC without one-time boot keeps the boot device, so each installation would be followed by another one."""
    if observed.power != ON or observed.lasts != ALWAYS or observed.device in ("", DISK) or not (boots or is_node):
        return []
    why = (
        "its node has joined"
        if is_node
        else "it runs from its media"
        if observed.device == MEDIA
        else "its kernel is loaded"
    )
    return [Step(BOOT, DISK, f"its BMC has no one-time boot and would use the {observed.device} at each start; {why}")]


def _start(made: BootPlan, request: BootRequest, observed: BootState, joined: Joined, power: str) -> None:
    device = request.boot
    if device != DISK and joined.state == YES and not request.named:
        made.messages.append(f"its node has joined the cluster: it starts from its disk instead of the {device}")
        device = DISK
    if device == NETWORK and observed.written and not request.named:
        next_step = f"to overwrite it, request the machine by name: -e machine_boot_named={request.name}"
        what = "it is unknown whether its disk is empty" if observed.unread else "its disk is not empty"
        made.messages.append(
            f"{what}: it starts from its disk, and from the network if the disk does not boot; {next_step}"
        )
        device = DISK
    if request.provider == REDFISH and observed.devices and redfish.target(request, device) not in observed.devices:
        desired = redfish.target(request, device)
        next_step = "set machine_boot_boot to a supported one" + (
            ", or machine_boot_http to false" if request.http and device == NETWORK else ""
        )
        made.faults.append(
            _fault(
                request,
                f"its BMC cannot start it from {desired}",
                f"it supports {', '.join(observed.devices)}",
                next_step,
            )
        )
        return
    if device == MEDIA and not observed.holder[0]:
        next_step = (
            f"set machine_boot_boot to {NETWORK}, or enable virtual media in the license or the settings of the BMC"
        )
        made.faults.append(
            _fault(request, "its BMC has no virtual media", "neither its system nor its managers have any", next_step)
        )
        return
    if device == MEDIA and request.media not in observed.images:
        made.steps.append(Step(INSERT, request.media, "the machine starts from it"))
    if observed.device == device:
        text = "it starts" if request.vm else "its BMC is already set to start it"
        made.messages.append(f"{text} from the {device}" + (" once" if observed.lasts == ONCE else ""))
    else:
        before = f", before it was {observed.device}" if observed.device else ""
        made.steps.append(Step(BOOT, device, f"{device} is requested{before}"))
        made.ends = request.provider == LIBVIRT and device == NETWORK
    made.steps.append(Step(POWER, power, "it is off" if power == ON else "cycle is requested", ON))
    # A machine that boots its disk downloads nothing, so the logs show no progress.
    made.started = device != DISK


def _refusal(request: BootRequest, joined: Joined) -> Fault | None:
    """Why the power of a running machine is not changed."""
    if request.named or joined.state == NO:
        return None
    action = "power off" if request.power == OFF else "power cycle"
    if joined.state == UNKNOWN:
        what, why = f"no {action}: it is unknown whether it runs a node", joined.why
        next_step = "set the credentials of its cluster (hwaccel_connection), or request the machine by name"
    else:
        what, why = f"no {action}: it runs a node of cluster {request.machine.cluster}", "its pods would be terminated"
        next_step = "drain the node, then request the machine by name"
    return _fault(request, what, why, f"{next_step}: -e machine_boot_named={request.name}")


def _fault(request: BootRequest, what: str, why: str, next_step: str) -> Fault:
    return Fault(f"machine {request.name}: {what}", request.reached, why, next_step)


def done_by(request: BootRequest, observed: BootState, steps: c.Sequence[Step]) -> list[dict[str, t.Any]]:
    """Steps as plain data, each with its text and the arguments for its provider."""
    titles: dict[tuple[str, str], str] = {
        (POWER, ON): "power on",
        (POWER, OFF): "power off",
        (POWER, CYCLE): "power cycle",
        (BOOT, NETWORK): "start from the network once",
        (BOOT, DISK): "start from its disk",
        (BOOT, MEDIA): "start from media once",
        (POWER, SHUTDOWN): "shut down",
        (DEFINE, "new"): "define the virtual machine",
        (DEFINE, "changed"): "change its definition",
    }
    give = {REDFISH: redfish.arguments, IPMI: ipmi.arguments, LIBVIRT: libvirt.arguments}[request.provider]

    def text(step: Step) -> str:
        other = "remove the virtual machine" if step.kind == REMOVE else f"{step.kind} {step.value}"
        return f"{titles.get((step.kind, step.value), other)}: {step.why}"

    return [
        {
            "kind": step.kind,
            "until": step.until,
            "limit": step.limit,
            "instead": step.instead,
            "text": text(step),
            "give": give(request, observed, step),
        }
        for step in steps
    ]
