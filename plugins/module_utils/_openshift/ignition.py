# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an ignition file of an installation contains, without any of its secrets. Pure.

A bootstrap file of openshift-install is only valid as long as its certificates: `Ignition.clock` is the earliest end of those that the tool itself judges.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import hashlib
import itertools
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults
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
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.ignition_contents import Config, Contents
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.lifetimes import Clock

T = t.TypeVar("T")

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
    """What a file contains, with the configs inside it that Ignition merges.

    size: in bytes; sha256: of the file; private_keys, pull_secrets: paths on the machine, or fields of the file, that hold some; faults: why Ignition would
    refuse the file; warnings: what it would ignore.
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
    try:
        config = ignition_contents.config_of(data, "")
        contents = ignition_contents.read(config)
        if contents.faults:
            raise ManyFaults(contents.faults)
    except HwaccelError as error:
        raise ManyFaults(_placed(error.faults, origin)) from None
    faults, warnings = _refused(contents.configs)
    return Ignition(
        version=config.value["ignition"]["version"],
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        certificates=tuple(contents.certificates),
        clock=lifetimes.clock(contents.certificates),
        sources=tuple(_of_all(contents, _sources)),
        users=tuple(_of_all(contents, _users)),
        units=tuple(_of_all(contents, _units)),
        files=tuple(_of_all(contents, functools.partial(_files, sizes=contents.sizes))),
        private_keys=tuple(contents.holders.get(secret_contents.PRIVATE_KEY, ())),
        pull_secrets=tuple(contents.holders.get(secret_contents.PULL_SECRET, ())),
        faults=tuple(_placed(faults, origin)),
        warnings=warnings,
    )


def checked(data: bytes, origin: str) -> Ignition:
    """As `read`, but raises HwaccelError with everything that Ignition would refuse: before a file is published."""
    found = read(data, origin)
    if found.faults:
        raise ManyFaults(found.faults)
    return found


def refused(value: t.Any) -> list[Fault]:
    """Why Ignition refuses a config that is data, or ignores a part of it, with the places in it. Contents are decoded, and nothing in them is read.

    value: as JSON has it.
    """
    try:
        config = ignition_contents.config_of(json.dumps(value).encode(), "")
    except HwaccelError as error:
        faults = list(error.faults)
    else:
        faults, _warnings = _refused([config])
        faults += [Fault(warning, "", "", "correct or remove it") for warning in config.warnings]
        faults += ignition_contents.undecodable(config)
    # There is no file yet.
    return [dataclasses.replace(one, next_step="correct it") if "the file" in one.next_step else one for one in faults]


def _refused(configs: c.Iterable[Config]) -> tuple[list[Fault], tuple[str, ...]]:
    """Faults and warnings."""
    faults: list[Fault] = []
    warnings: list[str] = []
    for config in configs:
        findings = ignition_schema.Findings()
        ignition_rules.check(config.value, config.minor, findings)
        faults += [ignition_contents.placed(fault, config.place) for fault in findings.faults]
        warnings += config.warnings
        warnings += [strict_json.within(config.place, warning) for warning in findings.warnings]
    return faults, tuple(warnings)


def _placed(faults: c.Sequence[Fault], origin: str) -> list[Fault]:
    """With the path of the file. A file that somebody wrote to fill a log has no more than some of them."""
    found = [ignition_contents.placed(fault, origin) for fault in faults[:_MOST_FAULTS]]
    more = len(faults) - len(found)
    return [*found, Fault(f"there are {more} more errors", origin, "", _NEXT)] if more else found


def _of_all(contents: Contents, part: c.Callable[[Config], c.Iterable[T]]) -> c.Iterator[T]:
    """Of the file, and then of the configs inside it."""
    return itertools.chain.from_iterable(part(config) for config in contents.configs)


def _sources(config: Config) -> c.Iterator[Source]:
    for one in ignition_contents.resources(config.value):
        if one.remote:
            yield Source(strict_json.within(config.place, one.place), remote_urls.shown(one.source))


def _users(config: Config) -> c.Iterator[User]:
    for user in config.value.get("passwd", {}).get("users", ()):
        yield User(user["name"], len(user.get("sshAuthorizedKeys", ())), bool(user.get("passwordHash")))


def _units(config: Config) -> c.Iterator[Unit]:
    for unit in config.value.get("systemd", {}).get("units", ()):
        dropins = tuple(dropin["name"] for dropin in unit.get("dropins", ()))
        yield Unit(unit["name"], unit.get("enabled"), bool(unit.get("mask")), dropins)


def _files(config: Config, sizes: c.Mapping[str, int]) -> c.Iterator[File]:
    remote = {one.path for one in ignition_contents.resources(config.value) if one.remote}
    for file in config.value.get("storage", {}).get("files", ()):
        mode = f"0{file.get('mode', _DEFAULT_MODE):o}"
        yield File(file["path"], mode, sizes.get(file["path"], 0), file["path"] in remote)
