# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was there before the role load_balancer, for teardown."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.machine import Machine
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.places import RECORD, UNITS


@dataclasses.dataclass(frozen=True)
class Record:
    """packages: that the role has installed. active, enabled: units that were so before. openings: in a firewall, that the role has made."""

    packages: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()
    openings: tuple[dict[str, t.Any], ...] = ()

    def as_text(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"


def damaged(machine: Machine) -> bool:
    text = machine.text(RECORD)
    return bool(text) and _parsed(text) is None


def read(machine: Machine) -> Record:
    """Empty where the role has not run."""
    return _parsed(machine.text(RECORD)) or Record()


def _parsed(text: str) -> Record | None:
    try:
        found = json.loads(text)
        return Record(**{key: tuple(found[key]) for key in ("packages", "active", "enabled", "openings")})
    except (ValueError, KeyError, TypeError):
        return None


def recorded(machine: Machine, packages: c.Iterable[str], openings: c.Iterable[dict[str, t.Any]]) -> Record:
    """The record before this run changes anything; what was there is asked once."""
    if machine.text(RECORD):
        before = read(machine)
        return dataclasses.replace(
            before, packages=tuple(sorted({*before.packages, *packages})), openings=_union(before.openings, openings)
        )
    active = tuple(name for name in UNITS if machine.unit(name).active)
    enabled = tuple(name for name in UNITS if machine.unit(name).enabled)
    return Record(tuple(sorted(packages)), active, enabled, tuple(openings))


def _union(
    before: c.Iterable[dict[str, t.Any]], openings: c.Iterable[dict[str, t.Any]]
) -> tuple[dict[str, t.Any], ...]:
    return tuple({json.dumps(opening, sort_keys=True): opening for opening in (*before, *openings)}.values())
