# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requirements of a machine for containers with GPUs."""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, Version, version_of, version_text

#: The folder of container images.
_IMAGES = "/var/lib"


@dataclasses.dataclass(frozen=True)
class Requirement:
    """A minimum version. when: on which machines it is required. source: of the version."""

    what: str
    found: c.Callable[[Host], Version]
    least: Version
    why: str
    source: str
    remedy: str
    when: c.Callable[[Host], bool] = lambda host: True


def is_tegra(host: Host) -> bool:
    """Whether it is a Jetson board, whose GPU is not a PCI device."""
    return bool(host.fact("tegra"))


def cgroup_version(host: Host) -> int:
    """2 where the unified hierarchy is mounted (docs/concepts/architecture/cgroups of Kubernetes)."""
    return 2 if host.fact("cgroup") == "cgroup2fs" else 1


def _program(name: str) -> c.Callable[[Host], Version]:
    return lambda host: host.version(name)


def _release(host: Host) -> Version:
    """L4T 36.4.0 of `# R36 (release), REVISION: 4.0, GCID: …`."""
    words = host.fact("tegra").replace(",", " ").replace("R", " ").split()
    return (
        version_of(f"{words[1]}.{words[words.index('EVISION:') + 1]}") if "EVISION:" in words and len(words) > 1 else ()
    )


_PLUGIN = "https://github.com/NVIDIA/k8s-device-plugin/blob/v0.17.1/README.md#prerequisites"
TABLE = (
    Requirement(
        "the NVIDIA driver",
        lambda host: version_of(host.fact("driver")),
        (384, 81),
        "the device plugin needs it",
        _PLUGIN,
        "update the driver of the host, or use that of the role driver",
        lambda host: not is_tegra(host),
    ),
    Requirement(
        "NVIDIA's container toolkit",
        _program("nvidia_ctk"),
        (1, 7),
        "the device plugin needs it",
        _PLUGIN,
        "raise node_runtime_toolkit_version",
    ),
    Requirement(
        "NVIDIA's container toolkit",
        _program("nvidia_ctk"),
        (1, 11),
        "it is the first that supports GPUs of Jetson boards",
        _PLUGIN,
        "raise node_runtime_toolkit_version",
        is_tegra,
    ),
    Requirement(
        "JetPack's Linux for Tegra",
        _release,
        (32,),
        "JetPack 4 is the first with a container runtime",
        "https://developer.nvidia.com/embedded/jetson-linux-archive",
        "flash JetPack 4 or later",
        is_tegra,
    ),
    Requirement(
        "kubelet",
        _program("kubelet"),
        (1, 20),
        "it is the first with RuntimeClass in node.k8s.io/v1",
        "https://kubernetes.io/docs/concepts/containers/runtime-class",
        "upgrade Kubernetes",
    ),
    Requirement(
        "containerd",
        _program("containerd"),
        (1, 6),
        "older releases are not supported and not tested",
        "https://containerd.io/releases",
        "upgrade containerd",
    ),
    Requirement(
        "Docker",
        _program("docker"),
        (19, 3),
        "it is the first with --gpus",
        "https://docs.docker.com/engine/release-notes/19.03",
        "upgrade Docker",
    ),
    Requirement(
        "Docker",
        _program("docker"),
        (20, 10),
        "it is the first that supports cgroup version 2, which this machine has",
        "https://docs.docker.com/engine/release-notes/20.10",
        "upgrade Docker",
        lambda host: cgroup_version(host) == 2,
    ),
    Requirement(
        "CRI-O",
        _program("crio"),
        (1, 24),
        "1.23 does not support CDI",
        "https://github.com/cri-o/cri-o/tree/v1.23.0/pkg/config",
        "upgrade CRI-O",
    ),
    Requirement(
        "the kernel",
        lambda host: version_of(host.fact("kernel")),
        (5, 8),
        "it is the first with complete support of cgroup version 2, which this machine has",
        "https://kubernetes.io/docs/concepts/architecture/cgroups#requirements",
        "boot a newer kernel",
        lambda host: cgroup_version(host) == 2,
    ),
)
CHECKS = ("versions", "nouveau", "secure_boot", "swap", "clock", "disk", "cgroup")
#: kubelet refuses cgroup version 1 since this version (KEP-5573, https://www.kubernetes.dev/resources/keps/5573).
_NO_CGROUP_1 = (1, 35)


def faults(host: Host, least_disk_gib: float, skipped: c.Collection[str] = ()) -> list[Fault]:
    """All problems. Missing software is not a problem, because other roles install it. skipped: tolerated ones of CHECKS."""
    found = [
        (
            "versions",
            Fault(
                f"{one.what} is {version_text(version)}, but at least {version_text(one.least)} is required",
                one.source,
                one.why,
                one.remedy,
            ),
        )
        for one in TABLE
        if (version := one.found(host)) and one.when(host) and version < one.least
    ]
    return [fault for name, fault in found + _conditions(host, least_disk_gib) if name not in skipped]


def _conditions(host: Host, least_disk_gib: float) -> list[tuple[str, Fault]]:
    found: list[tuple[str, Fault]] = []
    if "nouveau" in host.fact("modules").split():
        why, next_step = (
            "it uses the GPU, so NVIDIA's driver cannot",
            "add `blacklist nouveau` to /etc/modprobe.d, rebuild the initramfs and reboot",
        )
        found.append(("nouveau", Fault("the kernel module nouveau is loaded", "/proc/modules", why, next_step)))
    if host.fact("secure_boot") == "1" and host.fact("module_file") and not host.fact("signer"):
        why, next_step = (
            "the kernel refuses modules without a trusted signature",
            "sign it with an enrolled key (mokutil), or use signed packages",
        )
        found.append(
            (
                "secure_boot",
                Fault("Secure Boot is on and NVIDIA's module is not signed", host.fact("module_file"), why, next_step),
            )
        )
    kubelet = host.unit("kubelet")
    if host.fact("swap") and kubelet.loaded and not kubelet.active:
        why, next_step = (
            "kubelet does not start with it (failSwapOn)",
            "swapoff --all and remove it from /etc/fstab, or set failSwapOn: false and memorySwap",
        )
        found.append(("swap", Fault("swap is on", "/proc/swaps", why, next_step)))
    if host.fact("clock") == "no":
        why, next_step = (
            "machines with different clocks refuse certificates",
            "start chronyd or systemd-timesyncd, and verify with `timedatectl`",
        )
        found.append(("clock", Fault("the clock is not synchronized", "timedatectl", why, next_step)))
    free = float(host.fact("free_bytes") or "inf") / 1024**3
    if free < least_disk_gib:
        why, next_step = "an image with CUDA needs several GiB", "free space, or lower node_runtime_min_disk_gib"
        found.append(("disk", Fault(f"{free:.1f} GiB are free, less than {least_disk_gib:g}", _IMAGES, why, next_step)))
    if cgroup_version(host) == 1 and host.version("kubelet") >= _NO_CGROUP_1:
        why, next_step = (
            "kubelet does not start with it since 1.35",
            "boot with systemd.unified_cgroup_hierarchy=1, or set failCgroupV1: false until 1.38",
        )
        found.append(("cgroup", Fault("the machine has cgroup version 1", "/sys/fs/cgroup", why, next_step)))
    return found
