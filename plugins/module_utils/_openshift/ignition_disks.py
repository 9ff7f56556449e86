# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks, partitions, RAID, file systems and LUKS in an ignition file. Pure."""

from __future__ import annotations

import collections.abc as c
import itertools
import json
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import paths, remote_urls
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.ignition_schema import Findings

_GUID = re.compile(r"|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", re.ASCII)
_LONGEST_PARTITION_LABEL, _LONGEST_LUKS_LABEL = 36, 47
#: Bytes of the label of a file system, by its format (mkfs.ext4, mkfs.btrfs, mkfs.xfs, mkswap, mkfs.fat).
_LONGEST_LABEL = {"ext4": 16, "btrfs": 256, "xfs": 12, "swap": 15, "vfat": 11}
_NO_FORMAT_SINCE = 3
_LEVELS_WITHOUT_SPARES = frozenset({"linear", "raid0", "0", "stripe"})
_LEVELS = _LEVELS_WITHOUT_SPARES | frozenset(
    ("raid1", "1", "mirror", "raid4", "4", "raid5", "5", "raid6", "6", "raid10", "10")
)
_CLEVIS_PINS, _ANY_PIN_SINCE = frozenset({"tpm2", "tang", "sss"}), 6

Storage = c.Mapping[str, t.Any]


def check(storage: Storage, minor: int, findings: Findings) -> None:
    """storage: the section of a file, as `ignition_schema.known_part` returns it."""
    for position, disk in enumerate(storage.get("disks", ())):
        _disk(disk, f"storage.disks[{position}]", findings)
    for position, array in enumerate(storage.get("raid", ())):
        _raid(array, f"storage.raid[{position}]", findings)
    for position, system in enumerate(storage.get("filesystems", ())):
        _filesystem(system, minor, f"storage.filesystems[{position}]", findings)
    for position, volume in enumerate(storage.get("luks", ())):
        _luks(volume, minor, f"storage.luks[{position}]", findings)
    for kind, key in (("disks", "device"), ("filesystems", "device"), ("raid", "name"), ("luks", "name")):
        findings.unique(storage.get(kind, ()), f"storage.{kind}", key)


def _device(device: str, place: str, findings: Findings) -> None:
    if device and (why := paths.fault(device)):
        findings.add("the path is not valid", place, why)


def _disk(disk: Storage, place: str, findings: Findings) -> None:
    _device(disk.get("device", ""), f"{place}.device", findings)
    partitions = disk.get("partitions", ())
    numbers: set[int] = set()
    labels: set[str] = set()
    for position, partition in enumerate(partitions):
        below = f"{place}.partitions[{position}]"
        _partition(partition, below, findings)
        if partition.get("number", 0) in numbers or partition.get("label") in labels:
            findings.add("the value occurs twice", below, "another partition has this number or label")
        numbers |= {partition["number"]} if partition.get("number") else set()
        labels |= {partition["label"]} if "label" in partition else set()
    # 0 is the largest free block, wherever that is.
    placed = sorted(
        (one["startMiB"], one["startMiB"] + max(one["sizeMiB"] - 1, 0), position)
        for position, one in enumerate(partitions)
        if one.get("startMiB") and "sizeMiB" in one
    )
    for (_start, end, _position), (start, _end, position) in itertools.pairwise(placed):
        if start <= end:
            findings.add("partitions overlap", f"{place}.partitions[{position}]")


def _partition(partition: Storage, place: str, findings: Findings) -> None:
    label = partition.get("label")
    described = any(name in partition for name in ("label", "startMiB", "sizeMiB"))
    if partition.get("shouldExist") is False and (described or partition.get("typeGuid") or partition.get("guid")):
        why = "it is described, although it should not exist"
        findings.add("the partition is not valid", place, why, "keep only its number")
    if not partition.get("number") and label is None:
        findings.add("the partition is not valid", place, "it has neither a number from 1 nor a label")
    if label is not None and (len(label.encode("utf-8", "replace")) > _LONGEST_PARTITION_LABEL or ":" in label):
        why = f"it has more than {_LONGEST_PARTITION_LABEL} characters or a colon"
        findings.add("the label is not valid", f"{place}.label", why)
    for name in ("guid", "typeGuid"):
        if not _GUID.fullmatch(partition.get(name, "")):
            findings.add(
                "the GUID is not valid", f"{place}.{name}", "", "write it as 01234567-89AB-CDEF-EDCB-A98765432101"
            )


