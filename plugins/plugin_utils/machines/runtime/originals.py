# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Original files: kept on the machine, and restored by teardown."""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, digest
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import FileBefore, Record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import containerd, docker, toml

ROLE = "node_runtime"
FOLDER = record.folder(ROLE)
RECORD, ORIGINALS = record.path(ROLE), f"{FOLDER}/originals"


def original(path: str) -> str:
    """Path of the copy of a file from before the first run."""
    return ORIGINALS + path


def recorded(kept: Record, host: Host, contents: c.Iterable[Content]) -> Record:
    """The record after `contents` are written. The original state is recorded at the first run that changes a file."""
    files = dict(kept.files)
    for content in contents:
        path, there = content.path, content.path in host.files
        if there and host.text(path) == content.text:
            continue
        before = files.get(path, FileBefore(there, ""))
        # After a change by others, the file is not only the role's any more.
        alone = (
            path not in files
            or host.text(path) == host.text(original(path))
            or digest(host.text(path)) == before.written
        )
        files[path] = FileBefore(before.existed, digest(content.text) if alone else "")
    return dataclasses.replace(kept, files=files)


def restored(kept: Record, host: Host, config: str, handler: str) -> tuple[list[Content], list[str], list[str]]:
    """Contents to write, paths to remove, and messages about files that were changed since.

    A file without other changes becomes the original, byte by byte. From other files, only the role's settings are removed.
    """
    contents: list[Content] = []
    absent: list[str] = []
    messages: list[str] = []
    for path, before in sorted(kept.files.items()):
        now = host.files.get(path)
        if now is None:
            continue
        text = host.text(original(path))
        untouched = digest(now.text) == before.written
        shared = path in (config, docker.CONFIG)
        if not before.existed and (untouched or not shared):
            absent.append(path)
            continue
        if shared and not untouched:
            messages.append(f"{path} was changed since: the settings of this role are removed, the rest is kept")
            text = _without_ours(path, now.text, text, handler)
        contents.append(Content(path, text, now.mode, now.uid, now.gid, sensitive=True))
    return contents, absent, messages


def _without_ours(path: str, text: str, kept: str, handler: str) -> str:
    return (
        docker.without_runtime(text, kept, handler)
        if path == docker.CONFIG
        else toml.without_import(text, containerd.DROP_IN)
    )
