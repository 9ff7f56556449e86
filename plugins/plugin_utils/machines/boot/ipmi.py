# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPMI: output of ipmitool as an observed state, and steps as its arguments. Pure."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.boot_state import ALWAYS, ONCE, BootState
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.request import DISK, MEDIA, NETWORK, BootRequest
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.step import BOOT, SHUTDOWN, Step

_DEVICES = {"Force PXE": NETWORK, "Force Boot from default Hard-Drive": DISK, "Force Boot from CD/DVD": MEDIA}
_NAMES = {NETWORK: "pxe", DISK: "disk", MEDIA: "cdrom"}


def read(printed: str) -> BootState:
    """printed: output of `chassis power status` and `chassis bootparam get 5`."""
    power = re.search(r"Chassis Power is (\w+)", printed)
    selected = re.search(r"Boot Device Selector : (.*)", printed)
    valid = "Boot Flag Valid" in printed
    device = _DEVICES.get(selected.group(1).strip(), "") if selected and valid else ""
    lasts = (ONCE if "only next boot" in printed else ALWAYS) if device else ""
    mode = "UEFI" if "EFI boot" in printed and "legacy" not in printed else ""
    return BootState(power.group(1).lower() if power else "", device, lasts, mode)


def arguments(request: BootRequest, _observed: BootState, step: Step) -> dict[str, t.Any]:
    """Arguments of ipmitool, without those of the connection."""
    if step.kind == BOOT:
        # Without this option a BMC falls back to legacy mode, in which machines with UEFI only cannot boot from the network.
        options = ["options=efiboot"] if request.machine.firmware == machines.UEFI else []
        return {"argv": ["chassis", "bootdev", _NAMES[step.value], *options]}
    return {"argv": ["chassis", "power", "soft" if step.value == SHUTDOWN else step.value]}
