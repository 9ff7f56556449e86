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

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import ignition as rules

VERSION = "3.2.0"
#: Versions of the specification that the operator reads.
_VERSIONS = re.compile(r"3\.[0-5]\.0")
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
#: The only user that a MachineConfig may change.
_USER = "core"


def text_file(path: str, text: str, mode: int = 0o644) -> dict[str, t.Any]:
    encoded = base64.b64encode(text.encode()).decode()
    source = f"data:text/plain;charset=utf-8;base64,{encoded}"
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": source}}


def faults(config: t.Any) -> c.Iterator[Fault]:
    """where: path in the configuration. What the operator refuses comes beside what Ignition refuses or ignores."""
    if not isinstance(config, c.Mapping):
        yield Fault("it is not a dictionary", "", "", "give ignition, storage, systemd or passwd")
        return
    given = config.get("ignition")
    ignition = given if isinstance(given, c.Mapping) else {}
    version = ignition.get("version")
    if not (isinstance(version, str) and _VERSIONS.fullmatch(version)):
        next_step = f"set one from 3.0.0 to 3.5.0, as {VERSION}"
        yield Fault(f"{version or 'no version'} is not supported", "ignition.version", "", next_step)
        return
    yield from rules.refused(config)
    yield from _unsupported(config, ignition)
    for where, file in _entries(config, "storage.files"):
        yield from _mode(where, file)
        yield from _file(where, file)
    for where, folder in _entries(config, "storage.directories"):
        yield from _mode(where, folder)
    for where, unit in _entries(config, "systemd.units"):
        if isinstance(unit.get("contents"), str) and unit["contents"].strip() and "[" not in unit["contents"]:
            yield Fault("it has no section", f"{where}.contents", "", "begin it with [Unit]")
    for where, user in _entries(config, "passwd.users"):
        if user.get("name") not in (None, _USER):
            what, next_step = f"the user {user['name']!r:.40} is not supported", f"the operator changes {_USER} only"
            yield Fault(what, where, "", next_step)


def _unsupported(config: c.Mapping[str, t.Any], ignition: c.Mapping[str, t.Any]) -> c.Iterator[Fault]:
    """Sections of Ignition that would be lost."""
    why = "the operator takes files, units and users only"
    for name in ignition:
        if name != "version":
            yield Fault(f"ignition.{name} is not supported", f"ignition.{name}", why, "remove it")
    if "kernelArguments" in config:
        yield Fault("kernelArguments is not supported here", "kernelArguments", why, "give spec.kernelArguments")


def _entries(config: c.Mapping[str, t.Any], path: str) -> c.Iterator[tuple[str, c.Mapping[str, t.Any]]]:
    """Path and value of each entry of a list, as far as it is one: other types are reported before."""
    section, _dot, name = path.partition(".")
    outer = config.get(section)
    entries = outer.get(name) if isinstance(outer, c.Mapping) else None
    for number, one in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(one, c.Mapping):
            yield f"{path}[{number}]", one


def _mode(where: str, one: c.Mapping[str, t.Any]) -> c.Iterator[Fault]:
    mode = one.get("mode")
    if isinstance(mode, str):
        yield Fault(f"{mode!r:.20} is not a mode", f"{where}.mode", "it is text", "write 0644, or 420 in JSON")
    elif mode in _DECIMAL:
        what, meant = f"{mode} is a decimal number ({mode:#o})", int(str(mode), 8)
        yield Fault(what, f"{where}.mode", "", f"write 0{mode}, or {meant} in JSON")


def _file(where: str, one: c.Mapping[str, t.Any]) -> c.Iterator[Fault]:
    contents = one.get("contents")
    source = contents.get("source") if isinstance(contents, c.Mapping) else None
    if isinstance(source, str) and source and not source.startswith("data:"):
        next_step = "give data:,text or data:;base64,…"
        yield Fault(
            "its contents are not a data URL", f"{where}.contents.source", "the operator supports no other", next_step
        )
    if one.get("append"):
        yield Fault("append is not supported by the operator", f"{where}.append", "", "give the whole file")
