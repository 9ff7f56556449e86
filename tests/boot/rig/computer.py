# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A computer without an operating system, in software emulation, with a card on the rig's bridge: what it boots, it says on its serial line."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import VIRTUAL_MACHINE, ensure_packages
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

DISK = "THE-DISK-HAS-BOOTED"
INSTALLED = "INSTALLED-BY-NETWORK"
_REPOSITORY = "/computers"
#: In the order in which each needs the one before.
_MODULES = (
    "net/core/failover", "drivers/virtio/virtio", "drivers/virtio/virtio_ring", "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci_legacy_dev", "drivers/virtio/virtio_pci", "drivers/net/net_failover", "drivers/net/virtio_net",
)  # fmt: skip
# What an installer does, in small: it gets an address, fetches what its kernel arguments name, and says what it was.
_INIT = f"""#!/bin/sh
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev; exec >/dev/ttyS0 2>&1 </dev/ttyS0
for m in /modules/*; do insmod $m; done
while [ ! -e /sys/class/net/eth0 ]; do sleep 0.1; done
ip link set eth0 up; udhcpc -i eth0 -n -q -t 10 -T 1 -s /event
for a in $(cat /proc/cmdline); do case $a in
coreos.inst.ignition_url=*) wget -q -O /ignition ${{a#*=}};; coreos.live.rootfs_url=*) wget -q -O /rootfs ${{a#*=}};; esac; done
echo "{INSTALLED} $(sha256sum /ignition | cut -c1-64) $(sha256sum /rootfs | cut -c1-64) $(cat /name)"
poweroff -f
"""
_EVENT = '#!/bin/sh\n[ "$1" = bound ] || exit 0\nip addr add $ip/${mask:-24} dev $interface; echo $hostname.$domain >/name\n'
_APPLETS = ("sh", "mount", "insmod", "ip", "udhcpc", "wget", "sleep", "echo", "poweroff", "sha256sum", "cut", "cat")


def ensure_computers() -> pathlib.Path:
    return ensure_packages(say, VIRTUAL_MACHINE)


def installer(packages: pathlib.Path, folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Kernel and initramfs of a system that installs itself."""
    (package,) = packages.glob("linux-image-6*.deb")
    subprocess.run(["dpkg-deb", "--extract", str(package), str(folder / "kernel")], check=True, capture_output=True)
    (kernel,) = (folder / "kernel" / "boot").glob("vmlinuz-*")
    (modules,) = (folder / "kernel" / "lib" / "modules").iterdir()
    root = folder / "root"
    for name in ("bin", "proc", "sys", "dev", "modules"):
        (root / name).mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert busybox, "it is among what the rig needs"
    shutil.copy(busybox, root / "bin" / "busybox")
    for name in _APPLETS:
        (root / "bin" / name).symlink_to("busybox")
    for number, name in enumerate(_MODULES):
        shutil.copy(modules / "kernel" / f"{name}.ko", root / "modules" / f"{number}.ko")
    for name, text in (("init", _INIT), ("event", _EVENT)):
        (root / name).write_text(text, encoding="ascii")
        (root / name).chmod(0o755)
    script = "cd \"$1\" && find . | busybox cpio -o -H newc | gzip -1 >\"$2\""
    subprocess.run(["sh", "-ec", script, "pack", str(root), str(folder / "initramfs")], check=True, capture_output=True)
    return kernel, folder / "initramfs"


class Computers:
    """A machine of the rig in which computers run, one after the other."""

    def __init__(self, rig: BootRig, name: str) -> None:
        self.machine: Machine = rig.machine(name, {str(ensure_computers()): _REPOSITORY})
        self.machine.sh(
            f"echo 'deb [trusted=yes] file:{_REPOSITORY} ./' >>/etc/apt/sources.list; apt-get -qq update; "
            "apt-get -qq install --no-install-recommends qemu-system-x86 seabios ipxe-qemu >/dev/null 2>&1; "
            # The machine's own card becomes the way of its computers onto the rig's bridge.
            "ip link add br0 type bridge forward_delay 0; ip link set eth0 master br0; ip link set br0 up; "
            "ip tuntap add dev tap0 mode tap; ip link set tap0 master br0 up",
            seconds=300,
        )

    def boots(self, mac: str, *, seconds: int = 120) -> str:
        """What a computer with BIOS and this MAC says until it ends, or its disk has booted."""
        # A boot sector that says one sentence on the serial line and halts.
        code = b"\xba\xf8\x03" + b"".join(b"\xb0" + bytes([one]) + b"\xee" for one in f"{DISK}\n".encode()) + b"\xf4\xeb\xfd"
        sector = "".join(f"\\{byte:03o}" for byte in code.ljust(510, b"\0") + b"\x55\xaa")
        argv = (
            "qemu-system-x86_64 -accel tcg -cpu max -machine pc -m 512 -display none -monitor none -no-reboot -boot order=nc -serial file:/var/tmp/serial "
            f"-netdev tap,id=n0,ifname=tap0,script=no,downscript=no -device virtio-net-pci,netdev=n0,mac={mac} "
            "-drive file=/var/tmp/disk,format=raw,if=ide"
        )
        self.machine.sh(f"printf '{sector}' >/var/tmp/disk; truncate -s 1M /var/tmp/disk; : >/var/tmp/serial")
        # A computer that has booted its disk stays there.
        script = f"{argv} & computer=$!; for _ in $(seq {seconds * 5}); do kill -0 $computer 2>/dev/null || break; "
        script += f"if grep -q {DISK} /var/tmp/serial; then kill $computer; break; fi; sleep 0.2; done; kill $computer 2>/dev/null || :; cat /var/tmp/serial"
        return self.machine.sh(script, check=False, seconds=seconds + 60)
