# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines of libvirt: what their hypervisor has said as what was seen, and steps as what its modules are given. Pure.

A virtual machine takes its disk first and the network where nothing is on it: its first start is an installation, each later one is not, and nobody has
to tell it in between.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import domain, hypervisor, virtual
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.asked import (
    CYCLE,
    DISK,
    NETWORK,
    OFF,
    ON,
    Asked,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.hypervisor import Hypervisor, gib
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.seen import NO, ONCE, YES, Joined, Seen
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
#: Of the module virt, one after the other.
_ACTIONS = {ON: ["running"], OFF: ["destroyed"], CYCLE: ["destroyed", "running"], SHUTDOWN: ["shutdown"]}


@dataclasses.dataclass(frozen=True)
class Machine(Seen):
    """definition: as it is, or is to be. differences: what is to be changed of it. left: what is otherwise than it is to be and stays so."""

    host: Hypervisor = dataclasses.field(default_factory=Hypervisor)
    definition: str = ""
    differences: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def read(asked: Asked, looked: c.Mapping[str, t.Any]) -> Machine | Fault:
    """A fault where its hypervisor says no."""
    host, wanted = hypervisor.read(looked), asked.virtual
    if not host.answers:
        return _refused(asked, host)
    if not host.definition:
        return Machine(
            OFF,
            *_boots(asked, host, ""),
            written=host.written,
            unread=host.unread,
            host=host,
            definition=domain.made(asked.machine, wanted, host),
        )
    if whose := domain.foreign(host.definition, asked.machine):
        return virtual.not_ours(asked.machine, wanted, whose)
    differences = domain.differences(host.definition, asked.machine, wanted)
    definition = domain.changed(host.definition, asked.machine, wanted) if differences else host.definition
    if not host.autostart:
        differences.append("it is not started with its hypervisor")
    power = _STATES.get(host.state, host.state)
    seen = Machine(
        power,
        *_boots(asked, host, definition),
        written=host.written,
        unread=host.unread,
        host=host,
        definition=definition,
    )
    return dataclasses.replace(seen, differences=tuple(differences), left=tuple(_left(host, wanted)))


def _boots(asked: Asked, host: Hypervisor, definition: str) -> tuple[str, str]:
    """What it takes at its next start."""
    if (definition and domain.begins_by_network(definition)) or (asked.boot == NETWORK and not host.written):
        return NETWORK, ONCE
    return DISK, ""


def _refused(asked: Asked, host: Hypervisor) -> Fault:
    if host.lacking:
        return Fault(
            f"machine {asked.name}: its hypervisor lacks {', '.join(host.lacking)}",
            asked.virtual.on,
            "",
            "install that there",
        )
    if host.unreachable:
        next_step = "see that it has power, that its address is right, and that it lets Ansible in and become root"
        return Fault(
            f"machine {asked.name}: its hypervisor cannot be reached",
            asked.virtual.on,
            " ".join(host.unreachable.split())[:300],
            next_step,
        )
    return Fault(
        f"machine {asked.name}: libvirt does not answer on its hypervisor",
        asked.virtual.on,
        host.refused[:300],
        "start libvirtd there, or virtqemud",
    )


def _left(host: Hypervisor, wanted: Vm) -> list[str]:
    told = []
    has = domain.disk(host.definition)
    if (wanted.path and has != wanted.path) or (wanted.pool and not has.startswith(f"{wanted.pool}/")):
        told.append(
            f"its disk is {has or 'none'}, and not {wanted.path or f'in pool {wanted.pool}'}: disks are left as they are"
        )
    elif host.disk and gib(host.disk) != wanted.disk:
        told.append(f"its disk has {gib(host.disk)} GiB, and not {wanted.disk}: disks are left as they are")
    return told


def before(asked: Asked, seen: Machine) -> tuple[list[Step], list[str]]:
    """Steps that come before those of its power, and what is told."""
    told = list(seen.left)
    if not seen.host.definition:
        told += (
            [f"its disk {asked.virtual.path or asked.virtual.pool} is there already, and is taken as it is"]
            if seen.host.disk
            else []
        )
        size = f"{asked.virtual.memory} MiB, {asked.virtual.vcpus} CPUs, {asked.virtual.disk} GiB, bridge {asked.virtual.bridge}"
        return [Step(DEFINE, "new", f"hypervisor {asked.virtual.on} does not have it ({size})")], told
    if seen.differences:
        since = ", from its next start" if seen.power == ON else ""
        return [Step(DEFINE, "changed", ", ".join(seen.differences) + since)], told
    return [], told


def back(seen: Machine) -> list[Step]:
    """A start from the network has used up what it was told, also where the run that told it was killed."""
    if seen.power != ON or not seen.host.definition or not domain.begins_by_network(seen.definition):
        return []
    return [Step(BOOT, DISK, "it has started from the network, which was for once")]


def arguments(asked: Asked, seen: Seen, step: Step) -> dict[str, t.Any]:
    """What the hypervisor is given."""
    machine = t.cast(Machine, seen)
    if step.kind == POWER:
        return {"states": _ACTIONS[step.value]}
    if step.kind == REMOVE:
        return {"undefine": True, "disk": step.value}
    if step.kind == BOOT:
        return {"xml": domain.ordered(machine.definition, step.value == NETWORK)}
    new = {} if machine.host.disk else {"create": _disk(asked.virtual, machine.host)}
    return {"xml": machine.definition, **(new if step.value == "new" else {})}


def _disk(wanted: Vm, host: Hypervisor) -> list[str]:
    """The command that makes it; none of them touches one that is there."""
    form = "qcow2" if host.of_files else "raw"
    if wanted.pool:
        return [
            "virsh",
            "-c",
            "qemu:///system",
            "vol-create-as",
            wanted.pool,
            host.volume,
            f"{wanted.disk}G",
            "--format",
            form,
        ]
    return ["qemu-img", "create", "-q", "-f", form, wanted.path, f"{wanted.disk}G"]


def removal(asked: Asked, seen: Machine, joined: Joined, disks: bool) -> tuple[list[Step], list[str], list[Fault]]:
    """What is done to have it gone: steps, what is told, and why nothing is done."""
    if not seen.host.definition:
        return (
            [],
            [
                "its hypervisor does not have it"
                + (f"; its disk {asked.virtual.path} is left" if seen.host.disk and asked.virtual.path else "")
            ],
            [],
        )
    if joined.state != NO and not asked.named:
        known = joined.state == YES
        what = f"it runs a node of cluster {asked.machine.cluster}" if known else "whether it runs a node is not known"
        next_step = (
            "drain and delete the node, then ask"
            if known
            else "give its cluster's host credentials (hwaccel_connection), or ask"
        )
        next_step += f" for it by name: -e machine_boot_named={asked.name}"
        return (
            [],
            [],
            [Fault(f"machine {asked.name}: it is not removed: {what}", asked.virtual.on, joined.why, next_step)],
        )
    steps = [] if seen.power == OFF else [Step(POWER, OFF, "it is to be removed", OFF)]
    disk = domain.disk(seen.host.definition)
    why = f"with its disk {disk}" if disks and disk else f"its disk {disk} is left" if disk else "it has no disk"
    return [*steps, Step(REMOVE, disk if disks else "", why)], [], []
