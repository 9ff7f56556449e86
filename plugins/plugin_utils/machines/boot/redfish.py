# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redfish: results of community.general.redfish_info as an observed state, and steps as arguments of redfish_command. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.boot_state import ALWAYS, ONCE, BootState
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.request import (
    CYCLE,
    DISK,
    MEDIA,
    NETWORK,
    OFF,
    ON,
    BootRequest,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.step import BOOT, EJECT, INSERT, SHUTDOWN, Step

_DEVICES = {"Pxe": NETWORK, "UefiHttp": NETWORK, "Hdd": DISK, "Cd": MEDIA, "UsbCd": MEDIA}
# If a BMC does not support a graceful shutdown, the module cuts the power.
_POWER = {ON: "PowerOn", OFF: "PowerForceOff", CYCLE: "PowerForceRestart", SHUTDOWN: "PowerGracefulShutdown"}
_MODES = {machines.UEFI: "UEFI", machines.BIOS: "Legacy"}


class NoSuchSystem(ValueError):
    """The BMC does not have the requested system, or has several and none was requested."""


def read(facts: c.Mapping[str, t.Any], system: str, managers: c.Mapping[str, t.Any] | None = None) -> BootState:
    """facts: redfish_facts of GetSystemInventory, GetBootOverride and GetVirtualMedia. system: last part of its path, empty if there is only one.

    managers: redfish_facts of GetVirtualMedia of managers, for older BMCs.
    """
    inventory = _entry(facts["system"], system)
    override = _entry(facts["boot_override"], system)
    devices = tuple(str(one) for one in override.get("BootSourceOverrideTarget@Redfish.AllowableValues", ()))
    lasts = {"Once": ONCE, "Continuous": ALWAYS}.get(override.get("BootSourceOverrideEnabled", ""), "")
    device = _DEVICES.get(override.get("BootSourceOverrideTarget", ""), "") if lasts else ""
    mode = str(override.get("BootSourceOverrideMode", ""))
    holder, images = _media(facts, "Systems", system) or _media(managers or {}, "Manager", "") or (("", ""), ())
    return BootState(
        str(inventory.get("PowerState", "")).lower(), device, lasts if device else "", mode, devices, images, holder
    )


def _media(facts: c.Mapping[str, t.Any], category: str, name: str) -> tuple[tuple[str, str], tuple[str, ...]] | None:
    """The resource of a category with virtual media, and the addresses of inserted images."""
    for where, found in facts.get("virtual_media", {}).get("entries", ()):
        own = where["resource_uri"].rstrip("/").rpartition("/")[2]
        if found and name in ("", own):
            # An image without a name was ejected, although some BMCs keep its address.
            return (category, own), tuple(
                str(one["Image"]) for one in found if one.get("Image") and one.get("ImageName", "there")
            )
    return None


def _entry(result: c.Mapping[str, t.Any], system: str) -> c.Mapping[str, t.Any]:
    found = {where["system_uri"].rstrip("/").rpartition("/")[2]: entry for where, entry in result["entries"]}
    if system in found:
        return t.cast("c.Mapping[str, t.Any]", found[system])
    if system or len(found) != 1:
        desired = f"no system {system}" if system else "several systems"
        raise NoSuchSystem(f"the BMC has {desired}; it lists {', '.join(sorted(found)) or 'none'}")
    return t.cast("c.Mapping[str, t.Any]", next(iter(found.values())))


def target(request: BootRequest, device: str) -> str:
    """The name of the device in Redfish."""
    return {NETWORK: "UefiHttp" if request.http else "Pxe", DISK: "Hdd", MEDIA: "Cd"}[device]


def arguments(request: BootRequest, observed: BootState, step: Step) -> dict[str, t.Any]:
    """Arguments of redfish_command, without those of the connection."""
    if step.kind in (INSERT, EJECT):
        category, name = observed.holder
        command = "VirtualMediaInsert" if step.kind == INSERT else "VirtualMediaEject"
        media = {"image_url": request.media} | ({"media_types": ["CD", "DVD"]} if step.kind == INSERT else {})
        return {"category": category, "command": [command], "virtual_media": media, "resource_id": name}
    if step.kind == BOOT:
        mode = _MODES.get(request.machine.firmware, "")
        # Some BMCs refuse requests that contain the mode, so it is sent only to change it.
        named = {"boot_override_mode": mode} if mode and observed.mode and mode != observed.mode else {}
        return {
            "category": "Systems",
            "command": ["SetOneTimeBoot"],
            "bootdevice": target(request, step.value),
            **named,
        }
    return {"category": "Systems", "command": [_POWER[step.value]]}
