# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files as they were before: kept on the machine, and put back by teardown."""

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
    """Where a file is kept as it was before the first run."""
    return ORIGINALS + path


def recorded(kept: Record, host: Host, contents: c.Iterable[Content]) -> Record:
    """The record after `contents` are written. What was there is asked once, at the first run that touches a file."""
    files = dict(kept.files)
    for content in contents:
        path, there = content.path, content.path in host.files
        if there and host.text(path) == content.text:
            continue
        before = files.get(path, FileBefore(there, ""))
        # Once somebody has changed it in between, no state of it is the role's alone.
        alone = (
            path not in files
            or host.text(path) == host.text(original(path))
            or digest(host.text(path)) == before.written
        )
        files[path] = FileBefore(before.existed, digest(content.text) if alone else "")
    return dataclasses.replace(kept, files=files)


def restored(kept: Record, host: Host, config: str, handler: str) -> tuple[list[Content], list[str], list[str]]:
    """Contents to write, paths to remove, and what is to be reported of files that somebody has changed since.

    A file that is as the role has left it becomes the original, byte for byte. From one that was changed since, only what the role has set is taken.
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
            messages.append(f"{path} was changed since: what this role had set is taken out, the rest stays")
            text = _without_ours(path, now.text, text, handler)
        contents.append(Content(path, text, now.mode, now.uid, now.gid, sensitive=True))
    return contents, absent, messages


def _without_ours(path: str, text: str, kept: str, handler: str) -> str:
    return (
        docker.without_runtime(text, kept, handler)
        if path == docker.CONFIG
        else toml.without_import(text, containerd.DROP_IN)
    )
