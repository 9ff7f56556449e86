# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Definitions of virtual machines: created, compared and changed. Pure."""

from __future__ import annotations

import uuid
from xml.etree import ElementTree

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.hypervisor import Hypervisor
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.vm import Vm
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine

#: Only domains with an element of this namespace in their metadata are changed.
NAMESPACE = "urn:hwaccel:gpu:machine_boot"
_MARK = f"{{{NAMESPACE}}}machine"
_NAMES = uuid.uuid5(uuid.NAMESPACE_URL, NAMESPACE)
_KIB = {"b": 1 / 1024, "bytes": 1 / 1024, "KiB": 1, "k": 1, "MiB": 1024, "M": 1024, "GiB": 1024**2, "G": 1024**2}
#: A machine with an empty disk boots from the network. After its installation the disk boots.
DISK_FIRST, NETWORK_FIRST = ("1", "2"), ("2", "1")
ElementTree.register_namespace("hwaccel", NAMESPACE)


def console(name: str) -> str:
    """Path of the log of a machine's console, on its hypervisor."""
    return f"/var/log/libvirt/qemu/{name}-console.log"


def made(machine: Machine, vm: Vm, host: Hypervisor) -> str:
    """A definition for a new machine."""
    top = ElementTree.Element("domain", type=host.kind)
    _sub(top, "name", machine.name)
    # A fixed UUID, so that the definition can be repeated.
    _sub(top, "uuid", str(uuid.uuid5(_NAMES, f"{machine.cluster}/{machine.name}/{machine.mac}")))
    ElementTree.SubElement(_sub(top, "metadata"), _MARK, cluster=machine.cluster)
    _sub(top, "memory", str(vm.memory), unit="MiB")
    _sub(top, "vcpu", str(vm.vcpus))
    _firmware(top, machine, vm)
    # libvirt's default is the oldest CPU model, which current installers do not support.
    _sub(top, "cpu", mode="host-passthrough" if host.passthrough else "maximum")
    _sub(top, "clock", offset="utc")
    for event, what in (("on_poweroff", "destroy"), ("on_reboot", "restart"), ("on_crash", "restart")):
        _sub(top, event, what)
    devices = _sub(top, "devices")
    _disk(devices, vm, host)
    _card(devices, machine, vm)
    serial = _sub(devices, "serial", type="pty")
    _sub(serial, "log", file=console(machine.name), append="on")
    _sub(devices, "console", type="pty")
    _sub(_sub(devices, "rng", model="virtio"), "backend", "/dev/urandom", model="random")
    return _text(top)


def _firmware(top: ElementTree.Element, machine: Machine, vm: Vm) -> None:
    uefi = machine.firmware == machines.UEFI
    system = _sub(top, "os", **({"firmware": "efi"} if uefi else {}))
    _sub(system, "type", "hvm", arch=machine.architecture, machine="q35")
    if uefi:
        firmware = _sub(system, "firmware")
        for feature in ("secure-boot", "enrolled-keys"):
            _sub(firmware, "feature", enabled="yes" if vm.secure_boot else "no", name=feature)
    features = _sub(top, "features")
    for feature in ("acpi", "apic"):
        _sub(features, feature)
    if vm.secure_boot:
        _sub(features, "smm", state="on")


def _disk(devices: ElementTree.Element, vm: Vm, host: Hypervisor) -> None:
    disk = _sub(devices, "disk", type="volume" if vm.pool else "file", device="disk")
    _sub(disk, "driver", name="qemu", type="qcow2" if host.of_files else "raw", cache="none", discard="unmap")
    _sub(disk, "source", **({"pool": vm.pool, "volume": host.volume} if vm.pool else {"file": vm.path}))
    _sub(disk, "target", dev="vda", bus="virtio")
    _sub(disk, "boot", order=DISK_FIRST[0])


def _card(devices: ElementTree.Element, machine: Machine, vm: Vm) -> None:
    card = _sub(devices, "interface", type="bridge")
    _sub(card, "mac", address=machine.mac)
    _sub(card, "source", bridge=vm.bridge)
    _sub(card, "model", type="virtio")
    _sub(card, "boot", order=DISK_FIRST[1])
    if machine.firmware == machines.UEFI:
        # The ROM of the card is iPXE. Without it the firmware boots from the network, like that of a server.
        _sub(card, "rom", bar="off")


def foreign(definition: str, machine: Machine) -> str:
    """To whom the definition belongs, empty if it is that of this machine."""
    mark = ElementTree.fromstring(definition).find(f"metadata/{_MARK}")
    if mark is None:
        return "this collection has not created it"
    return "" if mark.get("cluster") == machine.cluster else f"it belongs to cluster {mark.get('cluster')}"


