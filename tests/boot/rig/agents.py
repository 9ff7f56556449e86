# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two clusters of OpenShift without a bootstrap machine on one boot server: `edge`, by agents, and `sno`, which installs itself.

openshift-install is the stand-in of tests/openshift, of whose files kernel and initramfs are replaced by some that boot. The archive with the ignition file
stays behind the initramfs, where the real tool has it, and the kernel unpacks both.
"""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import shlex
import sys
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import address, mac
from ansible_collections.hwaccel.gpu.tests.boot.rig.installer import INSTALLED, Installer, artifact_of
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import agent, launcher

Hosts = dict[str, dict[str, t.Any]]
TOP = pathlib.Path(__file__).parents[3]
EXAMPLE = yaml.safe_load((TOP / "examples" / "inventories" / "sno-edge" / "hosts.yml").read_text(encoding="utf-8"))
IN_PLACE = "bootstrap-in-place-for-live-iso.ign"
#: Masters: cluster, firmware, last byte of MAC and IP address.
MACHINES = {
    "edge-0": ("edge", "bios", 161),
    "edge-1": ("edge", "uefi", 162),
    "edge-2": ("edge", "", 163),
    "sno-0": ("sno", "bios", 164),
}
_NETWORK = [{"network": "10.99.0.0/24", "router": "10.99.0.1", "mtu": 1500}]
#: After the stand-in: what can be booted takes the place of what cannot.
_BOOTABLE = """#!/bin/sh
set -e
{tool} "$@"
for last; do [ "$before" = --dir ] && dir=$last; before=$last; done
case " $* " in *" agent create pxe-files "*) exec {copies} "$dir/boot-artifacts" {files};; esac
"""
_PROGRAM = r"""import pathlib, sys
folder, kernel, initramfs = map(pathlib.Path, sys.argv[1:])
(whole,) = folder.glob("*-initrd.img")
image = whole.read_bytes()
begin = initramfs.read_bytes()
whole.write_bytes(begin + bytes(-len(begin) % 4) + image[image.index(b"\x1f\x8b\x08"):])
(whole,) = folder.glob("*-vmlinuz")
whole.write_bytes(kernel.read_bytes())
"""


@dataclasses.dataclass
class Agents:
    """groups, clusters: the inventory. folder: of the installations, and of what is beside them. installer: what machines boot."""

    rig: BootRig
    server: Machine
    folder: pathlib.Path
    installer: Installer
    groups: dict[str, Hosts]
    clusters: Hosts

    @classmethod
    def of(cls, rig: BootRig, server: Machine, folder: pathlib.Path, installer: Installer) -> Agents:
        tool = _tool(folder, installer)
        known = EXAMPLE["gpu_clusters"]["hosts"]["edge"]
        shared = {key: known[key] for key in ("cluster_openshift_pull_secret", "cluster_openshift_ssh_keys")}
        clusters = {
            name: {
                **shared,
                "ansible_connection": "local",
                "hwaccel_installer": "openshift",
                "hwaccel_domain": f"{name}.example.com",
                "hwaccel_machine_network": "10.99.0.0/24",
                "hwaccel_load_balancer_address": balancer,
                "cluster_openshift_method": method,
                "cluster_openshift_folder": str(folder / "installations" / name),
                "cluster_openshift_installer": str(tool),
                # Nobody answers there, so each run ends with this limit.
                "cluster_openshift_api_timeout": 1,
            }
            for name, method, balancer in (("edge", "agent", address(190)), ("sno", "in_place", address(164)))
        }
        release = [{"path": f"sno/{kind}", **artifact_of(path)} for kind, path in _release(folder, installer).items()]
        boot = {"dns_pxe_interfaces": ["eth0"], "dns_pxe_networks": _NETWORK, "dns_pxe_artifacts": release}
        groups: dict[str, Hosts] = {"boot_servers": {server.name: boot}, "control_plane": {}}
        for name, (cluster, firmware, number) in MACHINES.items():
            groups["control_plane"][name] = {
                "hwaccel_cluster": cluster,
                "hwaccel_mac": mac(number),
                "hwaccel_address": address(number),
                "hwaccel_firmware": firmware,
                "hwaccel_install": True,
                "hwaccel_install_device": "/dev/vda",
                # The console of the computers of the rig.
                "hwaccel_kernel_arguments": ["console=ttyS0", "panic=5"],
            }
        return cls(rig, server, folder, installer, groups, clusters)

    def site(self, *arguments: str) -> Run:
        # Its preflight does not run the program, also where files are there.
        expected = ["is not compared with the one that has created the files"]
        return self.rig.play("site", self.groups, *arguments, clusters=self.clusters, warnings=expected)

    def installed(self, name: str) -> str:
        """The line that a machine prints when it installs itself by the right files."""
        cluster = MACHINES[name][0]
        made = pathlib.Path(self.clusters[cluster]["cluster_openshift_folder"])
        if cluster == "edge":
            image = (made / "boot-artifacts" / "agent.x86_64-initrd.img").read_bytes()
            ignition = agent.ignition_in(image[self.installer.initramfs.stat().st_size :])
            rootfs = made / "boot-artifacts" / "agent.x86_64-rootfs.img"
        else:
            ignition, rootfs = (made / IN_PLACE).read_bytes(), self.folder / "rootfs"
        sums = [hashlib.sha256(content).hexdigest() for content in (ignition, rootfs.read_bytes())]
        return f"{INSTALLED} {sums[0]} {sums[1]} {name}.{cluster}.example.com"


def _tool(folder: pathlib.Path, installer: Installer) -> pathlib.Path:
    (folder / "tool").mkdir()
    program = folder / "bootable.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    tool = folder / "openshift-install"
    tool.write_text(
        _BOOTABLE.format(
            tool=launcher.write(folder / "tool"),
            copies=shlex.join([sys.executable, str(program)]),
            files=shlex.join([str(installer.kernel), str(installer.initramfs)]),
        ),
        encoding="utf-8",
    )
    tool.chmod(0o755)
    return tool


def _release(folder: pathlib.Path, installer: Installer) -> dict[str, pathlib.Path]:
    """In the place of CoreOS, whose addresses the stand-in knows and nobody serves here."""
    rootfs = folder / "rootfs"
    rootfs.write_bytes(b"A stand-in for the root file system of CoreOS, of the release.\n")
    return {"kernel": installer.kernel, "initramfs": installer.initramfs, "rootfs": rootfs}
