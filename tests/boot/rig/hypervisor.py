# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine of the rig as a hypervisor: Debian's libvirt and QEMU, which emulates the processor, and a bridge that is connected to that of the rig."""

from __future__ import annotations

import dataclasses
import pathlib
import shlex

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import boot_sector
from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import HYPERVISOR, ensure_packages
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

BRIDGE = "br0"
#: A network of libvirt with NAT. Without DNS it needs no dnsmasq.
NAT = "<network><name>inner</name><forward mode='nat'/><bridge name='virbr7'/><dns enable='no'/><ip address='192.168.77.1' netmask='255.255.255.0'/></network>"
_REPOSITORY = "/hypervisor"
_SETUP = f"""
echo 'deb [trusted=yes] file:{_REPOSITORY} ./' >>/etc/apt/sources.list; apt-get -qq update
# Without the device, libvirt uses emulation: where the device exists, it does not run ordinary kernels.
rm -f /dev/kvm
DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends {shlex.join(HYPERVISOR)} >/dev/null 2>&1
# libvirt does not support the control groups of the machine that runs the tests.
echo 'cgroup_controllers = [ ]' >>/etc/libvirt/qemu.conf
systemctl restart libvirtd
"""
_BRIDGED = f"""
ip link add {BRIDGE} type bridge forward_delay 0; ip link set {BRIDGE} up
ip address flush dev eth0; ip link set eth0 master {BRIDGE}
ip address add "$0/24" dev {BRIDGE}; ip route add default via 10.99.0.1
"""


@dataclasses.dataclass(frozen=True)
class Hypervisor:
    machine: Machine

    @classmethod
    def of(cls, rig: BootRig, name: str, shares: dict[str, str] | None = None) -> Hypervisor:
        machine = rig.machine(name, {str(ensure_packages(say, HYPERVISOR)): _REPOSITORY, **(shares or {})})
        machine.sh(_SETUP, seconds=300)
        machine.execute("sh", "-ec", _BRIDGED, machine.address)
        return cls(machine)

    def virsh(self, *arguments: str, check: bool = True) -> str:
        return self.machine.execute("virsh", "-c", "qemu:///system", *arguments, check=check).stdout.strip()

    def state(self, name: str) -> str:
        """running, shut off, or "" if there is no such domain."""
        return self.virsh("domstate", name, check=False)

    def console(self, name: str) -> str:
        """Console output since the definition of the domain."""
        return self.machine.sh(f"cat {pathlib.Path('/var/log/libvirt/qemu') / name}-console.log", check=False)

    def halting_disk(self, name: str) -> None:
        """Creates a disk of 1 GiB that boots and halts, because a machine without a boot device uses a whole processor."""
        self.machine.sh(
            "cd /var/lib/libvirt/images; printf '"
            + "".join(f"\\{byte:03o}" for byte in boot_sector())
            + "' >/var/tmp/sector; "
            f"truncate -s 1G /var/tmp/sector; qemu-img convert -O qcow2 /var/tmp/sector {name}.qcow2"
        )

    def remove(self, *names: str) -> None:
        """Removes domains and their disks."""
        for name in names:
            self.virsh("destroy", name, check=False)
            self.virsh("undefine", "--nvram", name)
            self.machine.sh(f"rm -f /var/lib/libvirt/images/{name}.qcow2")

    def clean(self) -> None:
        """Removes all domains and disks."""
        self.remove(*self.virsh("list", "--all", "--name").split())
        self.machine.sh("rm -f /var/lib/libvirt/images/* /var/log/libvirt/qemu/*-console.log")

    def everything(self) -> str:
        """Definitions of all domains, and all disks with the times of their last changes."""
        domains = [self.virsh("dumpxml", "--inactive", name) for name in self.virsh("list", "--all", "--name").split()]
        return "\n".join([*domains, self.machine.sh("ls -l --full-time /var/lib/libvirt/images")])
