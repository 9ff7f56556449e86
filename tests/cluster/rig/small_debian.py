# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small Debian for an emulated computer: an installer that obeys an answer file of debian-installer, and the disk that it writes.

The disk has what a machine of the rig has, and a kernel of its own. Debian's installer itself would need its packages from a mirror, and hours in emulation:
this one takes the answers that stand in for what a user would type (target disk, host name, account, mirror), and runs late_command as that does.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import pathlib
import typing as t

from ansible_collections.hwaccel.gpu.tests.boot.rig.disk_image import FIRST, SECTOR, write_disk
from ansible_collections.hwaccel.gpu.tests.boot.rig.installer import BLOCK, Installer, Program
from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import ensure_packages
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import POD_NETWORK
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import GATEWAY
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

#: What the installer and the disk print on the console.
INSTALLS, STARTS = "INSTALLS-BY-ANSWER-FILE", "STARTS-FROM-DISK"
#: File of the mirror's folder.
IMAGE = "disk"
#: Packages that make the disk.
PROGRAMS = ("syslinux", "syslinux-common", "mtools", "dosfstools")
#: The last one is a folder of the host that a machine may write to, and that no tree of files contains.
_REPOSITORY, _INSTALLER, _OUT = "/disk-programs", "/installer", "/var/lib/kubelet"
_MODULES = (BLOCK,)
_ROOT = "/dev/vda2"
_ARGUMENTS = f"root={_ROOT} console=ttyS0 net.ifnames=0 systemd.show_status=no"
#: Of the boot partition, and of the root partition up to the end of a disk of 8 GiB.
_BOOT_SECTORS, _ROOT_SECTORS = 1 << 17, (8 << 21) - (1 << 17) - 4096
DISK_GIB = 8
_SCRIPT = rf"""busybox --install -s /bin
stop() {{ echo "THE INSTALLATION FAILED: $1"; sleep 5; poweroff -f; }}
value() {{ sed -n "s|^d-i $1 ||p" /preseed; }}
cmdline=$(cat /proc/cmdline)
case $cmdline in *root={_ROOT}*)
  echo {STARTS}; mkdir /target; mount -t ext4 {_ROOT} /target || stop "no root"
  # The installed system, which has no udev, keeps the network of its initramfs.
  ip route add default via {GATEWAY}
  mount -t devtmpfs d /target/dev; umount /dev /sys /proc; exec switch_root /target /sbin/init;;
esac
for a in $cmdline; do case $a in url=*) wget -q -O /preseed "${{a#url=}}" || stop "no answer file";; esac; done
disk=$(value "partman-auto/disk string")
echo "{INSTALLS} $(value "netcfg/get_hostname string") $disk"
wget -q -O - "http://$(value "mirror/http/hostname string")$(value "mirror/http/directory string")/{IMAGE}" >"$disk" || stop "no disk"
sync; blockdev --rereadpt "$disk"; mkdir /target
mount -t ext4 "${{disk}}2" /target || stop "no root"
mount -t devtmpfs d /target/dev; mount -t proc p /target/proc
chroot /target resize2fs "${{disk}}2" || stop "no space"
value "netcfg/get_hostname string" >/target/etc/hostname
printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$(cat /target/etc/hostname)" >/target/etc/hosts
password=$(value "passwd/user-password-crypted password")
chroot /target useradd --create-home --shell /bin/bash --password "$password" "$(value "passwd/username string")" || stop "no user"
printf '#!/bin/sh\nexec chroot /target "$@"\n' >/bin/in-target; chmod +x /bin/in-target
sed -e ':a' -e '/\\$/N; s/\\\n//; ta' /preseed | sed -n 's/^d-i preseed.late_command string //p' >/late
sh -e /late || stop "late_command"
umount /target/proc /target/dev /target; sync; reboot -f
"""
#: Turns a machine of the rig into files of the disk: without what only a container needs, and without keys.
_GOLDEN = rf"""export DEBIAN_FRONTEND=noninteractive
echo 'deb [trusted=yes] file:{_REPOSITORY} ./' >/etc/apt/sources.list; apt-get -qq update
apt-get -qq install --no-install-recommends {" ".join(PROGRAMS)} >/dev/null 2>&1
apt-get -qq purge --auto-remove docker.io podman >/dev/null 2>&1
cp -r {_INSTALLER}/kernel/lib/modules /lib/; depmod "$0"
systemctl unmask systemd-modules-load systemd-sysctl; systemctl enable ssh 2>/dev/null
: >/etc/machine-id
rm -f /etc/ssh/ssh_host_* /etc/ssh/authorized_keys /etc/ssh/sshd_config.d/rig.conf /etc/apt/sources.list
systemctl stop containerd
tree=/mnt/tree; mkdir $tree; mount --bind / $tree
for path in /rig /opt/bin /var/lib/containerd; do mount --bind $path $tree$path; done
echo "nameserver {GATEWAY}" >$tree/etc/resolv.conf
size=$(du --summarize --block-size=1M $tree | cut -f 1)
mke2fs -q -t ext4 -d $tree {_OUT}/root "$((size * 5 / 4 + 64))M"
truncate -s {_BOOT_SECTORS * SECTOR} {_OUT}/boot; mkfs.fat -h {FIRST} {_OUT}/boot >/dev/null; syslinux --install {_OUT}/boot
mcopy -i {_OUT}/boot {_INSTALLER}/kernel/boot/vmlinuz-* ::vmlinuz; mcopy -i {_OUT}/boot {_INSTALLER}/initramfs ::initramfs
printf 'DEFAULT disk\nPROMPT 0\nLABEL disk\nKERNEL vmlinuz\nINITRD initramfs\nAPPEND {_ARGUMENTS}\n' >{_OUT}/syslinux.cfg
mcopy -i {_OUT}/boot {_OUT}/syslinux.cfg ::syslinux.cfg
head -c 440 /usr/lib/syslinux/mbr/mbr.bin >{_OUT}/mbr
"""
_PREPARE = "#!/bin/sh -e\nmount --make-rshared /\nmount --bind /rig/devices /sys/bus/pci/devices\n/rig/boot\n"


@dataclasses.dataclass(frozen=True)
class Installation:
    """folder: with kernel and initramfs, which a computer boots by network, and its disk boots too. release: of the kernel."""

    folder: pathlib.Path
    kernel: pathlib.Path
    initramfs: pathlib.Path

    @classmethod
    def of(cls, folder: pathlib.Path) -> Installation:
        """folder: for its files, which does not exist."""
        folder.mkdir()
        made = Installer.of(folder, Program(_SCRIPT, _MODULES))
        return cls(folder, made.kernel, made.initramfs)

    @property
    def release(self) -> str:
        return self.kernel.name.removeprefix("vmlinuz-")

    @property
    def shares(self) -> dict[str, str]:
        """Of the machine that the disk is made from."""
        return {str(ensure_packages(say, PROGRAMS)): _REPOSITORY, str(self.folder): _INSTALLER}

    def write_disk(self, machine: Machine, pods: c.Mapping[str, t.Any], target: pathlib.Path) -> None:
        """Up to the end of its files. The machine is of no other use afterwards. pods: configuration of CNI for the computer."""
        for path, text in (
            ("/rig/prepare", _PREPARE),
            (POD_NETWORK, json.dumps(pods)),
        ):
            machine.write(path, text)
        machine.execute("sh", "-ec", _GOLDEN, self.release, seconds=900)
        parts = machine.folder / pathlib.Path(_OUT).name
        write_disk(parts, target, _BOOT_SECTORS, _ROOT_SECTORS)
