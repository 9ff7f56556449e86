# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services of a boot server: the files of each, and the action after which it runs with the files on disk. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import dnsmasq, units
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.place import CONFIG, PROGRAM
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.services import Action

#: Files that dnsmasq reads again at a reload. It reads others only at its start.
_REREAD = (dnsmasq.HOSTS, dnsmasq.EXTRA_HOSTS, "clients.nft")


@dataclasses.dataclass(frozen=True)
class Service:
    """unit: of systemd. started: files that it reads at its start. reread: files that it reads again at a reload."""

    unit: str
    started: tuple[str, ...]
    reread: tuple[str, ...]


def of(contents: c.Mapping[str, str]) -> list[Service]:
    found = [
        Service(
            units.DNSMASQ,
            (f"{CONFIG}/dnsmasq.conf", units.path(units.DNSMASQ)),
            tuple(f"{CONFIG}/{name}" for name in _REREAD),
        )
    ]
    if units.path(units.NGINX) in contents:
        found.append(Service(units.NGINX, (units.path(units.NGINX),), (f"{CONFIG}/nginx.conf",)))
        found.append(Service(units.ONCE, (units.path(units.ONCE), PROGRAM), ()))
    return found


def due(observed: Host, service: Service, changes: list[str]) -> Action | None:
    """The action after which it runs with the files on disk, including changes that will be written; None if it does already."""
    unit = observed.unit(service.unit)
    loaded = max(unit.started_at, float(observed.fact(f"{service.unit}_loaded") or 0))
    newer = [
        path
        for path in service.started
        if path in changes or (path in observed.files and observed.files[path].changed_at > unit.started_at)
    ]
    changed = [
        path
        for path in service.reread
        if path in changes or (path in observed.files and observed.files[path].changed_at > loaded)
    ]
    if not unit.active:
        return Action(service.unit, "restarted", "it does not run")
    if newer:
        return Action(service.unit, "restarted", f"{some(newer)} is newer than its process")
    if changed:
        return Action(service.unit, "reloaded", f"{some(changed)} is newer than its last reload")
    return None if unit.enabled else Action(service.unit, "started", "it is not enabled")
