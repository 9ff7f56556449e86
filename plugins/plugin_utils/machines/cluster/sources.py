# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files on the controller that machines of a cluster get, as sources.py of the role cluster has read them. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.contents import FILES, remote

Settings = c.Mapping[str, t.Any]
Read = c.Mapping[str, c.Mapping[str, t.Any]]


def wanted(settings: Settings, texts: c.Iterable[str] = ()) -> dict[str, list[str]]:
    """What sources.py reads: files that machines do not download themselves, and among them archives of images.

    texts: paths of texts, of which empty ones are none.
    """
    local = {name: [str(one["source"]) for one in settings.get(name, []) if not remote(one)] for name in FILES}
    return {
        "files": [path for paths in local.values() for path in paths],
        "archives": local["images"],
        "texts": [path for path in texts if path],
    }


def faults(role: str, settings: Settings, read: Read) -> list[Fault]:
    """Files that are not there, are others than those that are set, or are damaged."""
    found = []
    for name in FILES:
        for one in settings.get(name, []):
            if remote(one) or (source := str(one["source"])) not in read:
                continue
            seen, where = read[source], f"{role}_{name}"
            if not seen["checksum"]:
                next_step = "copy it to the controller, or correct its source"
                found.append(Fault(f"{source} cannot be read", where, str(seen.get("why", "")), next_step))
            elif seen["checksum"] != one["checksum"]:
                why = f"it has the checksum {seen['checksum']}, and {one['checksum']} is set for it"
                found.append(
                    Fault(f"{source} is another file than the one that is set", where, why, "correct one of them")
                )
            elif seen.get("why") and not seen.get("later"):
                next_step = "copy it to the controller again, and compare its checksum with that of its release"
                found.append(Fault(f"the archive {source} is damaged", where, str(seen["why"]), next_step))
    return found
