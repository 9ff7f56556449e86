# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role node_runtime observes of a machine."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import CommandRequest, Request
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import (
    cdi,
    containerd,
    docker,
    drop_ins,
    originals,
    programs,
)

_RANCHER = ("k3s", "rke2")
#: Files in addition to containerd's configuration. Their originals are read, too.
_FILES = (
    containerd.DROP_IN,
    containerd.OF_TOOLKIT_CONTAINER,
    docker.CONFIG,
    drop_ins.CRIO_DROP_IN,
    *map(drop_ins.drop_in, _RANCHER),
    *(path for product in _RANCHER for path in drop_ins.template_paths(product)),
    "/etc/nvidia-container-runtime/config.toml",
    *cdi.UNIT_FILES,
)
_UNITS = (
    "containerd",
    "docker",
    "crio",
    "k3s",
    "k3s-agent",
    "rke2-server",
    "rke2-agent",
    "kubelet",
    cdi.OF_TOOLKIT,
    cdi.OURS,
)
_NVIDIA, _RUNTIME, _PACKAGE = "0x10de", "nvidia-container-runtime", "nvidia-container-toolkit"
_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_DENIALS = "ausearch -m avc -ts today | sed -n '/container_t/{/nvidia\\|xserver_misc_device_t/p;}' | sed -n '1,5p'"
_FACTS: dict[str, tuple[str, ...]] = {
    "ostree": ("exists", "/run/ostree-booted"),
    "usr_writable": ("writable", "/usr"),
    "etc_writable": ("writable", "/etc"),
    "local_writable": ("writable", "/usr/local"),
    "architecture": ("output", "uname", "-m"),
    "tegra": ("lines", "/etc/nv_tegra_release", "^# R"),
    "csv": ("paths", "/etc/nvidia-container-runtime/host-files-for-container.d/*.csv"),
    "gpus": ("pci", _NVIDIA, "^0x03"),
    "modules": ("modules", "nvidia", "nouveau"),
    "driver": ("lines", "/sys/module/nvidia/version", "."),
    "driver_in_container": ("exists", "/run/nvidia/driver/usr"),
    "module_file": ("output", "modinfo", "-F", "filename", "nvidia"),
    "signer": ("output", "modinfo", "-F", "signer", "nvidia"),
    "secure_boot": ("output", "od", "-An", "-t", "u1", "-j", "4", "-N", "1", _SECURE_BOOT),
    "cgroup": ("output", "stat", "-f", "-c", "%T", "/sys/fs/cgroup"),
    "swap": ("lines", "/proc/swaps", "^(?!Filename).+"),
    "clock": ("output", "timedatectl", "show", "-p", "NTPSynchronized", "--value"),
    "free_bytes": ("free", "/var/lib"),
    "apparmor": ("lines", "/sys/module/apparmor/parameters/enabled", "."),
    "container_use_devices": ("output", "getsebool", "container_use_devices"),
    "denials": ("output", "sh", "-c", _DENIALS),
    "managers": ("programs", "apt-get", "dnf", "rpm-ostree"),
    "package": ("version", _PACKAGE),
    "runtime_binary": ("program", _RUNTIME, f"/usr/local/nvidia/toolkit/{_RUNTIME}"),
    "runtime_since": ("changed_at", _RUNTIME),
    **{
        f"{product}_generated": ("count", f"/var/lib/rancher/{product}/agent/etc/containerd/config.toml", _RUNTIME)
        for product in _RANCHER
    },
}
_VERSIONS = {
    "containerd": "containerd",
    "docker": "dockerd",
    "crio": "crio",
    "k3s": "k3s",
    "rke2": "rke2",
    "kubelet": "kubelet",
}


def request(settings: c.Mapping[str, t.Any]) -> Request:
    """settings: the role's variables by their names without node_runtime_."""
    config = str(settings["containerd_config"])
    return Request(
        files=(config, *_FILES, originals.RECORD, *map(originals.original, (*_FILES, config))),
        imports=(config,),
        checksums=tuple(map(programs.path, programs.NAMES)),
        units=_UNITS,
        commands=(
            *(CommandRequest(name, (program, "--version")) for name, program in _VERSIONS.items()),
            CommandRequest("nvidia_ctk", ("nvidia-ctk", "--version")),
            # A query while it is stopped would start it by its socket.
            CommandRequest(
                "docker_live_restore", ("docker", "info", "--format", "{{.LiveRestoreEnabled}}"), active="docker"
            ),
            CommandRequest("containerd_dump", ("containerd", "-c", config, "config", "dump"), file=config),
            CommandRequest("containerd_dump", ("containerd", "config", "default"), no_file=config),
        ),
        facts=_FACTS,
        path=("/var/lib/rancher/rke2/bin",),
    )
