# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the folder of an installation has, from the contents of its files. Pure."""

from __future__ import annotations

import collections.abc as c
import hashlib
import posixpath

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import ignition, strict_json
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.lifetimes import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.observed import STATE_FILE, Folder

METADATA = "metadata.json"
_IGNITION = ".ign"


def contents_needed(names: c.Iterable[str]) -> list[str]:
    """Of the names in a folder, those whose contents `folder` takes."""
    return sorted(name for name in names if name == METADATA or name.endswith(_IGNITION))


def folder(path: str, names: c.Iterable[str], contents: c.Mapping[str, bytes], staging: c.Iterable[str] = ()) -> Folder:
    """names: all in the folder, without those of folders below it; contents: of the files of `contents_needed`; staging: as in Folder.

    A file that is damaged is no exception, but one of its faults: whether somebody changed it is decided by its checksum.
    """
    listed = sorted(names)
    files = [name for name in listed if name in contents and name.endswith(_IGNITION)]
    clocks: list[Clock] = []
    # Who cannot read a file does not know that it holds nothing.
    secret = set(files)
    faults: list[Fault] = []
    for name in files:
        try:
            found = ignition.read(contents[name], posixpath.join(path, name))
        except HwaccelError as error:
            faults += error.faults
            continue
        if not (found.private_keys or found.pull_secrets):
            secret.remove(name)
        faults += found.faults
        clocks += [found.clock] if found.clock else []
    return Folder(
        path=path,
        checksums={name: hashlib.sha256(contents[name]).hexdigest() for name in files},
        secret=frozenset(secret),
        state=STATE_FILE in listed,
        others=tuple(name for name in listed if name not in files and name != STATE_FILE),
        infrastructure=_infrastructure(path, contents, faults),
        clock=min(clocks, key=lambda one: one.not_after, default=None),
        faults=tuple(faults),
        staging=tuple(staging),
    )


def _infrastructure(path: str, contents: c.Mapping[str, bytes], faults: list[Fault]) -> str:
    """infraID, "" if there is no file. faults: gets the one of a file that is damaged."""
    if METADATA not in contents:
        return ""
    where, next_step = posixpath.join(path, METADATA), "restore it from a backup"
    what = f"{METADATA} cannot be read"
    try:
        body = strict_json.parse(contents[METADATA], what, where, next_step)
    except HwaccelError as error:
        faults += error.faults
        return ""
    identifier = body.get("infraID") if isinstance(body, dict) else None
    if isinstance(identifier, str) and identifier:
        return identifier
    faults.append(Fault(what, where, "it has no infraID", next_step))
    return ""
