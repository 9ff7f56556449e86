# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Further disks of the machines of a pool, as parts of its MachineConfig. Pure.

Source: "Creating a separate /var partition" in the installation documentation of OpenShift, and with_mount_unit of Butane.
"""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import machine_configs

_VARIABLE = "cluster_openshift_disks"
_FILESYSTEM = "xfs"
_STABLE = re.compile(r"/dev/disk/by-(id|path)/[^\s/]+")
#: Of partitions (GPT): characters of a name.
_LABEL = re.compile(r"[A-Za-z0-9._-]{1,36}")
#: MiB of the system's own partitions on the disk that it is installed on, as the documentation leaves free.
_SYSTEM = 25000
_UNIT = r"""[Unit]
Requires=systemd-fsck@{device}.service
After=systemd-fsck@{device}.service

[Mount]
Where={mount}
What={what}
Type={filesystem}
Options=defaults,prjquota

[Install]
RequiredBy=local-fs.target
"""


def faults(given: c.Mapping[str, t.Any], installed: c.Collection[str]) -> list[Fault]:
    """given: by pool, of the form that inputs.py has checked. installed: disks on which the system is installed."""
    found = []
    for pool, entries in given.items():
        mounts: set[str] = set()
        for number, one in enumerate(entries):
            where = f"{_VARIABLE}.{pool}[{number}]"
            found += list(_wrong(one, where, installed))
            if one["mount"] in mounts:
                found.append(Fault(f"{one['mount']} is mounted twice", where, "", "remove one of them"))
            mounts.add(one["mount"])
    return found


def _wrong(one: c.Mapping[str, t.Any], where: str, installed: c.Collection[str]) -> c.Iterator[Fault]:
    device, mount = str(one["device"]), str(one["mount"])
    if not _STABLE.fullmatch(device):
        why = "another disk may get its name"
        yield Fault(f"{values.shown(device)} is no stable name", where, why, "give one in /dev/disk/by-id or by-path")
    if device in installed and int(one.get("start_mib") or 0) < _SYSTEM:
        why = "the system is installed on it"
        yield Fault(f"{device} has the system's partitions", where, why, f"set start_mib: {_SYSTEM} or more")
    if not re.fullmatch(r"/var(/[A-Za-z0-9._-]+)*", mount):
        why = "all else belongs to the operating system"
        yield Fault(f"{values.shown(mount)} is not /var or below it", where, why, "mount it there")
    if not _LABEL.fullmatch(_label(one)):
        yield Fault(f"{values.shown(_label(one))} is no name of a partition", where, "", "set label")


def parts(given: c.Mapping[str, c.Sequence[c.Mapping[str, t.Any]]]) -> list[machine_configs.Part]:
    """One of each pool, in which a disk has all its partitions."""
    return [_part(pool, entries) for pool, entries in given.items() if entries]


def _part(pool: str, entries: c.Sequence[c.Mapping[str, t.Any]]) -> machine_configs.Part:
    partitions: dict[str, list[dict[str, t.Any]]] = {}
    for one in entries:
        partition = {
            "label": _label(one),
            "startMiB": int(one.get("start_mib") or 0),
            "sizeMiB": int(one.get("size_mib") or 0),
        }
        partitions.setdefault(one["device"], []).append(partition)
    storage = {
        "disks": [{"device": device, "wipeTable": False, "partitions": some} for device, some in partitions.items()],
        "filesystems": [_filesystem(one) for one in entries],
    }
    config = {"storage": storage, "systemd": {"units": [_mount(one) for one in entries]}}
    return machine_configs.of_pool(pool, f"{_VARIABLE}.{pool}", config)


def _filesystem(one: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    options = ["defaults", "prjquota"]
    return {"device": _device(one), "path": one["mount"], "format": _format(one), "mountOptions": options}


def _mount(one: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    device = _device(one)
    text = _UNIT.format(device=escaped(device), mount=one["mount"], what=device, filesystem=_format(one))
    return {"name": f"{escaped(one['mount'])}.mount", "enabled": True, "contents": text}


def _device(one: c.Mapping[str, t.Any]) -> str:
    return f"/dev/disk/by-partlabel/{_label(one)}"


def _format(one: c.Mapping[str, t.Any]) -> str:
    return str(one.get("filesystem") or _FILESYSTEM)


def _label(one: c.Mapping[str, t.Any]) -> str:
    return str(one.get("label") or str(one["mount"]).strip("/").replace("/", "-"))


def escaped(path: str) -> str:
    """As systemd-escape(1) does with --path."""
    return "".join(
        "-" if letter == "/" else letter if letter.isalnum() or letter in ":_." else f"\\x{ord(letter):02x}"
        for letter in path.strip("/")
    )