def differences(definition: str, machine: Machine, vm: Vm) -> list[str]:
    """Differences from the desired definition that can be changed, each in words."""
    top = ElementTree.fromstring(definition)
    memory, card = top.find("memory"), _card_of(top, machine)
    found = []
    if (
        memory is not None
        and (mib := int(float(memory.text or 0) * _KIB[memory.get("unit", "KiB")] // 1024)) != vm.memory
    ):
        found.append(f"memory {mib} to {vm.memory} MiB")
    if (count := int(top.findtext("vcpu", "0"))) != vm.vcpus:
        found.append(f"virtual CPUs {count} to {vm.vcpus}")
    if (mac := _attribute(card, "mac", "address").lower()) != machine.mac:
        found.append(f"MAC {mac} to {machine.mac}")
    if (bridge := _attribute(card, "source", "bridge")) != vm.bridge:
        found.append(f"bridge {bridge or 'none'} to {vm.bridge}")
    return found


def changed(definition: str, machine: Machine, vm: Vm) -> str:
    """The definition without these differences. Everything else in it is kept."""
    top = ElementTree.fromstring(definition)
    for name in ("memory", "currentMemory"):
        for element in top.iterfind(name):
            element.text = str(vm.memory)
            element.set("unit", "MiB")
    for element in top.iterfind("vcpu"):
        element.text = str(vm.vcpus)
        element.attrib.pop("current", None)
    card = _card_of(top, machine)
    card.set("type", "bridge")
    for name, attributes in (("mac", {"address": machine.mac}), ("source", {"bridge": vm.bridge})):
        found = card.find(name)
        part = ElementTree.SubElement(card, name) if found is None else found
        part.attrib.clear()
        part.attrib.update(attributes)
    return _text(top)


def firmware(definition: str) -> tuple[str, bool]:
    """bios or uefi, and whether Secure Boot is enforced. Neither is changed, because the installed system depends on them."""
    top = ElementTree.fromstring(definition)
    system, loader = top.find("os"), top.find("os/loader")
    uefi = (system is not None and system.get("firmware") == "efi") or (
        loader is not None and loader.get("type") == "pflash"
    )
    secure = top.find("os/firmware/feature[@name='secure-boot'][@enabled='yes']") is not None or (
        loader is not None and loader.get("secure") == "yes"
    )
    return (machines.UEFI if uefi else machines.BIOS), secure


def disk(definition: str) -> str:
    """Path of its first disk, or pool and volume."""
    source = ElementTree.fromstring(definition).find("devices/disk[@device='disk']/source")
    if source is None:
        return ""
    return source.get("file") or source.get("dev") or "/".join(filter(None, (source.get("pool"), source.get("volume"))))


def begins_by_network(definition: str) -> bool:
    card = ElementTree.fromstring(definition).find("devices/interface/boot")
    return card is not None and card.get("order") == NETWORK_FIRST[1]


def ordered(definition: str, by_network: bool) -> str:
    """The definition with this boot order. With content on its disk, a network start ends at the first reboot, which would boot the network again."""
    top = ElementTree.fromstring(definition)
    for path, order in zip(
        ("devices/disk[@device='disk']", "devices/interface"), NETWORK_FIRST if by_network else DISK_FIRST, strict=True
    ):
        device = top.find(path)
        if device is not None:
            boot = device.find("boot")
            (ElementTree.SubElement(device, "boot") if boot is None else boot).set("order", order)
    for element in top.iterfind("on_reboot"):
        element.text = "destroy" if by_network else "restart"
    return _text(top)


def _card_of(top: ElementTree.Element, machine: Machine) -> ElementTree.Element:
    """The card with the machine's MAC address, otherwise its first card, whose address changes."""
    cards = top.findall("devices/interface")
    return next(
        (card for card in cards if _attribute(card, "mac", "address").lower() == machine.mac),
        cards[0] if cards else ElementTree.Element("interface"),
    )


def _attribute(element: ElementTree.Element, name: str, attribute: str) -> str:
    found = element.find(name)
    return "" if found is None else found.get(attribute, "")


def _sub(parent: ElementTree.Element, tag: str, text: str = "", /, **attributes: str) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, tag, attributes)
    element.text = text or None
    return element


def _text(top: ElementTree.Element) -> str:
    ElementTree.indent(top)
    return ElementTree.tostring(top, encoding="unicode")
