# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observed state of a hypervisor and of one machine (output of roles/machine_boot/files/hypervisor.sh). Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import typing as t
from xml.etree import ElementTree

_GIB = 1024**3
#: Format of volumes that are files, so that they take only the space that is used. Others are raw.
_OF_FILES = ".qcow2"


@dataclasses.dataclass(frozen=True)
class Hypervisor:
    """unreachable, refused: why nothing more is known. lacking: missing programs and libraries.

    kind: domain type of libvirt, kvm or qemu. networks: of libvirt, by their bridges, each with its name and its forward mode.
    room: free bytes where the machine's disk is created; place: the file system or pool of these.
    users: domains by their disks. disk: size of the machine's disk in bytes, 0 if there is none.
    volume: its name in a pool, even if it does not exist. written: whether it has, or may have, content; unread: that this could not be observed.
    """

    unreachable: str = ""
    refused: str = ""
    lacking: tuple[str, ...] = ()
    kind: str = "qemu"
    passthrough: bool = False
    efi: bool = False
    secure: bool = False
    bridges: tuple[str, ...] = ()
    networks: c.Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    memory: int = 0
    place: str = ""
    room: int = 0
    volume: str = ""
    users: c.Mapping[str, str] = dataclasses.field(default_factory=dict)
    definition: str = ""
    state: str = ""
    autostart: bool = False
    disk: int = 0
    written: bool = False
    unread: bool = False

    @property
    def of_files(self) -> bool:
        """Whether disks are files."""
        return not self.volume or self.volume.endswith(_OF_FILES)

    @property
    def answers(self) -> bool:
        return not (self.unreachable or self.refused or self.lacking)


def read(looked: c.Mapping[str, t.Any]) -> Hypervisor:
    """looked: result of the task that has run the script."""
    if looked.get("unreachable") or looked.get("rc", 1):
        return Hypervisor(unreachable=str(looked.get("msg") or looked.get("stderr") or "it was not queried").strip())
    parts = _parts(str(looked["stdout"]))
    lacking, refused = tuple(parts.get("lacking", [""])[0].split()), parts.get("refused", [""])[0]
    if lacking or refused:
        return Hypervisor(lacking=lacking, refused=refused.removeprefix("error: "))
    place, room = _room(parts)
    written = parts.get("written", ["0"])[0]
    return Hypervisor(
        **_capabilities(parts["capabilities"][0]),
        bridges=tuple(parts["bridges"][0].split()),
        networks=dict(map(_network, parts.get("network", ()))),
        memory=int(parts["memory"][0]) * 1024,
        place=place,
        room=room,
        users=_users(parts["users"][0]),
        definition=parts.get("definition", [""])[0],
        state=parts.get("state", [""])[0],
        autostart=parts.get("autostart") == ["enable"],
        disk=int(json.loads(parts["image"][0])["virtual-size"]) if parts.get("image", [""])[0] else 0,
        written=written != "0",
        unread=written == "unknown",
        volume=parts.get("volume", [""])[0],
    )


def _parts(text: str) -> dict[str, list[str]]:
    """Contents of the parts by name; a name may occur several times."""
    found: dict[str, list[str]] = {}
    for part in text.replace("\r\n", "\n").split("\n== ")[1:]:
        name, _end, content = part.partition("\n")
        found.setdefault(name, []).append(content.strip())
    return found


def _capabilities(text: str) -> dict[str, t.Any]:
    top = ElementTree.fromstring(text)
    mode = top.find("cpu/mode[@name='host-passthrough']")
    return {
        "kind": top.findtext("domain", "qemu"),
        "passthrough": mode is not None and mode.get("supported") == "yes",
        "efi": "efi" in [one.text for one in top.iterfind("os/enum[@name='firmware']/value")],
        "secure": "yes" in [one.text for one in top.iterfind("os/loader/enum[@name='secure']/value")],
    }


def _network(text: str) -> tuple[str, tuple[str, str]]:
    """Bridge, name and forward mode. A network without a forward mode is isolated."""
    top = ElementTree.fromstring(text)
    bridge, forward = top.find("bridge"), top.find("forward")
    return (bridge.get("name", "") if bridge is not None else ""), (
        top.findtext("name", ""),
        forward.get("mode", "nat") if forward is not None else "isolated",
    )


def _room(parts: c.Mapping[str, list[str]]) -> tuple[str, int]:
    if pool := parts.get("pool", [""])[0]:
        top = ElementTree.fromstring(pool)
        return f"pool {top.findtext('name')}", int(top.findtext("available", "0"))
    # Columns of df: file system, blocks, used, available, capacity, mount point.
    columns = parts.get("room", [""])[0].split(None, 5)
    return (columns[5], int(columns[3]) * 1024) if len(columns) == 6 else ("", 0)


def _users(text: str) -> dict[str, str]:
    return dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)


def gib(size: int) -> int:
    return size // _GIB
