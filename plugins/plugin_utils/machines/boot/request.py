# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request for a machine, from its variables, and its problems. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import ipaddress
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines, oneline
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import virtual, vm
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.vm import Vm
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine

REDFISH, IPMI, LIBVIRT = "redfish", "ipmi", "libvirt"
PROVIDERS = (REDFISH, IPMI, LIBVIRT)
NETWORK, DISK, MEDIA = "network", "disk", "media"
BOOTS = (NETWORK, DISK, MEDIA)
ON, OFF, CYCLE = "on", "off", "cycle"
POWERS = (ON, OFF, CYCLE)
VARIABLE = "machine_boot"
#: Collection with the modules for Redfish. Before this version redfish_info had no option for a CA.
COLLECTION, COLLECTION_SINCE = "community.general", (10, 6)


@dataclasses.dataclass(frozen=True)
class Bmc:
    """address: with a port if it is not the default. system: which of several systems, empty if there is only one."""

    address: str = ""
    username: str = ""
    has_password: bool = False
    system: str = ""
    verify: bool = True


@dataclasses.dataclass(frozen=True)
class BootRequest:
    """The request for one machine. named: whether it was requested by name. logs: whether a boot server's logs can be read.

    media: address of an image. shutdown: seconds for the shutdown of its operating system before its power is cut. nodes: names that its node may have.
    """

    machine: Machine
    provider: str
    boot: str
    power: str
    named: bool = False
    logs: bool = False
    http: bool = False
    media: str = ""
    shutdown: int = 0
    nodes: tuple[str, ...] = ()
    bmc: Bmc = dataclasses.field(default_factory=Bmc)
    vm: Vm | None = None

    @property
    def virtual(self) -> Vm:
        """Its virtual machine. Raises ValueError if it has none."""
        if self.vm is None:
            raise ValueError(f"{self.name} is not a virtual machine")
        return self.vm

    @property
    def reached(self) -> str:
        """Where its power is controlled: its BMC or hypervisor."""
        return self.vm.on if self.vm else self.bmc.address

    @property
    def name(self) -> str:
        return self.machine.name


def read(entry: c.Mapping[str, t.Any]) -> BootRequest:
    """The request for a machine without `faults`. Raises ValueError otherwise."""
    found, wrong = machines.read([entry], VARIABLE)
    if wrong:
        raise ValueError("; ".join(map(str, wrong)))
    machine, more = found[0], found[0].more
    bmc = Bmc(**{field.name: more["bmc"][field.name] for field in dataclasses.fields(Bmc)})
    keys = ("provider", "boot", "power", "named", "logs", "http", "media")
    virtual_ = vm.read(machine, more["vm"]) if more["provider"] == LIBVIRT else None
    # ansible-core before 2.19 converts it to text.
    shutdown = int(more.get("shutdown", 0))
    nodes = tuple(more.get("nodes") or [machine.name])
    return BootRequest(
        machine, bmc=bmc, vm=virtual_, shutdown=shutdown, nodes=nodes, **{key: more[key] for key in keys if key in more}
    )


def faults(entries: c.Sequence[c.Mapping[str, t.Any]], versions: c.Mapping[str, str]) -> list[Fault]:
    """All problems of the requests for all machines, before any machine is changed. versions: of collections, empty if one is not installed."""
    found, wrong = machines.read(list(entries), VARIABLE)
    for machine in found:
        more = machine.more
        wrong += _known(machine, more)
    virtuals = [machine for machine in found if machine.more["provider"] == LIBVIRT]
    managed = [machine for machine in found if machine.more["provider"] != LIBVIRT]
    for machine in managed:
        wrong += _bmc(machine, machine.more)
    wrong = [fault for entry in entries for fault in oneline.faults(VARIABLE, _variables(entry))] + wrong
    wrong += _shared(managed) + virtual.faults(virtuals, versions.get(virtual.COLLECTION, ""))
    return wrong + (
        _lacking(versions.get(COLLECTION, "")) if any(machine.more["provider"] == REDFISH for machine in found) else []
    )


