# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an ignition file of an installation contains, without any of its secrets. Pure.

A bootstrap file of openshift-install is only valid as long as its certificates: `Ignition.clock` is the earliest end of those that the tool itself judges.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import (
    ignition_contents,
    ignition_rules,
    ignition_schema,
    lifetimes,
    remote_urls,
    secret_contents,
    strict_json,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.certificates import Certificate
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.ignition_contents import Contents
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.lifetimes import Clock

_MOST_FAULTS = 50
_NEXT = "create the file again"
_DEFAULT_MODE = 0o644


@dataclasses.dataclass(frozen=True)
class File:
    """path: on the machine; size: bytes of inline contents after decompression; remote: whether contents are read from elsewhere."""

    path: str
    mode: str
    size: int
    remote: bool


@dataclasses.dataclass(frozen=True)
class Unit:
    """enabled: None if the file leaves that to systemd's presets. dropins: their names."""

    name: str
    enabled: bool | None
    masked: bool
    dropins: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class User:
    name: str
    ssh_keys: int
    password: bool


@dataclasses.dataclass(frozen=True)
class Source:
    """field: where it stands in the file; url: without credentials and query, which can be a signature."""

    field: str
    url: str


@dataclasses.dataclass(frozen=True)
class Ignition:
    """What a file contains. size: in bytes; sha256: of the file; private_keys, pull_secrets: paths on the machine, or fields of the file, that hold some.

    faults: why Ignition would refuse the file; warnings: what it would ignore.
    """

    version: str
    size: int
    sha256: str
    certificates: tuple[Certificate, ...]
    clock: Clock | None
    sources: tuple[Source, ...]
    users: tuple[User, ...]
    units: tuple[Unit, ...]
    files: tuple[File, ...]
    private_keys: tuple[str, ...]
    pull_secrets: tuple[str, ...]
    faults: tuple[Fault, ...]
    warnings: tuple[str, ...]


def read(data: bytes, origin: str) -> Ignition:
    """Raises HwaccelError with all faults if a part of the file cannot be read. origin: the path of the file, for messages.

    What can be read, but is refused by Ignition, is in `faults` of the result.
    """
    findings = ignition_schema.Findings()
    value = strict_json.parse(data, "the ignition file cannot be read", origin, _NEXT)
    minor = ignition_schema.minor_version(value, origin)
    config = ignition_schema.known_part(value, minor, findings)
    del value
    _stop(findings.faults, origin)
    contents = ignition_contents.read(config)
    _stop(contents.faults, origin)
    ignition_rules.check(config, minor, findings)
    return Ignition(
        version=config["ignition"]["version"],
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        certificates=tuple(contents.certificates),
        clock=lifetimes.clock(contents.certificates),
        sources=tuple(
            Source(one.place, remote_urls.shown(one.source))
            for one in ignition_contents.resources(config)
            if one.remote
        ),
        users=tuple(_users(config)),
        units=tuple(_units(config)),
        files=tuple(_files(config, contents)),
        private_keys=tuple(contents.holders.get(secret_contents.PRIVATE_KEY, ())),
        pull_secrets=tuple(contents.holders.get(secret_contents.PULL_SECRET, ())),
        faults=tuple(_placed(findings.faults, origin)),
        warnings=tuple(findings.warnings),
    )


def checked(data: bytes, origin: str) -> Ignition:
    """As `read`, but raises HwaccelError with everything that Ignition would refuse: before a file is published."""
    found = read(data, origin)
    if found.faults:
        raise ManyFaults(found.faults)
    return found


def _placed(faults: c.Sequence[Fault], origin: str) -> list[Fault]:
    """With the path of the file. A file that somebody wrote to fill a log has no more than some of them."""
    placed = [dataclasses.replace(fault, where=f"{origin}: {fault.where}") for fault in faults[:_MOST_FAULTS]]
    more = len(faults) - len(placed)
    return [*placed, Fault(f"there are {more} more errors", origin, "", _NEXT)] if more else placed


def _stop(faults: c.Sequence[Fault], origin: str) -> None:
    if faults:
        raise ManyFaults(_placed(faults, origin))


def _users(config: c.Mapping[str, t.Any]) -> c.Iterator[User]:
    for user in config.get("passwd", {}).get("users", ()):
        yield User(user["name"], len(user.get("sshAuthorizedKeys", ())), bool(user.get("passwordHash")))


def _units(config: c.Mapping[str, t.Any]) -> c.Iterator[Unit]:
    for unit in config.get("systemd", {}).get("units", ()):
        dropins = tuple(dropin["name"] for dropin in unit.get("dropins", ()))
        yield Unit(unit["name"], unit.get("enabled"), bool(unit.get("mask")), dropins)


def _files(config: c.Mapping[str, t.Any], contents: Contents) -> c.Iterator[File]:
    remote = {one.path for one in ignition_contents.resources(config) if one.remote}
    for file in config.get("storage", {}).get("files", ()):
        mode = f"0{file.get('mode', _DEFAULT_MODE):o}"
        yield File(file["path"], mode, contents.sizes.get(file["path"], 0), file["path"] in remote)
