# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The original state of a machine, which a host role records there for teardown. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.firewall import Opening
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, digest


def folder(role: str) -> str:
    return f"/var/lib/hwaccel-gpu/{role}"


def path(role: str) -> str:
    return f"{folder(role)}/record.json"


@dataclasses.dataclass(frozen=True)
class Service:
    """The original state of a systemd unit."""

    active: bool = False
    enabled: bool = False


@dataclasses.dataclass(frozen=True)
class FileBefore:
    """existed: before the first run. written: SHA-256 of the text that the role has written last, empty if others have changed it in between.

    original: the text before, of a role that keeps no copy of the file.
    """

    existed: bool
    written: str
    original: str | None = None


@dataclasses.dataclass(frozen=True)
class Record:
    """packages: installed by the role. openings: made by it in firewalls. settings: original values of other settings, by name.

    due: units that teardown has to restart, because it has begun to restore their files.
    """

    packages: tuple[str, ...] = ()
    services: c.Mapping[str, Service] = dataclasses.field(default_factory=dict)
    openings: tuple[Opening, ...] = ()
    files: c.Mapping[str, FileBefore] = dataclasses.field(default_factory=dict)
    settings: c.Mapping[str, str] = dataclasses.field(default_factory=dict)
    due: tuple[str, ...] = ()

    def service(self, unit: str) -> Service:
        return self.services.get(unit, Service())

    def as_text(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"


def read(host: Host, role: str) -> Record | None:
    """None if the role has not run. Raises HwaccelError for a damaged record."""
    text = host.text(path(role))
    if not text:
        return None
    try:
        return _parsed(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HwaccelError(*_damaged(role, f"{type(error).__name__}: {error}")) from None


def faults(host: Host, role: str) -> list[Fault]:
    """The problem of a damaged record."""
    try:
        read(host, role)
    except HwaccelError as error:
        return list(error.faults)
    return []


def changed(host: Host, role: str, desired: Record) -> str:
    """The text to write, empty if the machine has an equal record, of any version."""
    return desired.as_text() if read(host, role) != desired else ""


def services(host: Host, units: c.Iterable[str]) -> dict[str, Service]:
    """The state of these units, for the record of the first run: the original state can be observed only then."""
    return {name: Service(host.unit(name).active, host.unit(name).enabled) for name in units}


def restorable(host: Host, kept: Record) -> tuple[list[str], dict[str, str], list[str]]:
    """Paths of files and programs that are removed, original texts of files by path, and why others stay."""
    ours, originals, others = [], {}, []
    for path, before in kept.files.items():
        if path not in host.files and not host.checksums.get(path):
            continue
        if host.text(path) == before.original:
            # An earlier run has restored it.
            continue
        if before.existed and before.original is None:
            others.append(f"{path} stays, as it was there before")
        elif path in host.files and digest(host.text(path)) != before.written:
            others.append(f"{path} stays, as others have changed it")
        elif before.original is not None:
            originals[path] = before.original
        else:
            ours.append(path)
    return ours, originals, others


def _parsed(found: dict[str, t.Any]) -> Record:
    before = found.get("services", {})
    if "active" in found:
        # The format of the role load_balancer before 0.2.0.
        before = {
            unit: {key: unit in found[key] for key in ("active", "enabled")}
            for unit in (*found["active"], *found["enabled"])
        }
    return Record(
        tuple(found["packages"]),
        {unit: Service(**one) for unit, one in before.items()},
        tuple(found.get("openings", ())),
        {name: FileBefore(**one) for name, one in found.get("files", {}).items()},
        dict(found.get("settings", {})),
        tuple(found.get("due", ())),
    )


def _damaged(role: str, why: str) -> tuple[str, str, str, str]:
    next_step = f"restore it from a backup; or compare {folder(role)} with the machine, and remove the record"
    return "the record of the role's changes is damaged", path(role), why, next_step
