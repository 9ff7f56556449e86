# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for CoreOS: what a machine boots by network, and the disk that it writes. Ignition on that disk is the real one.

The live system does what coreos-installer does by its kernel arguments: it fetches root file system and ignition file, writes the one to the disk and the
other beside it, and restarts. The disk's first boot runs Ignition and restarts once more, as CoreOS does before it is a node. From then on a
bootstrap machine hands the files that Ignition has written to the rig, where they become a control plane, and forwards the ports of that; any other machine
runs a stand-in for kubelet.
"""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
import subprocess

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.disk_image import FIRST, SECTOR, write_disk
from ansible_collections.hwaccel.gpu.tests.boot.rig.installer import BLOCK, Installer, Program
from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import ensure_packages
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import GATEWAY
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

#: What is on the console: when the disk is written, when Ignition has ended, and when its files are given to the rig.
WRITES, IGNITED, HANDS_OVER = "COREOS-IS-WRITTEN", "IGNITION-HAS-PASSED", "FILES-FOR-THE-CONTROL-PLANE"
#: Port of the rig that takes the bootstrap machine's files, as an archive.
FILES_PORT = 6666
#: Ports of the rig with the servers of machine configs that masters run: with TLS, and without.
CLUSTER_PORTS = (22633, 22634)
#: Port of the rig with the logs of pods.
LOGS_PORT = 6667
#: Packages that make the disk.
PROGRAMS = ("syslinux", "syslinux-common", "mtools", "dosfstools", "ignition")
DISK_GIB = 1
#: The second one is a folder that the rig reads, too.
_REPOSITORY, _PARTS = "/coreos-programs", "/rig/coreos"
_ENGINE = "/usr/lib/dracut/modules.d/30ignition/ignition"
#: In the order of the units of CoreOS' initramfs.
_STAGES = "fetch-offline fetch kargs disks mount files umount"
_ROOT = "/dev/vda2"
#: Sizes of the boot partition and of the root partition.
_BOOT_SECTORS, _ROOT_SECTORS = 1 << 18, 1 << 17
_NODE = "/bin/machine"
_LIVE = Program(
    rf"""busybox --install -s /bin