def _raid(array: Storage, place: str, findings: Findings) -> None:
    level = array.get("level", "")
    if level and level not in _LEVELS:
        findings.add("the level is unknown", f"{place}.level", "", f"choose one of {', '.join(sorted(_LEVELS))}")
    if level in _LEVELS_WITHOUT_SPARES and array.get("spares"):
        findings.add("the level has no spares", f"{place}.level")
    if not array.get("devices"):
        findings.add("a field is missing", f"{place}.devices", "", "set it")
    for position, device in enumerate(array.get("devices", ())):
        if why := paths.fault(device):
            findings.add("the path is not valid", f"{place}.devices[{position}]", why)
    findings.unique(array.get("devices", ()), f"{place}.devices", "")


def _filesystem(system: Storage, minor: int, place: str, findings: Findings) -> None:
    _device(system.get("device", ""), f"{place}.device", findings)
    _device(system.get("path", ""), f"{place}.path", findings)
    form, label = system.get("format", ""), system.get("label", "")
    known = {*_LONGEST_LABEL, *(("none",) if minor >= _NO_FORMAT_SINCE else ())}
    others = ("path", "label", "uuid", "wipeFilesystem", "mountOptions", "options")
    if not form and any(system.get(name) for name in others):
        findings.add("a field is missing", f"{place}.format", "", "set it")
    elif form and form not in known:
        findings.add("the format is unknown", f"{place}.format", "", f"choose one of {', '.join(sorted(known))}")
    if len(label.encode("utf-8", "replace")) > _LONGEST_LABEL.get(form, len(label) * 4):
        findings.add("the label is not valid", f"{place}.label", f"{form} has at most {_LONGEST_LABEL[form]} bytes")


def _luks(volume: Storage, minor: int, place: str, findings: Findings) -> None:
    _device(volume.get("device", ""), f"{place}.device", findings)
    if "/" in volume.get("name", ""):
        findings.add("the name is not valid", f"{place}.name", "it has a slash")
    if len(volume.get("label", "").encode("utf-8", "replace")) > _LONGEST_LUKS_LABEL:
        findings.add("the label is not valid", f"{place}.label", f"it has more than {_LONGEST_LUKS_LABEL} bytes")
    clevis = volume.get("clevis", {})
    pin = clevis.get("custom", {})
    bound = bool(clevis.get("tang") or clevis.get("tpm2") or clevis.get("threshold"))
    if pin.get("pin") and bound:
        findings.add("the pins are not valid", f"{place}.clevis", "custom excludes tang, tpm2 and threshold")
    if pin.get("pin") or pin.get("config") or pin.get("needsNetwork"):
        _pin(pin, minor, f"{place}.clevis.custom", findings)
    if volume.get("cex", {}).get("enabled") and (bound or pin.get("pin") or volume.get("keyFile", {}).get("source")):
        findings.add("the key is not valid", f"{place}.cex", "it excludes clevis and keyFile")
    for position, server in enumerate(clevis.get("tang", ())):
        _tang(server, f"{place}.clevis.tang[{position}]", findings)
    findings.unique(clevis.get("tang", ()), f"{place}.clevis.tang", "url")
    findings.unique(volume.get("openOptions", ()), f"{place}.openOptions", "")


def _pin(pin: Storage, minor: int, place: str, findings: Findings) -> None:
    for name in ("pin", "config"):
        if not pin.get(name):
            findings.add("a field is missing", f"{place}.{name}", "", "set it")
    if pin.get("pin") and pin["pin"] not in _CLEVIS_PINS and minor < _ANY_PIN_SINCE:
        findings.add("the pin is unknown", f"{place}.pin", "", f"choose one of {', '.join(sorted(_CLEVIS_PINS))}")


def _tang(server: Storage, place: str, findings: Findings) -> None:
    if server.get("url") and remote_urls.scheme(server["url"]) not in ("http", "https"):
        findings.add("the URL is not valid", f"{place}.url", "its scheme is neither http nor https")
    if server.get("advertisement"):
        try:
            json.loads(server["advertisement"])
        except (ValueError, RecursionError):
            findings.add("the advertisement is not valid", f"{place}.advertisement", "it is not JSON")
