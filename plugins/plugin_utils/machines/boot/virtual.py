# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of virtual machines, in their variables and on their hypervisors. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import domain, vm
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.hypervisor import Hypervisor, gib
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.vm import Vm
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine

COLLECTION = "community.libvirt"
_UNITS = {"memory": "MiB of memory", "vcpus": "virtual CPUs", "disk": "GiB of disk"}
_PACKAGES = "libvirt-clients (RedHat: libvirt-client), qemu-utils (qemu-img), python3-libvirt, python3-lxml"
Found = c.Sequence[tuple[Machine, Vm, Hypervisor]]
#: The problem, its reason, and the next step.
_Row = tuple[str, str, str]


def faults(found: c.Sequence[Machine], version: str) -> list[Fault]:
    """Problems of all machines. version: of the collection, empty if it is not installed."""
    wrong: list[Fault] = []
    answered: list[tuple[Machine, Vm, Hypervisor]] = []
    for machine in found:
        wrong += _variables(machine, machine.more["vm"])
        desired = vm.read(machine, machine.more["vm"])
        if desired.host and desired.host.lacking:
            why = "it creates virtual machines"
            wrong.append(
                Fault(
                    f"hypervisor {desired.on} lacks {', '.join(desired.host.lacking)}",
                    "",
                    why,
                    f"install there: {_PACKAGES}",
                )
            )
        elif desired.host and desired.host.answers:
            answered.append((machine, desired, desired.host))
            wrong += _host(machine, desired, desired.host)
    wrong += _together(answered)
    if found and not version:
        next_step = "ansible-galaxy collection install -r requirements-metal.yml"
        wrong.append(Fault(f"virtual machines need the collection {COLLECTION}", "", "it is not installed", next_step))
    # All machines of a hypervisor have the same problems there, which are reported once.
    return list(dict.fromkeys(wrong))


def _fault(machine: Machine, what: str, why: str, next_step: str, where: str = "") -> Fault:
    return Fault(f"machine {machine.name}: {what}", where, why, next_step)


def _variables(machine: Machine, entry: c.Mapping[str, t.Any]) -> list[Fault]:
    rows = (*_placement(entry), *_hardware(machine, entry), *_source(entry))
    return [_fault(machine, *row) for row in rows] + _sizes(machine, entry)


def _placement(entry: c.Mapping[str, t.Any]) -> c.Iterator[_Row]:
    if not entry["hypervisor"]:
        yield (
            "it has no hypervisor",
            "",
            "set hwaccel_hypervisor to a host of the group hypervisors",
        )
    elif not entry["known"]:
        what = f"its hypervisor {entry['hypervisor']} is not a host of the group hypervisors"
        yield what, "", "add it there, or correct hwaccel_hypervisor"


def _hardware(machine: Machine, entry: c.Mapping[str, t.Any]) -> c.Iterator[_Row]:
    if not machine.mac:
        yield "it has no mac", "", "set hwaccel_mac, from which the virtual machine gets its address"
    if not machine.firmware:
        yield "it has no firmware", "", f"set hwaccel_firmware to {machines.BIOS} or {machines.UEFI}"
    if machine.architecture != machines.X86_64:
        what = f"virtual machines of {machine.architecture} are not supported"
        yield what, "", f"set hwaccel_architecture to {machines.X86_64}"
    if entry["secure_boot"] and machine.firmware == machines.BIOS:
        step = "set hwaccel_firmware to uefi, or hwaccel_vm_secure_boot to false"
        yield "Secure Boot needs UEFI", "its firmware is bios", step
    if not entry["bridge"]:
        step = "set hwaccel_vm_bridge to a bridge of its hypervisor on the machine network"
        yield "it has no bridge", "", step
    if machine.more["boot"] == "media" or machine.more["http"]:
        what = "virtual machines support only PXE boot and boot from disk"
        yield what, "", "set machine_boot_boot to network or disk, and machine_boot_http to false"


def _source(entry: c.Mapping[str, t.Any]) -> c.Iterator[_Row]:
    """Problems of the location of its disk."""
    if entry["path"] and entry["pool"]:
        what = "its disk is both at a path and in a pool"
        yield what, "", "set one of hwaccel_vm_disk_path and hwaccel_vm_pool"
    elif entry["path"] and not entry["path"].startswith("/"):
        what = f"the path of its disk {entry['path']} is not absolute"
        yield what, "", "set hwaccel_vm_disk_path to an absolute path"


def _sizes(machine: Machine, entry: c.Mapping[str, t.Any]) -> list[Fault]:
    wrong = []
    for key, least in vm.minima(machine).items():
        given = vm.size(entry[key])
        if given is None:
            wrong.append(
                _fault(
                    machine,
                    f"its {key} {entry[key]} is not a size",
                    "",
                    f"set hwaccel_vm_{key} to a whole number, {_UNITS[key]}",
                )
            )
        elif given and given < least and not entry["small"]:
            next_step = f"set hwaccel_vm_{key} to {least} or more, or allow it: -e machine_boot_vm_small={machine.name}"
            wrong.append(
                _fault(machine, f"{given} {_UNITS[key]} are not enough", f"a {machine.role} needs {least}", next_step)
            )
    return wrong


