# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a host role writes, in the form of tasks_from: write of the role machine. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import posixpath
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Host


@dataclasses.dataclass(frozen=True)
class Content:
    """A desired file. sensitive: its text, or that of the file it comes from, may hold credentials."""

    path: str
    text: str
    mode: str = "0644"
    uid: int = 0
    gid: int = 0
    sensitive: bool = False

    @classmethod
    def instead_of(cls, old: File | None, path: str, text: str, *, sensitive: bool) -> Content:
        """Keeps mode and owner of an existing file."""
        return cls(path, text, old.mode, old.uid, old.gid, sensitive) if old else cls(path, text, sensitive=sensitive)


def differs(host: Host, desired: Content) -> bool:
    """Whether text, mode or owner differ from the desired ones."""
    there = host.files.get(desired.path)
    return there is None or (there.text, there.mode, there.uid, there.gid) != (
        desired.text,
        desired.mode,
        desired.uid,
        desired.gid,
    )


def written(host: Host, contents: c.Sequence[Content], absent: c.Sequence[str] = ()) -> dict[str, t.Any]:
    """What `write` does, in plain data.

    files: those that differ, each with path, mode, uid, gid and sensitive, in the order of writing; contents: texts by path, also of the other files.
    folders: missing folders of these files; a request must contain a file in each, so that it is observed. absent: paths that are removed.
    """
    files = [
        {key: value for key, value in dataclasses.asdict(one).items() if key != "text"}
        for one in contents
        if differs(host, one)
    ]
    return {
        "files": files,
        "contents": {one.path: one.text for one in contents},
        "folders": sorted({posixpath.dirname(one["path"]) for one in files} - set(host.folders)),
        "absent": list(absent),
    }


def line(text: str, number: int) -> str:
    """The line of this number, from 1, without blanks around it. Empty if there is none."""
    lines = text.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""
