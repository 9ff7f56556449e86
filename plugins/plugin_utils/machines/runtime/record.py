# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was there before: kept in a record on the machine, and put back by teardown."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, digest
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import containerd, docker, toml
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.rendering import Content

FOLDER = "/var/lib/hwaccel-gpu/node_runtime"
RECORD, ORIGINALS = f"{FOLDER}/record.json", f"{FOLDER}/originals"


@dataclasses.dataclass
class Record:
    """files: by path, whether it `existed` before the first run, and the hash of what was `written`, empty where others have a part in it.

    packages: installed by the role.
    settings: what else was switched, by name, and how it was before.
    due: services that teardown has still to restart, since it puts their files back.
    """

    files: dict[str, dict[str, t.Any]] = dataclasses.field(default_factory=dict)
    packages: list[str] = dataclasses.field(default_factory=list)
    settings: dict[str, str] = dataclasses.field(default_factory=dict)
    due: list[str] = dataclasses.field(default_factory=list)

    def as_text(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"


def read(host: Host) -> Record:
    """Empty where the role has not run. Raises HwaccelError for a record that is damaged."""
    text = host.text(RECORD)
    if not text:
        return Record()
    try:
        found = json.loads(text)
        return Record(
            dict(found["files"]), list(found["packages"]), dict(found["settings"]), list(found.get("due", []))
        )
    except (ValueError, KeyError, TypeError) as error:
        next_step = f"put it back from a backup, or compare {ORIGINALS} with the files in /etc by hand and remove it"
        raise HwaccelError(
            "the record of what the role has changed is damaged", RECORD, str(error), next_step
        ) from None


def original(path: str) -> str:
    """Where a file is kept as it was before the first run."""
    return ORIGINALS + path


def recorded(record: Record, host: Host, contents: c.Iterable[Content]) -> Record:
    """The record after `contents` are written. What was there is asked once, at the first run that touches a file."""
    files = dict(record.files)
    for content in contents:
        path, there = content.path, content.path in host.files
        if there and host.text(path) == content.text:
            continue
        before = files.get(path, {"existed": there})
        # Once somebody has changed it in between, no state of it is the role's alone.
        alone = (
            path not in files
            or host.text(path) == host.text(original(path))
            or digest(host.text(path)) == before["written"]
        )
        files[path] = {**before, "written": digest(content.text) if alone else ""}
    return Record(files, list(record.packages), dict(record.settings), list(record.due))


def restored(record: Record, host: Host, config: str, handler: str) -> tuple[list[Content], list[str], list[str]]:
    """Contents to write, paths to remove, and what is to be reported of files that somebody has changed since.

    A file that is as the role has left it becomes the original, byte for byte. From one that was changed since, only what the role has set is taken.
    """
    contents: list[Content] = []
    absent: list[str] = []
    messages: list[str] = []
    for path, entry in sorted(record.files.items()):
        now = host.files.get(path)
        if now is None:
            continue
        kept = host.text(original(path))
        untouched = digest(now.text) == entry.get("written")
        shared = path in (config, docker.CONFIG)
        if not entry["existed"] and (untouched or not shared):
            absent.append(path)
            continue
        if shared and not untouched:
            messages.append(f"{path} was changed since: what this role had set is taken out, the rest stays")
            kept = _without_ours(path, now.text, kept, handler)
        contents.append(Content(path, kept, now.mode, now.uid, now.gid, sensitive=True))
    return contents, absent, messages


def _without_ours(path: str, text: str, kept: str, handler: str) -> str:
    return (
        docker.without_runtime(text, kept, handler)
        if path == docker.CONFIG
        else toml.without_import(text, containerd.DROP_IN)
    )