for a in $(cat /proc/cmdline); do case $a in
coreos.inst.install_dev=*) device=${{a#*=}};; coreos.inst.ignition_url=*) ignition=${{a#*=}};; coreos.live.rootfs_url=*) rootfs=${{a#*=}};; esac; done
until wget -q -O /rootfs "$rootfs"; do
  echo "coreos-livepxe-rootfs: Couldn't establish connectivity with the server specified by coreos.live.rootfs_url=. Retrying in 5s..."; sleep 5; done
until wget -q -O /config.ign "$ignition"; do echo "coreos-installer: Error: fetching $ignition. Retrying in 5s..."; sleep 5; done
if [ ! -b "$device" ]; then
  echo "coreos-installer: Error: statting $device: No such file or directory (os error 2)"; echo "coreos-installer failed"; sleep 100000; fi
gunzip -c /rootfs >"$device"; sync; blockdev --rereadpt "$device"
mkdir /target; mount -t ext4 "${{device}}2" /target; mkdir -p /target/boot/ignition
cp /config.ign /target/boot/ignition/config.ign; touch /target/boot/ignition.firstboot
umount /target; sync; echo "{WRITES} $(cat /name) $device"; reboot -f
""",
    (BLOCK,),
)
_INSTALLED = Program(
    rf"""busybox --install -s /bin
mount -t ext4 {_ROOT} /sysroot
if [ -e /sysroot/boot/ignition.firstboot ]; then
  mkdir -p /usr/lib/ignition; cp /sysroot/boot/ignition/config.ign /usr/lib/ignition/user.ign
  for stage in {_STAGES}; do
    {_ENGINE} --platform=metal --root=/sysroot --log-to-stdout --stage=$stage || {{ echo "Ignition failed in stage $stage"; sleep 300; reboot -f; }}
  done
  rm /sysroot/boot/ignition.firstboot; umount /sysroot; sync; echo "{IGNITED} $(cat /name)"; reboot -f
fi
address=$(ip -o -4 addr show dev eth0 | tr / ' ' | tr -s ' ' | cut -d ' ' -f 4)
if [ -d /sysroot/opt/openshift ]; then
  {_NODE} forward 6443={GATEWAY}:6443 22623={GATEWAY}:22623 22624={GATEWAY}:22624 &
  until tar -C /sysroot -c -f - opt/openshift | nc {GATEWAY} {FILES_PORT}; do sleep 1; done
  echo "{HANDS_OVER} $(cat /name)"; wait
fi
role=$(sed -n 's|.*:22623/config/\([a-z]*\).*|\1|p' /sysroot/boot/ignition/config.ign)
[ "$role" = master ] && forward="--forward 6443={GATEWAY}:6443,22623={GATEWAY}:{CLUSTER_PORTS[0]},22624={GATEWAY}:{CLUSTER_PORTS[1]}"
{_NODE} node --root /sysroot --name "$(cat /name)" --address "$address" --role "$role" --logs {GATEWAY}:{LOGS_PORT} $forward
echo "the node has ended"; sleep 100000
""",
    (BLOCK,),
)
#: Ignition adds the user core by programs that a live system of Debian does not have.
_ADD_USER = """#!/bin/sh
for last; do :; done
grep -q "^$last:" /sysroot/etc/passwd || echo "$last:x:1000:1000::/home/$last:/bin/sh" >>/sysroot/etc/passwd
mkdir -p /sysroot/home/$last; chown 1000:1000 /sysroot/home/$last
"""
_PARTITIONS = rf"""cd {_PARTS}
truncate -s {_BOOT_SECTORS * SECTOR} boot; mkfs.fat -h {FIRST} boot >/dev/null; syslinux --install boot
mcopy -i boot kernel ::vmlinuz; mcopy -i boot initramfs ::initramfs
printf 'DEFAULT disk\nPROMPT 0\nLABEL disk\nKERNEL vmlinuz\nINITRD initramfs\nAPPEND console=ttyS0 quiet panic=5 net.ifnames=0\n' >syslinux.cfg
mcopy -i boot syslinux.cfg ::syslinux.cfg
mke2fs -q -t ext4 -d tree root {_ROOT_SECTORS // 2}k
head -c 440 /usr/lib/syslinux/mbr/mbr.bin >mbr
"""


@dataclasses.dataclass(frozen=True)
class CoreOS:
    """folder: with kernel, initramfs and rootfs, which machines boot by network. release: of the kernel."""

    folder: pathlib.Path
    release: str

    @classmethod
    def of(cls, rig: BootRig, folder: pathlib.Path, node: pathlib.Path) -> CoreOS:
        """folder: for its files, which does not exist. node: the stand-in for kubelet."""
        made, disk = folder / "files", folder / "disk"
        for path in (made, folder / "live", disk / "root" / "bin"):
            path.mkdir(parents=True)
        builder = rig.machine("coreos", {str(ensure_packages(say, PROGRAMS)): _REPOSITORY})
        _install(builder)
        _add_ignition(builder, disk / "root", node)
        live, installed = Installer.of(folder / "live", _LIVE), Installer.of(disk, _INSTALLED)
        parts = builder.folder / "rig" / "coreos"
        _lay_out(parts / "tree")
        shutil.copy(installed.kernel, parts / "kernel")
        shutil.copy(installed.initramfs, parts / "initramfs")
        builder.sh(_PARTITIONS, seconds=300)
        write_disk(parts, disk / "raw", _BOOT_SECTORS, _ROOT_SECTORS)
        rig.remove(builder)
        shutil.copy(live.kernel, made / "kernel")
        shutil.copy(live.initramfs, made / "initramfs")
        with (made / "rootfs").open("wb") as rootfs:
            subprocess.run(["gzip", "-1", "-c", str(disk / "raw")], stdout=rootfs, check=True)
        return cls(made, live.kernel.name.removeprefix("vmlinuz-"))


def _install(builder: Machine) -> None:
    builder.sh(
        f"echo 'deb [trusted=yes] file:{_REPOSITORY} ./' >>/etc/apt/sources.list; apt-get -qq update; "
        f"DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends {' '.join(PROGRAMS)} >/dev/null 2>&1",
        seconds=300,
    )


def _add_ignition(builder: Machine, root: pathlib.Path, node: pathlib.Path) -> None:
    """Ignition with its libraries, and what it starts."""
    for name in ("sysroot", "run", "tmp"):
        (root / name).mkdir()
    archive = builder.folder / "rig" / "ignition.tar"
    builder.sh(
        f"tar --create --dereference --absolute-names --file /rig/ignition.tar {_ENGINE} $(ldd {_ENGINE} | grep -o '/[^ ]*')"
    )
    subprocess.run(
        ["tar", "--extract", "--file", str(archive), "--directory", str(root)], check=True, capture_output=True
    )
    # Ignition always labels files for SELinux, for which Debian has no program.
    for name, text in (("setfiles", "#!/bin/sh\n"), ("useradd", _ADD_USER), ("usermod", "#!/bin/sh\n")):
        (root / "bin" / name).write_text(text, encoding="ascii")
        (root / "bin" / name).chmod(0o755)
    shutil.copy(node, root / "bin" / "machine")


def _lay_out(tree: pathlib.Path) -> None:
    """The root file system before Ignition."""
    for name in ("boot", "home", "root", "opt", "var/lib/kubelet", "etc/kubernetes", "etc/selinux"):
        (tree / name).mkdir(parents=True)
    for name, text in (
        ("selinux/config", "SELINUXTYPE=targeted\n"),
        ("passwd", "root:x:0:0::/root:/bin/sh\n"),
        ("group", "root:x:0:\n"),
    ):
        (tree / "etc" / name).write_text(text, encoding="ascii")
