# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine as look.sh of a host role has seen it."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
import shlex

Version = tuple[int, ...]
_NUMBERS = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+)")


@dataclasses.dataclass(frozen=True)
class File:
    """mode: in octal digits. changed_at: when contents, mode or name last changed, in seconds since 1970."""

    path: str
    text: str
    mode: str = "0644"
    uid: int = 0
    gid: int = 0
    changed_at: float = 0.0


@dataclasses.dataclass(frozen=True)
class Command:
    status: int
    output: str
    error: str = ""


@dataclasses.dataclass(frozen=True)
class Unit:
    """started_at: when its main process was started, in seconds since 1970, 0 where there is none."""

    loaded: bool = False
    active: bool = False
    enabled: bool = False
    started_at: float = 0.0


@dataclasses.dataclass
class Host:
    """facts: texts by name, empty where there is nothing. imports: files that containerd's configuration imports, in their order."""

    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    files: dict[str, File] = dataclasses.field(default_factory=dict)
    commands: dict[str, Command] = dataclasses.field(default_factory=dict)
    units: dict[str, Unit] = dataclasses.field(default_factory=dict)
    imports: list[str] = dataclasses.field(default_factory=list)

    def fact(self, name: str) -> str:
        return self.facts.get(name, "").strip()

    def text(self, path: str) -> str:
        """Empty where the file is not there."""
        return self.files[path].text if path in self.files else ""

    def unit(self, name: str) -> Unit:
        return self.units.get(name, Unit())

    def version(self, command: str) -> Version:
        """Of a program that is asked for its version, empty where it is not there or does not tell."""
        return version_of(self.commands[command].output) if command in self.commands else ()

    @property
    def os_release(self) -> dict[str, str]:
        entries = (line.split("=", 1) for line in self.fact("os_release").splitlines() if "=" in line)
        return {key: " ".join(shlex.split(value)) for key, value in entries}


def version_of(text: str) -> Version:
    """The first version in a text, such as (1, 6, 20)."""
    found = _NUMBERS.search(text)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def read(printed: str) -> Host:
    """printed: by look.sh. Other lines are passed over: sudo and ssh may have something to say. Raises ValueError where the end is missing."""
    host = Host()
    starts: dict[str, float] = {}
    ended = False
    for line in printed.splitlines():
        kind, _blank, rest = line.partition(" ")
        if kind == "fact":
            name, _blank, value = rest.partition(" ")
            host.facts[name] = _decoded(value)
        elif kind == "file":
            mode, uid, gid, changed, text, path = rest.split(" ", 5)
            host.files[path] = File(path, _decoded(text[1:]), mode.zfill(4), int(uid), int(gid), float(changed))
        elif kind == "command":
            name, status, output, error = rest.split(" ")
            host.commands[name] = Command(int(status), _decoded(output[1:]), _decoded(error[1:]))
        elif kind == "unit":
            name, _blank, properties = rest.partition(" ")
            told = dict(entry.split("=", 1) for entry in properties.split() if "=" in entry)
            starts[name] = float(told.get("ExecMainStartTimestampMonotonic") or 0) / 1e6
            host.units[name] = Unit(
                told.get("LoadState") == "loaded",
                told.get("ActiveState") == "active",
                told.get("UnitFileState") == "enabled",
            )
        elif kind == "import":
            host.imports.append(rest)
        elif kind == "end":
            ended = True
    if not ended:
        raise ValueError("look.sh was ended before it had seen everything")
    booted = float(host.fact("booted_at") or 0)
    for name, started in starts.items():
        if started and host.units[name].active:
            host.units[name] = dataclasses.replace(host.units[name], started_at=booted + started)
    return host


def _decoded(text: str) -> str:
    # Surrogates keep bytes that are no UTF-8: such a file is compared, and refused by whoever has to understand it.
    return base64.b64decode(text).decode("utf-8", "surrogateescape")


def digest(text: str) -> str:
    """As sha256sum gives it of a file with this text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
