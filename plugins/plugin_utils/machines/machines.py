# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of the inventory, as playbooks pass them to roles. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import ipaddress
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

Address: t.TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"
Network: t.TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"
BOOTSTRAP, MASTER, WORKER = "bootstrap", "master", "worker"
BIOS, UEFI = "bios", "uefi"
X86_64, AARCH64 = "x86_64", "aarch64"
FIRMWARES, ARCHITECTURES = (BIOS, UEFI), (X86_64, AARCH64)
#: Keys that all roles use. Other keys belong to the role.
KEYS = ("name", "cluster", "role", "address", "mac", "firmware", "architecture")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_ROLE = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
#: Values that Ansible's filter `bool` accepts, and those that are not set.
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0", "")
_NEVER_A_MACHINE = ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff")


@dataclasses.dataclass(frozen=True)
class Machine:
    """mac: six lower-case pairs with colons, empty if unknown. firmware: empty if it can be either. more: keys of the role."""

    name: str
    cluster: str
    role: str
    address: Address
    mac: str = ""
    firmware: str = ""
    architecture: str = X86_64
    more: c.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)


def is_label(text: str) -> bool:
    """Whether it is a label of a DNS name, in lower case as Kubernetes requires for nodes."""
    return bool(_LABEL.fullmatch(text))


def is_name(text: str) -> bool:
    """Whether it is a DNS name: labels with dots between them, 253 characters at most."""
    return len(text) <= 253 and all(is_label(label) for label in text.split("."))


def truth(value: t.Any) -> bool | None:
    """A Boolean that may be text, as in an INI inventory or on the command line. None if it is neither true nor false."""
    text = _text(value).lower()
    return True if text in _TRUE else False if text in _FALSE else None


def read(given: t.Any, variable: str, needs: c.Sequence[str] = ()) -> tuple[list[Machine], list[Fault]]:
    """Machines of a list of dictionaries, and all problems of the list. A machine with problems is skipped.

    variable: name of the list, for messages. needs: which of mac, firmware and architecture must be set.
    """
    if not isinstance(given, (list, tuple)):
        return [], [
            Fault(
                "the list of machines cannot be read",
                variable,
                f"it is {type(given).__name__}",
                "make it a list of dictionaries",
            )
        ]
    found: list[Machine] = []
    faults: list[Fault] = []
    for number, entry in enumerate(given):
        where = f"{variable}[{number}]"
        if not isinstance(entry, c.Mapping):
            faults.append(
                Fault(
                    "a machine cannot be read",
                    where,
                    f"it is {type(entry).__name__}",
                    "make it a dictionary with name, role and address",
                )
            )
            continue
        machine, wrong = _machine(entry, where, needs)
        faults += wrong
        if machine:
            found.append(machine)
    return found, faults + _duplicates(found, variable)


def _machine(entry: c.Mapping[str, t.Any], where: str, needs: c.Sequence[str]) -> tuple[Machine | None, list[Fault]]:
    text = {key: _text(entry.get(key)) for key in KEYS}
    whose = f"machine {text['name'] or '(no name)'}"
    faults = [
        Fault(f"{whose} has no {key}", where, "", f"set its {key}{_VARIABLES.get(key, '')}")
        for key in ("name", "role", "address", *needs)
        if not text[key]
    ]

    def wrong(key: str, is_not: str, next_step: str) -> None:
        faults.append(Fault(f"{whose}: its {key} {text[key]} is {is_not}", where, "", next_step))

    if text["name"] and not is_label(text["name"]):
        wrong(
            "name",
            "not a DNS label",
            "use at most 63 lower-case letters, digits and hyphens, without a hyphen at either end",
        )
    if text["role"] and not _ROLE.fullmatch(text["role"]):
        wrong("role", "not the name of a role", f"use {BOOTSTRAP}, {MASTER}, {WORKER} or a custom name in lower case")
    address = _address(text["address"])
    if text["address"] and address is None:
        wrong(
            "address",
            "not an IP address",
            "write it as 10.0.0.11, without a prefix length; set hwaccel_address if ansible_host is a name",
        )
    mac = text["mac"].lower().replace("-", ":")
    if mac and (not _MAC.fullmatch(mac) or mac in _NEVER_A_MACHINE or int(mac[:2], 16) & 1):
        wrong(
            "mac",
            "not the MAC address of a machine",
            "write six pairs of hexadecimal digits, such as 52:54:00:77:00:11, in quotes",
        )
    for key, known in (("firmware", FIRMWARES), ("architecture", ARCHITECTURES)):
        if text[key] and text[key] not in known:
            wrong(key, f"unknown (known: {', '.join(known)})", f"set hwaccel_{key} to one of these")
    if faults or address is None:
        return None, faults
    more = {key: value for key, value in entry.items() if key not in KEYS}
    architecture = text["architecture"] or X86_64
    return Machine(text["name"], text["cluster"], text["role"], address, mac, text["firmware"], architecture, more), []


def _duplicates(machines: list[Machine], variable: str) -> list[Fault]:
    keys: dict[str, c.Callable[[Machine], str]] = {
        "name": lambda machine: f"{machine.name} in cluster {machine.cluster}" if machine.cluster else machine.name,
        "address": lambda machine: str(machine.address),
        "mac": lambda machine: machine.mac,
    }
    # A bootstrap machine can be another one afterwards.
    first = [machine.more.get("host") for machine in machines if machine.role == BOOTSTRAP]
    ours = [one for one in machines if one.role == BOOTSTRAP or "host" not in one.more or one.more["host"] not in first]
    faults = []
    for key, value_of in keys.items():
        owners: dict[str, list[str]] = {}
        for machine in ours:
            owners.setdefault(value_of(machine), []).append(machine.name)
        for value, names in owners.items():
            if value and len(names) > 1:
                faults.append(
                    Fault(
                        f"{len(names)} machines have the {key} {value}",
                        variable,
                        ", ".join(names),
                        f"give each a unique {key}",
                    )
                )
    return faults


#: Variables from which playbooks read these keys, for messages.
_VARIABLES = {key: f" (hwaccel_{key})" for key in ("address", "mac", "firmware", "architecture")}


def _text(value: t.Any) -> str:
    """A YAML value as text. A MAC address without quotes may be a number, which is then reported."""
    return "" if value is None else str(value).strip()


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