def not_ours(machine: Machine, desired: Vm, whose: str) -> Fault:
    next_step = "remove or rename that one, or give this machine another name or hypervisor"
    return _fault(
        machine,
        "a virtual machine of this name exists that does not belong to this machine",
        f"{whose}, so it is not changed",
        next_step,
        desired.on,
    )


def _host(machine: Machine, desired: Vm, host: Hypervisor) -> list[Fault]:
    """Problems on its hypervisor."""
    if host.definition and (whose := domain.foreign(host.definition, machine)):
        return [not_ours(machine, desired, whose)]
    wrong = []
    name, mode = host.networks.get(desired.bridge, ("", "bridge"))
    if desired.bridge and desired.bridge not in host.bridges:
        why = f"its bridges are {', '.join(host.bridges)}" if host.bridges else "it has no bridge"
        wrong.append(
            _fault(
                machine,
                f"{desired.bridge} is not a bridge of its hypervisor",
                why,
                "create it there, with a port on the machine network",
                desired.on,
            )
        )
    elif mode != "bridge":
        next_step = "set hwaccel_vm_bridge to one that has a port on the machine network"
        why = f"it belongs to libvirt's network {name} ({mode})"
        wrong.append(
            _fault(machine, f"bridge {desired.bridge} is not on the machine network", why, next_step, desired.on)
        )
    if machine.firmware == machines.UEFI and not (host.secure if desired.secure_boot else host.efi):
        what = "UEFI with Secure Boot" if desired.secure_boot else "UEFI"
        wrong.append(
            _fault(machine, f"its hypervisor has no {what}", "", "install there: ovmf (RedHat: edk2-ovmf)", desired.on)
        )
    if (
        host.definition
        and machine.firmware
        and (has := domain.firmware(host.definition)) != (machine.firmware, desired.secure_boot)
    ):
        is_ = f"{has[0]}{' with Secure Boot' if has[1] else ''}"
        next_step = "set the observed firmware, or remove the machine (machine_boot_entry=teardown) and run again to recreate it"
        wrong.append(
            _fault(
                machine,
                f"its firmware is {is_}, which cannot be changed",
                "the installed system depends on it",
                next_step,
                desired.on,
            )
        )
    return wrong + _disk(machine, desired, host)


def _disk(machine: Machine, desired: Vm, host: Hypervisor) -> list[Fault]:
    if not host.place:
        what = (
            f"its hypervisor has no pool {desired.pool}"
            if desired.pool
            else f"its hypervisor has no folder for {desired.path}"
        )
        return [
            _fault(machine, what, "", "create it there, or correct hwaccel_vm_pool or hwaccel_vm_disk_path", desired.on)
        ]
    if (user := host.users.get(desired.path, machine.name)) != machine.name:
        return [
            _fault(
                machine,
                f"its disk {desired.path} belongs to {user}",
                "",
                "give each machine a disk of its own (hwaccel_vm_disk_path)",
                desired.on,
            )
        ]
    return []


def _together(found: Found) -> list[Fault]:
    """Resources that are enough for each machine, but not for all together."""
    wrong: list[Fault] = []
    for on in dict.fromkeys(desired.on for _machine, desired, _host in found):
        here = [one for one in found if one[1].on == on]
        wrong += _memory(on, here) + _room(on, here)
    return wrong


def _memory(on: str, here: Found) -> list[Fault]:
    starting = [
        (machine, desired, host)
        for machine, desired, host in here
        if machine.more["power"] != "off" and host.state != "running"
    ]
    needed, free = (
        sum(desired.memory for _machine, desired, _host in starting),
        min((host.memory for _machine, _desired, host in starting), default=0) // 1024**2,
    )
    if needed <= free:
        return []
    next_step = "add memory, stop other machines there, or distribute these over more hypervisors (hwaccel_hypervisor)"
    return [
        Fault(
            f"hypervisor {on} has too little memory for {_names(starting)}",
            "",
            f"they need {needed} MiB, and {free} MiB are free",
            next_step,
        )
    ]


def _room(on: str, here: Found) -> list[Fault]:
    """Space for disks that are created. Files grow up to their size, so all of it must be free."""
    wrong = []
    for path in dict.fromkeys(desired.path for _machine, desired, _host in here if desired.path):
        if len(owners := [one for one in here if one[1].path == path]) > 1:
            wrong.append(
                Fault(
                    f"{len(owners)} machines have the disk {path}",
                    on,
                    _names(owners),
                    "give each a disk of its own (hwaccel_vm_disk_path)",
                )
            )
    new = [one for one in here if not one[2].disk and one[2].place]
    for place in dict.fromkeys(host.place for _machine, _desired, host in new):
        there = [one for one in new if one[2].place == place]
        needed, free = (
            sum(desired.disk for _machine, desired, _host in there),
            gib(min(host.room for _machine, _desired, host in there)),
        )
        if needed > free:
            what, why = (
                f"hypervisor {on} has too little space in {place} for the disks of {_names(there)}",
                f"they need {needed} GiB, and {free} GiB are free",
            )
            wrong.append(
                Fault(what, "", why, "free space there, or move disks (hwaccel_vm_pool, hwaccel_vm_disk_path)")
            )
    return wrong


def _names(found: Found) -> str:
    return ", ".join(machine.name for machine, _desired, _host in found)
