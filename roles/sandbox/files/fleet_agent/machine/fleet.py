# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet file, which describes the simulated machines. It is read again when it changes."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any


@dataclasses.dataclass(frozen=True)
class Gpu:
    """ecc: whether that mode is enabled, None for a GPU without it. mig: the same for MIG mode, for GPUs that support it."""

    product: str
    count: int
    memory_mib: int
    mig_capable: bool = False
    ecc: bool | None = None
    mig: bool = False


@dataclasses.dataclass(frozen=True)
class Interconnect:
    """transport: NCCL's name of the network to other nodes. bandwidth: bus bandwidth of an all-reduce, in GB/s."""

    transport: str = "Socket"
    bandwidth: float = 1.0


@dataclasses.dataclass(frozen=True)
class NodeSpec:
    """One machine as the fleet file describes it."""

    name: str
    pool: str = ""
    architecture: str = "amd64"
    os_image: str = "Ubuntu 24.04.1 LTS"
    os_id: str = "ubuntu"
    os_version: str = "24.04"
    kernel: str = "6.8.0-45-generic"
    container_runtime: str = "containerd://2.0.0"
    gpu: Gpu | None = None
    host_driver: str = ""
    host_toolkit: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[tuple[str, str, str], ...] = ()
    faults: tuple[tuple[tuple[str, str], ...], ...] = ()
    boot: int = 1
    interconnect: Interconnect = Interconnect()

    def fault(self, name: str) -> dict[str, str] | None:
        """The parameters of an active fault, None when it is not active."""
        for entry in self.faults:
            parameters = dict(entry)
            if parameters.get("name") == name:
                return parameters
        return None

    @property
    def image_arch(self) -> str:
        return {"x86_64": "amd64", "aarch64": "arm64"}.get(self.architecture, self.architecture)

    @property
    def driver_os_tags(self) -> tuple[str, ...]:
        """The operating system suffixes of matching driver images: with minor version, and major only for RHEL's family."""
        major = self.os_version.split(".", maxsplit=1)[0]
        identity = "rhel" if self.os_id in ("rhcos",) else self.os_id
        return (f"{identity}{self.os_version}", f"{identity}{major}")


@dataclasses.dataclass(frozen=True)
class Fleet:
    """images: of users, beside those that the agent knows (data/images.yaml): what is in them is unknown, so that their programs just run."""

    time_scale: float
    seed: int
    nodes: dict[str, NodeSpec]
    images: frozenset[str] = frozenset()


def parse_node(name: str, entry: dict[str, Any]) -> NodeSpec:
    gpu = entry.get("gpu")
    fields = {
        key: entry[key]
        for key in (
            "pool",
            "architecture",
            "os_image",
            "os_id",
            "os_version",
            "kernel",
            "container_runtime",
            "host_driver",
            "boot",
        )
        if entry.get(key) not in (None, "")
    }
    faults = tuple(
        tuple(sorted((str(k), str(v)) for k, v in (f if isinstance(f, dict) else {"name": f}).items()))
        for f in entry.get("faults") or ()
    )
    return NodeSpec(
        name=name,
        labels=tuple(sorted((str(k), str(v)) for k, v in (entry.get("labels") or {}).items())),
        faults=faults,
        taints=tuple((str(t["key"]), str(t.get("value") or ""), str(t["effect"])) for t in entry.get("taints") or ()),
        gpu=_parse_gpu(gpu) if gpu else None,
        host_toolkit=bool(entry.get("host_toolkit")),
        interconnect=Interconnect(**entry.get("interconnect") or {}),
        **fields,
    )


def _parse_gpu(entry: dict[str, Any]) -> Gpu:
    return Gpu(
        str(entry["product"]),
        int(entry["count"]),
        int(entry.get("memory_mib") or 0),
        bool(entry.get("mig_capable")),
        entry.get("ecc"),
        bool(entry.get("mig")),
    )


def parse_fleet(text: str) -> Fleet:
    data = json.loads(text)
    return Fleet(
        float(data.get("time_scale", 1.0)),
        int(data.get("seed", 1)),
        {name: parse_node(name, entry) for name, entry in (data.get("nodes") or {}).items()},
        frozenset(data.get("images") or ()),
    )


class FleetFile:
    """Checks whether the file changed. An incomplete file is read again in the next period."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.stamp_read: tuple[int, int, int] | None = None

    def changed(self) -> Fleet | None:
        try:
            status = os.stat(self.path)
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp == self.stamp_read:
                return None
            with open(self.path, encoding="utf-8") as stream:
                fleet = parse_fleet(stream.read())
        except (OSError, ValueError, KeyError):
            return None  # The file was deleted or is being written, so the machines do not change.
        self.stamp_read = stamp
        return fleet
