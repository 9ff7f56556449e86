# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine as look.py of the role load_balancer has seen it."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import typing as t

#: Of a process whose start is not known to the tick, and of a clock that was set.
_PRECISION = 0.05


@dataclasses.dataclass(frozen=True)
class File:
    text: str
    mode: str
    uid: int
    gid: int
    changed_at: float


@dataclasses.dataclass(frozen=True)
class Unit:
    """loaded_at: when it last read its configuration, as far as that is known by time. limit: files that it may have open."""

    loaded: bool = False
    active: bool = False
    enabled: bool = False
    loaded_at: float = 0.0
    limit: int = 0


@dataclasses.dataclass(frozen=True)
class Listener:
    address: str
    port: int
    process: str


@dataclasses.dataclass(frozen=True)
class Server:
    backend: str
    name: str
    status: str
    sessions: int


@dataclasses.dataclass(frozen=True)
class Machine:
    """servers: of the HAProxy that runs. description: what its configuration is called. interfaces: names by address. libraries: of its Python."""

    family: str
    now: float
    files: dict[str, File]
    programs: tuple[str, ...]
    units: dict[str, Unit]
    listeners: tuple[Listener, ...]
    interfaces: dict[str, str]
    description: str
    servers: tuple[Server, ...]
    limit: int
    memory_kib: int
    free_bytes: int
    selinux: str
    selinux_booleans: dict[str, bool]
    firewalls: tuple[str, ...]
    collections: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    def unit(self, name: str) -> Unit:
        return self.units.get(name, Unit())

    def text(self, path: str) -> str:
        return self.files[path].text if path in self.files else ""

    def newer(self, path: str, loaded_at: float) -> bool:
        """Whether a file was changed after that. One from the future says nothing: the clock was set."""
        changed = self.files[path].changed_at if path in self.files else 0.0
        return loaded_at + _PRECISION < changed <= self.now


def read(printed: str) -> Machine:
    """Raises ValueError where look.py did not come to its end."""
    lines = [line for line in printed.splitlines() if line.startswith('{"family"')]
    if not lines:
        raise ValueError("look.py was ended before it had seen everything")
    seen: dict[str, t.Any] = json.loads(lines[-1])
    return Machine(
        **{
            **seen,
            "files": {path: File(**file) for path, file in seen["files"].items()},
            "units": {name: Unit(**unit) for name, unit in seen["units"].items()},
            "listeners": _all(Listener, seen["listeners"]),
            "servers": _all(Server, seen["servers"]),
            "programs": tuple(seen["programs"]),
            "firewalls": tuple(seen["firewalls"]),
            "libraries": tuple(seen["libraries"]),
        }
    )


def _all(kind: t.Any, entries: c.Iterable[dict[str, t.Any]]) -> tuple[t.Any, ...]:
    return tuple(kind(**entry) for entry in entries)
