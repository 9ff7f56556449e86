# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jetson boards and other small machines: what a board is, and what it lacks to be a node. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, version_of
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import configuration, places

Settings = c.Mapping[str, t.Any]
#: Nodes with a GPU that is on no PCI bus have it (charts of NVIDIA's device plugin select them by it).
LABEL = "nvidia.com/gpu.present"
_LEARN = "https://developer.nvidia.com/embedded/learn/get-started-jetson-"


@dataclasses.dataclass(frozen=True)
class Board:
    """storage: GB of the smallest card or chip with which NVIDIA sells or recommends it, and where it says so. agent, server: MiB of memory that it needs as
    such a node. sign: a part of its model, by default its name.

    Memory is shared with the GPU. K3s asks for 512 MB of an agent, and 2 GB of a server (https://docs.k3s.io/installation/requirements#hardware).
    """

    name: str
    storage: int
    source: str
    agent: int = 1700
    server: int = 3500
    sign: str = ""


#: The first whose sign is in the model.
BOARDS = (
    Board("Nano 2GB", 32, f"{_LEARN}nano-2gb-devkit"),
    Board("Orin Nano", 64, f"{_LEARN}orin-nano-devkit"),
    Board("Orin NX", 64, f"{_LEARN}orin-nano-devkit"),
    Board("AGX Orin", 64, "https://developer.nvidia.com/embedded/jetson-modules"),
    Board("AGX Thor", 64, "https://developer.nvidia.com/embedded/jetson-modules"),
    Board("Xavier NX", 16, f"{_LEARN}xavier-nx-devkit"),
    # JetPack 4 calls these two Jetson-AGX and quill.
    Board("AGX Xavier", 32, "https://developer.nvidia.com/embedded/jetson-modules", sign="AGX"),
    Board("TX2", 16, "https://developer.nvidia.com/embedded/jetson-modules", sign="quill"),
    Board("Nano", 32, f"{_LEARN}nano-devkit"),
)
#: Of a board that is not among them.
_OTHER = Board("another board", 16, "the smallest of those that are")
#: Of a card, whose GB are fewer GiB, and that has partitions for booting, too.
_USABLE = 0.8 * 1000**3
#: The last Linux for Tegra with kernel 4.9, whose control groups of version 2 lack cpu and cpuset, and the first K3s whose kubelet needs them.
_OLD, _UNIFIED = 32, (1, 35)


@dataclasses.dataclass(frozen=True)
class Known:
    """model: of its device tree. release: of its Linux for Tegra, 0 if it has no file with it."""

    board: Board
    model: str
    release: int


def known(host: Host) -> Known | None:
    """The Jetson board that a machine is, None if it is another machine."""
    found = re.match(r"# R(\d+)", host.fact("tegra"))
    model = host.fact("model").replace("\0", "").strip()
    if not found and "Jetson" not in model:
        return None
    text = re.sub(r"[ _-]", "", model)
    board = next((one for one in BOARDS if (one.sign or one.name).replace(" ", "") in text), _OTHER)
    return Known(board, model or "Jetson board", int(found.group(1)) if found else 0)


def old(host: Host) -> bool:
    """Whether its kernel cannot do without control groups of version 1."""
    board = known(host)
    return board is not None and 0 < board.release <= _OLD


def labels(host: Host, settings: Settings) -> dict[str, str]:
    """Labels with which a board registers, unless they are set."""
    return {LABEL: "true"} if known(host) and LABEL not in settings["labels"] else {}


def faults(host: Host, settings: Settings, skipped: c.Collection[str]) -> list[Fault]:
    """Problems of any small machine, and those of a board. skipped: tolerated checks."""
    found = [*_writable(host), *([] if "storage" in skipped else _card(host, settings))]
    if board := known(host):
        found += _release(board, settings) if old(host) and "cgroup" not in skipped else []
        found += [] if "memory" in skipped else _memory(host, board, settings)
        found += [] if "disk" in skipped else _size(host, board)
    return found


def _writable(host: Host) -> list[Fault]:
    next_step = "mount it for writing, or use a system that keeps what is written"
    locked = host.fact("read_only").split()
    # Other machines without a disk may be meant so.
    lost = [places.DATA] if known(host) and host.fact("mounted") in ("overlay", "ramfs", "tmpfs") else []
    return [
        *(
            Fault("the file system is read-only", path, "K3s and its configuration are written there", next_step)
            for path in locked
        ),
        *(
            Fault("a boot would lose what is written", path, "it is in memory, or on an overlay", next_step)
            for path in lost
        ),
    ]


def _card(host: Host, settings: Settings) -> list[Fault]:
    if host.fact("medium") != "SD" or not settings["serves"] or not configuration.embedded(settings):
        return []
    why = "etcd writes more than a card bears (https://docs.k3s.io/installation/requirements#disks)"
    next_step = (
        f"mount an SSD at {places.DATA}; or have one server, with SQLite, by leaving cluster_k3s_datastore empty"
    )
    return [Fault("a server with etcd would be on an SD card", places.DATA, why, next_step)]


def _release(board: Known, settings: Settings) -> list[Fault]:
    if version_of(settings["version"])[:2] < _UNIFIED:
        return []
    why = "kubelet needs unified control groups since 1.35, which its kernel 4.9 has not completely"
    next_step = "set a cluster_k3s_version before 1.35, or flash JetPack 5 or later where the board takes it"
    return [Fault(f"the {board.model} has Linux for Tegra {board.release}", "/etc/nv_tegra_release", why, next_step)]


def _memory(host: Host, board: Known, settings: Settings) -> list[Fault]:
    words = host.fact("memory").split()
    least = board.board.server if settings["serves"] else board.board.agent
    mib = int(words[1]) // 1024 if len(words) > 1 else least
    if mib >= least:
        return []
    role = "server" if settings["serves"] else "agent"
    why = f"a {role} on a board needs {least} MiB, which its GPU shares"
    next_step = "use it as an agent" if settings["serves"] and mib >= board.board.agent else "use a board with more"
    return [Fault(f"the {board.model} has {mib} MiB of memory", "/proc/meminfo", why, next_step)]


def _size(host: Host, board: Known) -> list[Fault]:
    size, least = float(host.fact("size_bytes") or "inf"), board.board.storage * _USABLE
    if size >= least:
        return []
    what = f"the file system has {size / 1000**3:.0f} GB"
    why = f"images for the GPU need a card or disk of {board.board.storage} GB on the {board.model}"
    return [Fault(what, places.DATA, why, f"mount a larger disk at {places.DATA}, or use a larger card")]
