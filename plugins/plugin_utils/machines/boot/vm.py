# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The desired virtual machine. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import hypervisor
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.hypervisor import Hypervisor
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine

#: MiB of memory, virtual CPUs and GiB of disk by role, as OpenShift's documentation has them in "Installing a user-provisioned cluster on bare metal",
#: table "Minimum resource requirements": 16 GB, 4 and 100 GB for bootstrap and control plane machines, 8 GB, 2 and 100 GB for compute machines.
MINIMA = {machines.BOOTSTRAP: (16384, 4, 100), machines.MASTER: (16384, 4, 100), machines.WORKER: (8192, 2, 100)}
SIZES = ("memory", "vcpus", "disk")
IMAGES = "/var/lib/libvirt/images"


@dataclasses.dataclass(frozen=True)
class Vm:
    """on: the inventory host that is its hypervisor. memory: MiB. disk: GiB, in a pool or at a path. host: observed hypervisor, if it was observed."""

    on: str
    memory: int
    vcpus: int
    disk: int
    bridge: str
    path: str = ""
    pool: str = ""
    secure_boot: bool = False
    host: Hypervisor | None = None


def minima(machine: Machine) -> dict[str, int]:
    """Custom roles count as workers."""
    return dict(zip(SIZES, MINIMA.get(machine.role, MINIMA[machines.WORKER]), strict=True))


def size(given: t.Any) -> int | None:
    """0 if it is not set, None if it is not a size."""
    text = str(given if given is not None else "").strip()
    return int(text) if text.isdigit() else None if text else 0


def read(machine: Machine, entry: c.Mapping[str, t.Any]) -> Vm:
    """Sizes that are not set or not valid become the minimum of the role."""
    sizes = {key: size(entry[key]) or least for key, least in minima(machine).items()}
    path = entry["path"] or ("" if entry["pool"] else f"{IMAGES}/{machine.name}.qcow2")
    found = hypervisor.read(entry["found"]) if entry.get("found") else None
    return Vm(
        entry["hypervisor"],
        **sizes,
        bridge=entry["bridge"],
        path=path,
        pool=entry["pool"],
        secure_boot=entry["secure_boot"],
        host=found,
    )
