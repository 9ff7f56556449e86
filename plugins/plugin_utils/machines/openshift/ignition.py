# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of Ignition within a MachineConfig: what of it machines would refuse. Pure.

Source: https://coreos.github.io/ignition/specs/; pkg/controller/common/helpers.go (ValidateIgnition) of openshift/machine-config-operator.
"""

from __future__ import annotations

import base64
import collections.abc as c
import re
import typing as t

VERSION = "3.2.0"
#: Versions of the specification that the operator reads.
_VERSIONS = re.compile(r"3\.[0-5]\.0")
_SUFFIXES = ("automount", "device", "mount", "path", "scope", "service", "slice", "socket", "swap", "target", "timer")
_UNIT = re.compile(rf"[A-Za-z0-9:_.\\@-]+\.({'|'.join(_SUFFIXES)})")
_DATA = re.compile(r"data:[^,]*,.*", re.DOTALL)
_HIGHEST_MODE = 0o7777
#: Permissions that were written without the 0 that makes them octal: as decimal numbers nobody means them.
_DECIMAL = (400, 440, 444, 500, 550, 555, 600, 640, 644, 660, 664, 700, 750, 755, 770, 775, 777)
#: Lists of the configuration, by their path, each with the key by which its entries differ.
LISTS = {
    "storage.files": "path",
    "storage.directories": "path",
    "storage.links": "path",
    "storage.disks": "device",
    "storage.raid": "name",
    "storage.luks": "name",
    "storage.filesystems": "device",
    "systemd.units": "name",
    "passwd.users": "name",
    "passwd.groups": "name",
}
_SECTIONS = ("ignition", "passwd", "storage", "systemd", "kernelArguments")
#: Users that a MachineConfig may change.
_USER = "core"


def text_file(path: str, text: str, mode: int = 0o644) -> dict[str, t.Any]:
    encoded = base64.b64encode(text.encode()).decode()
    source = f"data:text/plain;charset=utf-8;base64,{encoded}"
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": source}}


def faults(config: t.Any) -> c.Iterator[tuple[str, str, str]]:
    """Path in the configuration, what is wrong there, and what to do next."""
    if not isinstance(config, c.Mapping):
        yield "", "it is not a dictionary", "give ignition, storage, systemd or passwd"
        return
    ignition = config.get("ignition")
    version = ignition.get("version") if isinstance(ignition, c.Mapping) else None
    if not (isinstance(version, str) and _VERSIONS.fullmatch(version)):
        yield (
            "ignition.version",
            f"{version or 'no version'} is not supported",
            f"set one from 3.0.0 to 3.5.0, as {VERSION}",
        )
    for name in config:
        if name not in _SECTIONS:
            yield str(name), "it is unknown", f"Ignition has {', '.join(_SECTIONS)}"
    for path, key in LISTS.items():
        yield from _entries(config, path, key)


def _entries(config: c.Mapping[str, t.Any], path: str, key: str) -> c.Iterator[tuple[str, str, str]]:
    section, _dot, name = path.partition(".")
    outer = config.get(section)
    if outer is None:
        return
    if not isinstance(outer, c.Mapping):
        yield from [(section, "it is not a dictionary", f"give {name}")] if path in _FIRST else ()
        return
    entries = outer.get(name)
    if entries is None:
        return
    if not isinstance(entries, list) or not all(isinstance(one, c.Mapping) for one in entries):
        yield path, "it is not a list of dictionaries", f"give each with its {key}"
        return
    known: set[str] = set()
    for number, one in enumerate(entries):
        where, value = f"{path}[{number}]", one.get(key)
        if not isinstance(value, str) or not value:
            yield where, f"it has no {key}", f"set {key}"
            continue
        if value in known:
            yield where, f"{value} occurs twice", "remove one of them"
        known.add(value)
        yield from _CHECKS.get(path, _nothing)(where, one)


#: One list of each section, so that a section of a wrong type is reported once.
_FIRST = ("storage.files", "systemd.units", "passwd.users")


def _nothing(_where: str, _one: c.Mapping[str, t.Any]) -> c.Iterator[tuple[str, str, str]]:
    return iter(())


def _path(where: str, one: c.Mapping[str, t.Any]) -> c.Iterator[tuple[str, str, str]]:
    if not one["path"].startswith("/"):
        yield where, f"{one['path']} is not an absolute path", "begin it with /"
    mode = one.get("mode")
    if mode is None:
        return
    if isinstance(mode, bool) or not isinstance(mode, int) or not 0 <= mode <= _HIGHEST_MODE:
        yield f"{where}.mode", f"{mode!r:.20} is not a mode", "write 0644, or 420 in JSON"
    elif mode in _DECIMAL:
        yield (
            f"{where}.mode",
            f"{mode} is a decimal number ({mode:#o})",
            f"write 0{mode}, or {int(str(mode), 8)} in JSON",
        )


def _file(where: str, one: c.Mapping[str, t.Any]) -> c.Iterator[tuple[str, str, str]]:
    yield from _path(where, one)
    contents = one.get("contents")
    source = contents.get("source") if isinstance(contents, c.Mapping) else None
    if contents is not None and source is not None and not (isinstance(source, str) and _DATA.fullmatch(source)):
        what = "its contents are not a data URL"
        yield f"{where}.contents.source", what, "the operator supports no other: give data:,text or data:;base64,…"
    elif isinstance(source, str) and ";base64," in source and not _is_base64(source.partition(";base64,")[2]):
        yield f"{where}.contents.source", "its contents are not base64", "encode them again"
    if one.get("append"):
        yield f"{where}.append", "append is not supported by the operator", "give the whole file"


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def _unit(where: str, one: c.Mapping[str, t.Any]) -> c.Iterator[tuple[str, str, str]]:
    if not _UNIT.fullmatch(one["name"]):
        yield where, f"{one['name']} is not the name of a unit", "end it with .service, .mount or the like"
    if isinstance(one.get("contents"), str) and one["contents"].strip() and "[" not in one["contents"]:
        yield f"{where}.contents", "it has no section", "begin it with [Unit]"


def _person(where: str, one: c.Mapping[str, t.Any]) -> c.Iterator[tuple[str, str, str]]:
    if one["name"] != _USER:
        yield where, f"the user {one['name']} is not supported", f"the operator changes {_USER} only"


_CHECKS: dict[str, t.Callable[[str, c.Mapping[str, t.Any]], c.Iterator[tuple[str, str, str]]]] = {
    "storage.files": _file,
    "storage.directories": _path,
    "systemd.units": _unit,
    "passwd.users": _person,
}
