# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives of CNI plugins, which network plugins call on each machine. unpack.py unpacks them, and notes what it has made. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.contents import named, noted
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places


def missing(host: Host, settings: c.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Archives that were not unpacked, or of which files have gone since, each with name, source, checksum and remote."""
    there = set(host.fact("cni_plugins").split())
    found = []
    for one in named(settings, "cni_plugins"):
        note = _note(host, f"{places.UNPACKED}/{one['name']}")
        if note.get("checksum") != one["checksum"] or not there.issuperset(_made(note)):
            found.append(one)
    return found


def files(host: Host) -> list[str]:
    """Paths of all that was unpacked, also by a run that was killed."""
    notes = (_note(host, path) for path in host.files if path.startswith(f"{places.UNPACKED}/"))
    half = {places.UNPACKING} & set(host.fact("cni_plugins").split())
    return sorted({path for note in notes for path in _made(note)} | half)


def _note(host: Host, path: str) -> dict[str, t.Any]:
    return noted(host.text(path))


def _made(note: c.Mapping[str, t.Any]) -> list[str]:
    return [f"{places.CNI_PLUGINS}/{name}" for name in note.get("made", [])]
