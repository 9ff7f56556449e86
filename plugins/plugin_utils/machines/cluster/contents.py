# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What installers bring to a machine, and what they find of it there: programs, archives, files and notes. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import posixpath
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content, differs
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, digest
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import FileBefore

Settings = c.Mapping[str, t.Any]
#: Settings that list files with source and checksum. Not every role has each of them.
FILES = ("programs", "images", "cni_plugins")


def has(host: Host, path: str) -> bool:
    """Whether the path is there, which the request has asked for in the fact `present`."""
    return path in host.fact("present").split()


def of_architecture(host: Host, settings: Settings) -> Settings:
    """Settings without files for other architectures."""
    mine = ("", host.fact("architecture"))
    return {
        **settings,
        **{
            name: [one for one in settings[name] if one.get("architecture", "") in mine]
            for name in FILES
            if name in settings
        },
    }


def holds(host: Host, path: str, program: Settings) -> bool:
    """Whether the file is this program."""
    return f"sha256:{host.checksums.get(path)}" == program["checksum"]


def remote(one: Settings) -> bool:
    """Whether its source is an address, which the machine downloads from, and not a path on the controller."""
    return str(one["source"]).startswith(("http://", "https://"))


def archives(host: Host, settings: Settings, folder: str) -> list[dict[str, t.Any]]:
    """Archives of images that the machine has not got, each with name and remote. folder: has a file for each that it has, with its checksum as its text."""
    return [one for one in named(settings) if host.text(f"{folder}/{one['name']}").strip() != one["checksum"]]


def named(settings: Settings, kind: str = "images") -> list[dict[str, t.Any]]:
    """All archives, each with name and remote."""
    return [{**one, "name": posixpath.basename(str(one["source"])), "remote": remote(one)} for one in settings[kind]]


def settings_before(now: c.Mapping[str, str], before: str) -> list[str]:
    """Settings of the kernel to write, so that they are as they were. before: as name=value, with spaces between them. now: values by name."""
    return [setting for setting in before.split() if setting not in {f"{name}={value}" for name, value in now.items()}]


def rewritten(host: Host, files: c.Mapping[str, FileBefore], contents: c.Iterable[Content]) -> dict[str, FileBefore]:
    """What was there before each file, for the record, once these are written. Texts that may hold credentials are not kept."""
    found = dict(files)
    for one in contents:
        if differs(host, one):
            there = host.files.get(one.path)
            original = there.text if there and not one.sensitive else None
            before = found.get(one.path) or FileBefore(there is not None, "", original)
            found[one.path] = dataclasses.replace(before, written=digest(one.text))
    return found


def noted(text: str) -> dict[str, t.Any]:
    """What a role has noted on a machine in JSON, empty if there is nothing that can be read."""
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        return {}
