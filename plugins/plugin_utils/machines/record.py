# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was there before a host role changed a machine, as the role keeps it there for teardown. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.firewall import Opening
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host


def folder(role: str) -> str:
    return f"/var/lib/hwaccel-gpu/{role}"


def path(role: str) -> str:
    return f"{folder(role)}/record.json"


@dataclasses.dataclass(frozen=True)
class Service:
    """A unit of systemd as it was before."""

    active: bool = False
    enabled: bool = False


@dataclasses.dataclass(frozen=True)
class FileBefore:
    """existed: before the first run. written: SHA-256 of the text that the role has written last, empty where others have a part in it."""

    existed: bool
    written: str


@dataclasses.dataclass(frozen=True)
class Record:
    """packages: that the role has installed. openings: that it has made in firewalls. settings: what else it has switched, by name, as it was before.

    due: units that teardown has still to restart, as it has begun to put their files back.
    """

    packages: tuple[str, ...] = ()
    services: c.Mapping[str, Service] = dataclasses.field(default_factory=dict)
    openings: tuple[Opening, ...] = ()
    files: c.Mapping[str, FileBefore] = dataclasses.field(default_factory=dict)
    settings: c.Mapping[str, str] = dataclasses.field(default_factory=dict)
    due: tuple[str, ...] = ()

    def as_text(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"


def read(host: Host, role: str) -> Record | None:
    """None where the role has not run. Raises HwaccelError for a record that is damaged."""
    text = host.text(path(role))
    if not text:
        return None
    try:
        return _parsed(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HwaccelError(*_damaged(role, f"{type(error).__name__}: {error}")) from None


def faults(host: Host, role: str) -> list[Fault]:
    """That the record is damaged."""
    try:
        read(host, role)
    except HwaccelError as error:
        return list(error.faults)
    return []


def changed(host: Host, role: str, desired: Record) -> str:
    """The text that is to be written, empty where the machine has such a record, of whatever version."""
    return desired.as_text() if read(host, role) != desired else ""


def _parsed(found: dict[str, t.Any]) -> Record:
    services = found.get("services", {})
    if "active" in found:
        # Of the role load_balancer before 0.2.0.
        services = {
            unit: {key: unit in found[key] for key in ("active", "enabled")}
            for unit in (*found["active"], *found["enabled"])
        }
    return Record(
        tuple(found["packages"]),
        {unit: Service(**one) for unit, one in services.items()},
        tuple(found.get("openings", ())),
        {name: FileBefore(**one) for name, one in found.get("files", {}).items()},
        dict(found.get("settings", {})),
        tuple(found.get("due", ())),
    )


def _damaged(role: str, why: str) -> tuple[str, str, str, str]:
    next_step = f"put it back from a backup; or compare what is in {folder(role)} with the machine by hand, and remove the record"
    return "the record of what the role has changed is damaged", path(role), why, next_step
