# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done to one machine, why, and what is refused, from what was seen of it. Pure."""

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
    """started: whether the machine begins a boot by these steps that is then watched."""

    steps: list[Step] = dataclasses.field(default_factory=list)
    messages: list[str] = dataclasses.field(default_factory=list)
    faults: list[Fault] = dataclasses.field(default_factory=list)
    started: bool = False


def plan(request: BootRequest, observed: BootState, joined: Joined) -> BootPlan:
    """Nothing is done to a machine that is as it is to be; a boot device is set only to a machine that starts by this run."""
    made = BootPlan()
    if observed.power not in (ON, OFF):
        made.faults.append(
            _fault(
                request,
                f"its power is {observed.power or 'not told'}",
                "it is changing, or not known",
                "run this again in a minute",
            )
        )
    elif observed.power == OFF and request.power == OFF:
        made.messages.append("it is off, as it is to be")
    elif observed.power == OFF:
        _start(made, request, observed, joined, ON)
    elif request.power == ON:
        made.messages.append(
            "it runs, nothing is done to its power"
            + (", its node has joined the cluster" if joined.state == YES else "")
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
    """Its operating system is asked first: file systems and pods end as they should."""
    if not request.shutdown:
        return [Step(POWER, OFF, "it is to be off", OFF)]
    return [
        Step(POWER, SHUTDOWN, f"it is to be off, and has {request.shutdown} s for it", OFF, limit=request.shutdown),
        Step(POWER, OFF, f"only where it still runs after {request.shutdown} s", OFF, instead=True),
    ]


def back(request: BootRequest, observed: BootState, joined: Joined, boots: bool, ended: bool) -> list[Step]:
    """What was set for one boot, and would stay. boots: whether logs have said that the machine has what it needs for its boot. ended: it has reported."""
    # A machine that is installed anew because somebody has named it may still have its old node.
    is_node = joined.state == YES and not request.named
    steps = _back_to_disk(observed, is_node, boots)
    if request.media in observed.images and (ended or is_node):
        steps.append(Step(EJECT, request.media, "its node has joined" if is_node else "it has reported in"))
    return steps


def _back_to_disk(observed: BootState, is_node: bool, boots: bool) -> list[Step]:
    """A BMC that knows no "once" boots what it was given for ever: an installation would be followed by the next."""
    if observed.power != ON or observed.lasts != ALWAYS or observed.device in ("", DISK) or not (boots or is_node):
        return []
    why = (
        "its node has joined"
        if is_node
        else "it runs from its media"
        if observed.device == MEDIA
        else "its kernel is loaded"
    )
    return [
        Step(BOOT, DISK, f"its BMC knows no one-time boot and would take the {observed.device} at each start; {why}")
    ]


def _start(made: BootPlan, request: BootRequest, observed: BootState, joined: Joined, power: str) -> None:
    device = request.boot
    if device != DISK and joined.state == YES and not request.named:
        made.messages.append(f"its node has joined the cluster: it starts from its disk and not from the {device}")
        device = DISK
    if device == NETWORK and observed.written and not request.named:
        next_step = f"ask for it by name to have it installed over that: -e machine_boot_named={request.name}"
        what = "whether something is on its disk is not known" if observed.unread else "something is on its disk"
        made.messages.append(
            f"{what}: it starts from that, and from the network where nothing there boots; {next_step}"
        )
        device = DISK
    if request.provider == REDFISH and observed.devices and redfish.target(request, device) not in observed.devices:
        desired = redfish.target(request, device)
        next_step = "set machine_boot_boot to one that it knows" + (
            ", or machine_boot_http to false" if request.http and device == NETWORK else ""
        )
        made.faults.append(
            _fault(
                request,
                f"its BMC cannot start it from {desired}",
                f"it offers {', '.join(observed.devices)}",
                next_step,
            )
        )
        return
    if device == MEDIA and not observed.holder[0]:
        next_step = (
            f"set machine_boot_boot to {NETWORK}, or see whether its licence or its settings allow virtual media"
        )
        made.faults.append(
            _fault(request, "its BMC has no virtual media", "neither its system nor its managers offer any", next_step)
        )
        return
    if device == MEDIA and request.media not in observed.images:
        made.steps.append(Step(INSERT, request.media, "it is to start from it"))
    if observed.device == device:
        text = "it starts" if request.vm else "its BMC has been asked to start it"
        made.messages.append(f"{text} from the {device}" + (" once" if observed.lasts == ONCE else ""))
    else:
        before = f", and had the {observed.device}" if observed.device else ""
        made.steps.append(Step(BOOT, device, f"it is to start from the {device}{before}"))
    made.steps.append(Step(POWER, power, "it is off" if power == ON else "it is to start anew", ON))
    # An installed machine fetches none of what the logs would tell.
    made.started = device != DISK


def _refusal(request: BootRequest, joined: Joined) -> Fault | None:
    """Why a machine that runs keeps its power."""
    if request.named or joined.state == NO:
        return None
    action = "power off" if request.power == OFF else "power cycle"
    if joined.state == UNKNOWN:
        what, why = f"no {action}: whether it runs a node is not known", joined.why
        next_step = "give its cluster's host credentials (hwaccel_connection), or ask for the machine by name"
    else:
        what, why = f"no {action}: it runs a node of cluster {request.machine.cluster}", "pods would end with it"
        next_step = "drain the node, then ask for the machine by name"
    return _fault(request, what, why, f"{next_step}: -e machine_boot_named={request.name}")


def _fault(request: BootRequest, what: str, why: str, next_step: str) -> Fault:
    return Fault(f"machine {request.name}: {what}", request.reached, why, next_step)


def done_by(request: BootRequest, observed: BootState, steps: c.Sequence[Step]) -> list[dict[str, t.Any]]:
    """Steps as the role takes them: each with what to tell, and what its provider is to be given."""
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
