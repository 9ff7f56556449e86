# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A minimal system that installs itself: a Debian kernel, and an initramfs that downloads the files in its kernel arguments and prints their checksums."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import shutil
import struct
import subprocess

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import DOMAIN, Site
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import boot_sector
from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import VIRTUAL_MACHINE, ensure_arm64, ensure_packages
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

INSTALLED = "INSTALLED-BY-NETWORK"
#: Modules in the order of their dependencies.
_MODULES = (
    "net/core/failover",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
)
BLOCK = "drivers/block/virtio_blk"
_START = """#!/bin/sh
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev; exec >/dev/console 2>&1 </dev/console
for m in /modules/*; do insmod $m; done
while [ ! -e /sys/class/net/eth0 ]; do sleep 0.1; done
ip link set eth0 up; udhcpc -i eth0 -n -q -t 10 -T 1 -s /event
"""
_FETCH = f"""firmware=bios; [ ! -d /sys/firmware/efi ] || firmware=uefi; dmesg | grep -q 'Secure boot enabled' && firmware=secure-boot
for a in $(cat /proc/cmdline); do case $a in
coreos.inst.ignition_url=* | inst.ks=*) wget -q -O /ignition ${{a#*=}};; coreos.live.rootfs_url=*) wget -q -O /rootfs ${{a#*=}};; esac; done
echo "{INSTALLED} $(sha256sum /ignition | cut -c1-64) $(sha256sum /rootfs | cut -c1-64) $(cat /name) $firmware"
"""
_EVENT = """#!/bin/sh
[ "$1" = bound ] || exit 0
ip addr add $ip/${mask:-24} dev $interface; echo $hostname.$domain >/name; echo "nameserver $dns" >/etc/resolv.conf
"""
_APPLETS = (
    "sh",
    "mount",
    "umount",
    "insmod",
    "ip",
    "udhcpc",
    "wget",
    "sleep",
    "echo",
    "poweroff",
    "reboot",
    "sha256sum",
    "cut",
    "cat",
    "dmesg",
    "grep",
    "sync",
)


@dataclasses.dataclass(frozen=True)
class Program:
    """The script of an initramfs after the setup of its network, and additional kernel modules that it needs."""

    script: str
    modules: tuple[str, ...] = ()


FETCHES = Program(f"{_FETCH}poweroff -f\n")
#: Really installs a system: it writes a bootable sector to the disk, and reboots like an installer.
INSTALLS = Program(f"{_FETCH}cat /sector >/dev/vda; sync; reboot -f\n", (BLOCK,))

#: A live system that installs itself by its ignition file, which is in its initramfs or at the URL in its arguments.
LIVE = Program(
    f"""for a in $(cat /proc/cmdline); do case $a in
ignition.config.url=*) wget -q -O /config.ign ${{a#*=}};; coreos.live.rootfs_url=*) wget -q -O /rootfs ${{a#*=}};; esac; done
echo "{INSTALLED} $(sha256sum /config.ign | cut -c1-64) $(sha256sum /rootfs | cut -c1-64) $(cat /name)"
cat /sector >/dev/vda; sync; reboot -f
""",
    (BLOCK,),
)


@dataclasses.dataclass(frozen=True)
class Installer:
    """Kernel and initramfs."""

    kernel: pathlib.Path
    initramfs: pathlib.Path

    @classmethod
    def of(cls, folder: pathlib.Path, program: Program = FETCHES) -> Installer:
        """Existing files in the folder `root` of the folder are added to the initramfs."""
        busybox = shutil.which("busybox")
        assert busybox, "the rig requires busybox"
        return cls._build(ensure_packages(say, VIRTUAL_MACHINE), folder, pathlib.Path(busybox), program)

    @classmethod
    def of_arm64(cls, folder: pathlib.Path) -> Installer:
        packages = ensure_arm64(say)
        (package,) = packages.glob("busybox-static_*.deb")
        _extract(package, folder / "programs")
        return cls._build(packages, folder, folder / "programs" / "bin" / "busybox", FETCHES)

    @classmethod
    def _build(cls, packages: pathlib.Path, folder: pathlib.Path, busybox: pathlib.Path, program: Program) -> Installer:
        (package,) = packages.glob("linux-image-6*.deb")
        _extract(package, folder / "kernel")
        (kernel,) = (folder / "kernel" / "boot").glob("vmlinuz-*")
        (modules,) = (folder / "kernel" / "lib" / "modules").iterdir()
        _lay_out(folder / "root", modules / "kernel", busybox, program)
        script = 'cd "$1" && find . | busybox cpio -o -H newc | gzip -1 >"$2"'
        subprocess.run(
            ["sh", "-ec", script, "pack", str(folder / "root"), str(folder / "initramfs")],
            check=True,
            capture_output=True,
        )
        return cls(kernel, folder / "initramfs")

    def put_in(self, site: Site) -> None:
        """Replaces the files of a site, which cannot be booted."""
        for artifact, path in zip(site.variables["dns_pxe_artifacts"], (self.kernel, self.initramfs), strict=False):
            artifact.update(artifact_of(path))
        for profile in site.variables["dns_pxe_profiles"]:
            profile["arguments"] += ["console=ttyS0", "panic=5"]
        # The network of these computers does not support a larger MTU.
        site.variables["dns_pxe_networks"][0]["mtu"] = 1500


def installed(site: Site, name: str, role: str, firmware: str) -> str:
    """The line that a machine prints after its installation with this firmware and the files of its role."""
    ignition = hashlib.sha256((site.folder / f"{role}.ign").read_bytes()).hexdigest()
    rootfs = site.variables["dns_pxe_artifacts"][2]["checksum"].removeprefix("sha256:")
    return f"{INSTALLED} {ignition} {rootfs} {name}.{DOMAIN} {firmware}"


def artifact_of(path: pathlib.Path) -> dict[str, str]:
    return {"source": str(path), "checksum": f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"}


def _extract(package: pathlib.Path, folder: pathlib.Path) -> None:
    subprocess.run(["dpkg-deb", "--extract", str(package), str(folder)], check=True, capture_output=True)


def _lay_out(root: pathlib.Path, modules: pathlib.Path, busybox: pathlib.Path, program: Program) -> None:
    for name in ("bin", "etc", "proc", "sys", "dev", "modules"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(busybox, root / "bin" / "busybox")
    for name in _APPLETS:
        (root / "bin" / name).symlink_to("busybox")
    for number, name in enumerate((*_MODULES, *program.modules)):
        shutil.copy(modules / f"{name}.ko", root / "modules" / f"{number}.ko")
    (root / "sector").write_bytes(boot_sector())
    for name, text in (("init", _START + program.script), ("event", _EVENT)):
        (root / name).write_text(text, encoding="ascii")
        (root / name).chmod(0o755)


def unsigned(kernel: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Writes the kernel without its signature, which is at the end of a PE file and located by its fifth directory."""
    content = bytearray(kernel.read_bytes())
    (header,) = struct.unpack_from("<I", content, 0x3C)
    # The directories follow the signature, the header of COFF, and 112 bytes of the 64-bit optional header.
    entry = header + 24 + 112 + 4 * 8
    begin, size = struct.unpack_from("<II", content, entry)
    assert size and begin + size == len(content), "the signature is expected at the end"
    struct.pack_into("<II", content, entry, 0, 0)
    target.write_bytes(content[:begin])
    return target
