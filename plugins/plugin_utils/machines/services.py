# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions after which services of a machine run with the files on disk. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import Record


@dataclasses.dataclass(frozen=True)
class Action:
    """What tasks_from: act of the role machine does with one unit of systemd.

    state: of the module systemd. enabled: whether the unit is started at boot, None if that is not changed.
    health: a command that succeeds when the service is ready; if empty, systemd is queried.
    """

    unit: str
    state: str
    why: str
    enabled: bool | None = True
    health: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "health": list(self.health)}


def given_back(host: Host, units: c.Iterable[str], record: Record) -> list[Action]:
    """Actions that restore the original state of these units, if they exist."""
    before = {unit: record.service(unit) for unit in units if host.unit(unit).loaded}
    why = "its original configuration is restored"
    return [Action(unit, "restarted" if one.active else "stopped", why, one.enabled) for unit, one in before.items()]
