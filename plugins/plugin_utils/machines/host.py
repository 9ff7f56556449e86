# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observed state of a machine, and the request for it: output and input of roles/machine/files/look.py."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import json
import re
import shlex
import typing as t

Version = tuple[int, ...]
H = t.TypeVar("H", bound="Host")
_NUMBERS = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+)")
_BEGIN = '{"observed": '
#: Precision of process start times in seconds: they have the resolution of a tick, and the clock may have been set.
_PRECISION = 0.05


@dataclasses.dataclass(frozen=True)
class CommandRequest:
    """Run only if its program is installed, the unit `active` runs, `file` exists, and `no_file` does not exist. Empty conditions do not count."""

    name: str
    argv: tuple[str, ...]
    active: str = ""
    file: str = ""
    no_file: str = ""


@dataclasses.dataclass(frozen=True)
class Request:
    """What is observed in addition to kernel, system, clocks and SELinux.

    files: read as a whole. patterns: of more such files. imports: configurations of containerd, whose imports are also read. units: of systemd.
    checksums: files, and folders with everything below them except `excluded`. sockets: commands by the socket of a service. processes: names of programs.
    facts: by name, a fact function of look.py with its arguments. network: whether addresses, listeners and firewalls are observed.
    path: additional folders with programs.
    """

    files: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    checksums: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    commands: tuple[CommandRequest, ...] = ()
    sockets: c.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    processes: tuple[str, ...] = ()
    facts: c.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    network: bool = False
    path: tuple[str, ...] = ()

    def as_text(self) -> str:
        # Ansible would take two braces for a template. They occur only in strings, where JSON allows an escape sequence.
        return json.dumps(dataclasses.asdict(self)).replace("{{", "{\\u007b")


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

    @classmethod
    def of(cls, result: c.Mapping[str, t.Any]) -> Command:
        """result: of the module command."""
        return cls(int(result["rc"]), result.get("stdout", ""), result.get("stderr", ""))


@dataclasses.dataclass(frozen=True)
class Unit:
    """started_at: when its main process was started; changed_at: when its state last changed, as a reload does. Both in seconds since 1970, 0 if it does not
    run. limit: of open files, 0 if it is unknown.
    """

    loaded: bool = False
    active: bool = False
    enabled: bool = False
    started_at: float = 0.0
    changed_at: float = 0.0
    limit: int = 0


@dataclasses.dataclass(frozen=True)
class Listener:
    """address: as ss prints it, without brackets. device: to which it is bound, empty for any. unit: of systemd, to which the process belongs."""

    protocol: str
    address: str
    port: int
    process: str = ""
    device: str = ""
    unit: str = ""


@dataclasses.dataclass(frozen=True)
class Host:
    """The observed state. facts: texts by name, empty if there is none. imports: paths that the requested configurations import, in their order.

    folders: existing folders of the requested files. checksums: SHA-256 by path. answers: by socket and command. processes: start by process ID.
    addresses: name of the interface by address. firewalls: those that run. booted_at, now: by its clock, in seconds since 1970.
    """

    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    files: dict[str, File] = dataclasses.field(default_factory=dict)
    commands: dict[str, Command] = dataclasses.field(default_factory=dict)
    units: dict[str, Unit] = dataclasses.field(default_factory=dict)
    imports: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    checksums: dict[str, str] = dataclasses.field(default_factory=dict)
    answers: c.Mapping[str, c.Mapping[str, str]] = dataclasses.field(default_factory=dict)
    processes: dict[str, float] = dataclasses.field(default_factory=dict)
    addresses: dict[str, str] = dataclasses.field(default_factory=dict)
    listeners: tuple[Listener, ...] = ()
    firewalls: tuple[str, ...] = ()
    booted_at: float = 0.0
    now: float = 0.0

    def fact(self, name: str) -> str:
        return self.facts.get(name, "").strip()

    def text(self, path: str) -> str:
        """Empty if the file does not exist."""
        return self.files[path].text if path in self.files else ""

    def unit(self, name: str) -> Unit:
        return self.units.get(name, Unit())

    def version(self, command: str) -> Version:
        """Version that a program reports, empty if it is not installed or reports none."""
        return version_of(self.commands[command].output) if command in self.commands else ()

    @property
    def os_release(self) -> dict[str, str]:
        entries = (line.split("=", 1) for line in self.fact("os_release").splitlines() if "=" in line)
        return {key: " ".join(shlex.split(value)) for key, value in entries}

    @property
    def selinux(self) -> bool:
        """Whether SELinux is enabled, enforcing or permissive."""
        return self.fact("selinux").lower() in ("enforcing", "permissive")

    def moment(self, name: str) -> float:
        """A fact that is a time, 0 if there is none."""
        return float(self.fact(name) or 0)

    def newer(self, path: str, since: float) -> bool:
        """Whether a file was changed after a time, as `later` documents it."""
        return self.later(self.files[path].changed_at if path in self.files else 0.0, since)

    def later(self, changed: float, since: float) -> bool:
        """Whether a change is after the start of a process. A change in the future does not count, because the clock was set."""
        return since + _PRECISION < changed <= (self.now or changed)


def version_of(text: str) -> Version:
    """The first version in a text, such as (1, 6, 20)."""
    found = _NUMBERS.search(text)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def version_text(version: Version) -> str:
    return ".".join(map(str, version))


def read(printed: str) -> Host:
    """printed: output of look.py. Other lines, such as those of sudo and ssh, are skipped. Raises ValueError if the output is not complete."""
    return read_as(Host, printed)


def read_as(kind: type[H], printed: str) -> H:
    """Like `read`, for a role's subclass of Host."""
    lines = [line for line in printed.splitlines() if line.startswith(_BEGIN)]
    try:
        observed: dict[str, t.Any] = json.loads(lines[-1])["observed"]
    except (IndexError, ValueError):
        raise ValueError("look.py ended before its output was complete") from None
    booted = observed["booted_at"]
    return kind(
        **{
            **observed,
            "files": {path: File(path, **one) for path, one in observed["files"].items()},
            "commands": {name: Command(**one) for name, one in observed["commands"].items()},
            "units": {name: _unit(one, booted) for name, one in observed["units"].items()},
            "listeners": tuple(Listener(**one) for one in observed.get("listeners", ())),
            **{name: tuple(observed.get(name, ())) for name in ("imports", "folders", "firewalls")},
        }
    )


def _unit(properties: c.Mapping[str, str], booted: float) -> Unit:
    active = properties.get("ActiveState") in ("active", "reloading")

    def at(name: str) -> float:
        """Converts microseconds since the boot."""
        moment = float(properties.get(name) or 0) / 1e6
        return booted + moment if active and moment else 0.0

    limit = properties.get("LimitNOFILE", "")
    return Unit(
        properties.get("LoadState") == "loaded",
        active,
        properties.get("UnitFileState") == "enabled",
        at("ExecMainStartTimestampMonotonic"),
        at("StateChangeTimestampMonotonic"),
        int(limit) if limit.isdigit() else 0,
    )


def digest(text: str) -> str:
    """Checksum of a file with this text, as sha256sum prints it."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def md5(text: str) -> str:
    """The same as md5sum prints it, which dpkg compares: no proof of anything."""
    return hashlib.md5(text.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
