# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines of libvirt: output of the hypervisor as an observed state, and steps as arguments of modules. Pure.

A virtual machine boots its disk, or the network if the disk is empty. So only its first start is an installation, without a change in between.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import domain, hypervisor, virtual
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.boot_state import (
    NO,
    ONCE,
    YES,
    BootState,
    Joined,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.hypervisor import Hypervisor, gib
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.request import (
    CYCLE,
    DISK,
    NETWORK,
    OFF,
    ON,
    BootRequest,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.step import (
    BOOT,
    DEFINE,
    POWER,
    REMOVE,
    SHUTDOWN,
    Step,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.vm import Vm

_STATES = {"running": ON, "shut off": OFF, "crashed": OFF, "": OFF}
#: Commands of the module virt, in this order.
_ACTIONS = {ON: ["running"], OFF: ["destroyed"], CYCLE: ["destroyed", "running"], SHUTDOWN: ["shutdown"]}


@dataclasses.dataclass(frozen=True)
class Machine(BootState):
    """definition: the observed or the desired one. differences: what has to change. left: differences that are not changed."""

    host: Hypervisor = dataclasses.field(default_factory=Hypervisor)
    definition: str = ""
    differences: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def read(request: BootRequest, looked: c.Mapping[str, t.Any]) -> Machine | Fault:
    """The observed machine, or the problem of its hypervisor."""
    host, desired = hypervisor.read(looked), request.virtual
    if not host.answers:
        return _refused(request, host)
    if not host.definition:
        return Machine(
            OFF,
            *_boots(request, host, ""),
            written=host.written,
            unread=host.unread,
            host=host,
            definition=domain.made(request.machine, desired, host),
        )
    if whose := domain.foreign(host.definition, request.machine):
        return virtual.not_ours(request.machine, desired, whose)
    differences = domain.differences(host.definition, request.machine, desired)
    definition = domain.changed(host.definition, request.machine, desired) if differences else host.definition
    if not host.autostart:
        differences.append("it does not start with its hypervisor")
    power = _STATES.get(host.state, host.state)
    observed = Machine(
        power,
        *_boots(request, host, definition),
        written=host.written,
        unread=host.unread,
        host=host,
        definition=definition,
    )
    return dataclasses.replace(observed, differences=tuple(differences), left=tuple(_left(host, desired)))


def _boots(request: BootRequest, host: Hypervisor, definition: str) -> tuple[str, str]:
    """Boot device of its next start."""
    if (definition and domain.begins_by_network(definition)) or (request.boot == NETWORK and not host.written):
        return NETWORK, ONCE
    return DISK, ""


def _refused(request: BootRequest, host: Hypervisor) -> Fault:
    if host.lacking:
        return Fault(
            f"machine {request.name}: its hypervisor lacks {', '.join(host.lacking)}",
            request.virtual.on,
            "",
            "install it there",
        )
    if host.unreachable:
        next_step = (
            "verify that it is on, that its address is correct, and that Ansible can connect to it and become root"
        )
        return Fault(
            f"machine {request.name}: its hypervisor cannot be reached",
            request.virtual.on,
            " ".join(host.unreachable.split())[:300],
            next_step,
        )
    return Fault(
        f"machine {request.name}: libvirt does not answer on its hypervisor",
        request.virtual.on,
        host.refused[:300],
        "start libvirtd or virtqemud there",
    )


def _left(host: Hypervisor, desired: Vm) -> list[str]:
    text = []
    has = domain.disk(host.definition)
    if (desired.path and has != desired.path) or (desired.pool and not has.startswith(f"{desired.pool}/")):
        text.append(
            f"its disk is {has or 'missing'} instead of {desired.path or f'in pool {desired.pool}'}: disks are not changed"
        )
    elif host.disk and gib(host.disk) != desired.disk:
        text.append(f"its disk has {gib(host.disk)} GiB instead of {desired.disk}: disks are not changed")
    return text


def before(request: BootRequest, observed: Machine) -> tuple[list[Step], list[str]]:
    """Steps before those of its power, and messages."""
    text = list(observed.left)
    if not observed.host.definition:
        text += (
            [f"its disk {request.virtual.path or request.virtual.pool} exists already and is used unchanged"]
            if observed.host.disk
            else []
        )
        size = f"{request.virtual.memory} MiB, {request.virtual.vcpus} CPUs, {request.virtual.disk} GiB, bridge {request.virtual.bridge}"
        return [Step(DEFINE, "new", f"hypervisor {request.virtual.on} does not have it ({size})")], text
    if observed.differences:
        since = ", effective at its next start" if observed.power == ON else ""
        return [Step(DEFINE, "changed", ", ".join(observed.differences) + since)], text
    return [], text


def back(observed: Machine) -> list[Step]:
    """Resets the boot order after a start from the network, even if the run that set it was killed."""
    if observed.power != ON or not observed.host.definition or not domain.begins_by_network(observed.definition):
        return []
    return [Step(BOOT, DISK, "it has started from the network once")]


def resumed(observed: Machine) -> tuple[list[Step], list[str]]:
    """Steps after a start from the network, which ends with the machine's first reboot, and messages."""
    if observed.power == ON:
        return [], ["its installation has not ended yet: once it is off, the next run starts it from its disk"]
    order = [Step(BOOT, DISK, "its installation has ended")] if domain.begins_by_network(observed.definition) else []
    return [*order, Step(POWER, ON, "its installation has ended, it starts from its disk", ON)], []


def arguments(request: BootRequest, observed: BootState, step: Step) -> dict[str, t.Any]:
    """Arguments of the hypervisor's modules."""
    machine = t.cast(Machine, observed)
    if step.kind == POWER:
        return {"states": _ACTIONS[step.value]}
    if step.kind == REMOVE:
        return {"undefine": True, "disk": step.value}
    if step.kind == BOOT:
        return {"xml": domain.ordered(machine.definition, step.value == NETWORK)}
    new = {} if machine.host.disk else {"create": _disk(request.virtual, machine.host)}
    return {"xml": machine.definition, **(new if step.value == "new" else {})}


def _disk(desired: Vm, host: Hypervisor) -> list[str]:
    """The command that creates it. None of them changes an existing disk."""
    form = "qcow2" if host.of_files else "raw"
    if desired.pool:
        return [
            "virsh",
            "-c",
            "qemu:///system",
            "vol-create-as",
            desired.pool,
            host.volume,
            f"{desired.disk}G",
            "--format",
            form,
        ]
    return ["qemu-img", "create", "-q", "-f", form, desired.path, f"{desired.disk}G"]


def removal(
    request: BootRequest, observed: Machine, joined: Joined, disks: bool
) -> tuple[list[Step], list[str], list[Fault]]:
    """Removal of the machine: steps, messages, and problems that prevent it."""
    if not observed.host.definition:
        return (
            [],
            [
                "its hypervisor does not have it"
                + (f"; its disk {request.virtual.path} is kept" if observed.host.disk and request.virtual.path else "")
            ],
            [],
        )
    if joined.state != NO and not request.named:
        known = joined.state == YES
        what = (
            f"it runs a node of cluster {request.machine.cluster}" if known else "it is unknown whether it runs a node"
        )
        next_step = (
            "drain and delete the node, then request"
            if known
            else "set the credentials of its cluster (hwaccel_connection), or request"
        )
        next_step += f" this machine by name: -e machine_boot_named={request.name}"
        return (
            [],
            [],
            [Fault(f"machine {request.name}: it cannot be removed: {what}", request.virtual.on, joined.why, next_step)],
        )
    steps = [] if observed.power == OFF else [Step(POWER, OFF, "it has to be off for its removal", OFF)]
    disk = domain.disk(observed.host.definition)
    why = f"with its disk {disk}" if disks and disk else f"its disk {disk} is kept" if disk else "it has no disk"
    return [*steps, Step(REMOVE, disk if disks else "", why)], [], []