def _variables(entry: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The request without the observed state of the hypervisor."""
    return {**entry, "vm": {key: value for key, value in (entry.get("vm") or {}).items() if key != "found"}}


def _fault(machine: Machine, what: str, why: str, next_step: str) -> Fault:
    return Fault(f"machine {machine.name}: {what}", "", why, next_step)


def _known(machine: Machine, more: c.Mapping[str, t.Any]) -> list[Fault]:
    wrong = []
    for key, known in (("provider", PROVIDERS), ("boot", BOOTS), ("power", POWERS)):
        if more[key] not in known:
            what = f"its {key} {more[key]} is unknown" if more[key] else f"it has no {key}"
            wrong.append(_fault(machine, what, "", f"set {VARIABLE}_{key} to one of {', '.join(known)}"))
    if more["boot"] == MEDIA and not more["media"]:
        wrong.append(
            _fault(
                machine,
                "boot from media is requested without an image",
                "",
                f"set {VARIABLE}_media_url to the address of an image",
            )
        )
    if more["provider"] == IPMI and more["http"]:
        wrong.append(
            _fault(
                machine,
                "IPMI does not support HTTP boot",
                "",
                f"set {VARIABLE}_http to false, or {VARIABLE}_provider to {REDFISH}",
            )
        )
    if more["provider"] == IPMI and more["boot"] == MEDIA:
        wrong.append(
            _fault(
                machine,
                "IPMI does not support virtual media",
                "",
                f"set {VARIABLE}_provider to {REDFISH}, or {VARIABLE}_boot to {NETWORK}",
            )
        )
    return wrong


def _bmc(machine: Machine, more: c.Mapping[str, t.Any]) -> list[Fault]:
    bmc, wrong = more["bmc"], []
    if not bmc["address"]:
        wrong.append(_fault(machine, "the address of its BMC is missing", "", "set hwaccel_bmc_address"))
    elif not _is_address(bmc["address"]):
        wrong.append(
            _fault(
                machine,
                f"{bmc['address']} is not the address of a BMC",
                "",
                "set hwaccel_bmc_address to a name or an address, with :port if it is not the default",
            )
        )
    missing = [
        key
        for key, there in (("hwaccel_bmc_username", bmc["username"]), ("hwaccel_bmc_password", bmc["has_password"]))
        if not there
    ]
    if missing:
        wrong.append(
            _fault(
                machine,
                "credentials of its BMC are missing",
                "",
                f"set {' and '.join(missing)}, the password from a vault",
            )
        )
    return wrong


def _is_address(text: str) -> bool:
    host, _colon, port = text.rpartition(":") if text.count(":") == 1 or "]:" in text else (text, "", "")
    if port and not (port.isdigit() and 0 < int(port) < 65536):
        return False
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return machines.is_name(host.lower())
    return True


def _lacking(version: str) -> list[Fault]:
    since = ".".join(map(str, COLLECTION_SINCE))
    if version and tuple(int(part) for part in version.split(".")[:2]) >= COLLECTION_SINCE:
        return []
    why = f"version {version} is too old, {since} or newer is required" if version else "it is not installed"
    return [
        Fault(
            f"Redfish needs the collection {COLLECTION}",
            "",
            why,
            "ansible-galaxy collection install -r requirements-metal.yml",
        )
    ]


def _shared(found: c.Sequence[Machine]) -> list[Fault]:
    """Of two machines with the same BMC and system, each would get the requests for the other."""
    owners: dict[tuple[str, str], list[str]] = {}
    for machine in found:
        bmc = machine.more["bmc"]
        if bmc["address"]:
            owners.setdefault((bmc["address"], bmc["system"]), []).append(machine.name)
    return [
        Fault(
            f"{len(names)} machines have the BMC {address}",
            "",
            ", ".join(names),
            "set each its own hwaccel_bmc_address, or hwaccel_bmc_system",
        )
        for (address, _system), names in owners.items()
        if len(names) > 1
    ]
