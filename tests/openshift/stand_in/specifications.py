# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The specification of Ignition that a request asks for, and configs in it (section 5 of behaviours.yml).

Configs are kept in specification 3.2, as machine configs of the rig have them: files, directories, units and users, which differ little between 3.0 and 3.5.
"""

from __future__ import annotations

import collections.abc as c
import copy
import re
import typing as t

Obj = dict[str, t.Any]
Spec = tuple[int, int]

NEWEST: Spec = (3, 5)
#: Of curl and browsers, which ask for none.
DEFAULT: Spec = (2, 2)
#: Those that its converter knows. It converts nothing to 3.0.
_KNOWN: tuple[Spec, ...] = (DEFAULT, (3, 0), (3, 1), (3, 2), (3, 3), (3, 4), NEWEST)
_ONLY_READ: Spec = (3, 0)
_KERNEL_ARGUMENTS_SINCE: Spec = (3, 3)
_SUBTYPE = "vnd.coreos.ignition+json"
_SEMANTIC = re.compile(r"(\d+)\.(\d+)\.\d+(?:[-+].*)?")
#: Sections that stay as they are, or have another form in 2.2.
_EXPRESSIBLE = {("ignition", "version"), ("storage", "files"), ("storage", "directories"), ("systemd", "units")}
_EXPRESSIBLE |= {("passwd", "users")}


class Unsupported(Exception):
    """A specification that the server does not know; the text is the Accept header."""


class Inexpressible(Exception):
    """A config that the specification cannot express; the text is the reason."""


def text(spec: Spec) -> str:
    return f"{spec[0]}.{spec[1]}.0"


def asked(accept: str) -> Spec:
    """The specification for an Accept header, "" if there is none. Raises Unsupported. As detectSpecVersionFromAcceptHeader of pkg/server/api.go."""
    for subtype, version in _by_quality(accept):
        if subtype != _SUBTYPE or version is None:
            continue
        if version >= DEFAULT and version[0] == DEFAULT[0]:
            return DEFAULT
        if version in _KNOWN:
            return version
        if version > NEWEST and version[0] == NEWEST[0]:
            return NEWEST
        raise Unsupported(accept)
    return DEFAULT


def _by_quality(accept: str) -> list[tuple[str, Spec | None]]:
    """Subtypes of the header's types with their version, the most wanted first."""
    found = []
    for value in accept.split(","):
        kind, *extensions = (part.strip() for part in value.split(";"))
        if "/" in kind:
            pairs = [one.partition("=")[::2] for one in extensions]
            versions = (_SEMANTIC.fullmatch(given) for name, given in pairs if name == "version")
            version = next(((int(one[1]), int(one[2])) for one in versions if one), None)
            found.append((-_quality(pairs), kind.partition("/")[2], version))
    return [(subtype, version) for _quality, subtype, version in sorted(found, key=lambda one: one[0])]


def _quality(extensions: c.Iterable[tuple[str, str]]) -> float:
    for name, value in extensions:
        if name == "q":
            try:
                return float(value)
            except ValueError:
                continue
    return 1.0


def without_kernel_arguments(machine_config: Obj, spec: Spec) -> Obj:
    """The machine config, whose ignition config has no kernel arguments if the specification has none: then they are its own.

    As MigrateKernelArgsIfNecessary of pkg/server/server.go. Raises Inexpressible.
    """
    found: Obj = copy.deepcopy(machine_config)
    if spec < _KERNEL_ARGUMENTS_SINCE:
        arguments = found["spec"]["config"].pop("kernelArguments", {})
        if arguments.get("shouldNotExist"):
            raise Inexpressible(f"{text(spec)} has no kernel arguments that should not exist")
        own = [*found["spec"].get("kernelArguments", ()), *arguments.get("shouldExist", ())]
        if own:
            found["spec"]["kernelArguments"] = own
    return found


def converted(config: Obj, spec: Spec) -> Obj:
    """Raises Inexpressible."""
    if spec == _ONLY_READ:
        raise Inexpressible(f"there is no conversion to {text(spec)}")
    found: Obj = copy.deepcopy(config)
    found["ignition"]["version"] = text(spec)
    if spec == DEFAULT:
        return _in_two(found)
    if spec < (3, 2) and found.get("storage", {}).get("luks"):
        raise Inexpressible(f"{text(spec)} has no LUKS")
    return found


def _in_two(config: Obj) -> Obj:
    """As translate/v32tov22 of github.com/coreos/ign-converter, of whose sections only those that the rig uses are here."""
    sections = {(section, name) for section, names in config.items() for name in names}
    if sections - _EXPRESSIBLE:
        raise Inexpressible(f"{sorted(sections - _EXPRESSIBLE)} is not supported on 2.2")
    if any(user.get("shouldExist") is False for user in config.get("passwd", {}).get("users", ())):
        raise Inexpressible("ShouldExist in Passwd.Users is not supported on 2.2")
    storage = config.get("storage", {})
    if "files" in storage:
        storage["files"] = [one for file in storage["files"] for one in _files_in_two(file)]
    if "directories" in storage:
        storage["directories"] = [{"filesystem": "root", **one} for one in storage["directories"]]
    return config


def _files_in_two(file: Obj) -> list[Obj]:
    # Without a word a file is not replaced in 3, and replaced in 2.
    common = {"filesystem": "root", "overwrite": False, **file}
    contents, appended = common.pop("contents", {}), common.pop("append", [])
    made = [common | {"contents": contents}] if contents.get("source") is not None else []
    made += [common | {"append": True, "contents": one} for one in appended]
    for one in made:
        if one["contents"].get("httpHeaders"):
            raise Inexpressible("HTTPHeaders in Storage.Files are not supported on 2.2")
    return made
