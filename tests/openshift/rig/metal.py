# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Empty machines of an OpenShift cluster: a load balancer, a boot server and a hypervisor of the rig, and an inventory of them for the playbook site."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import pathlib
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.hypervisor import BRIDGE, Hypervisor
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import REPOSITORY
from ansible_collections.hwaccel.gpu.tests.live.support.site import ALL, Run
from ansible_collections.hwaccel.gpu.tests.node.rig.network import GATEWAY
from ansible_collections.hwaccel.gpu.tests.openshift.rig import coreos
from ansible_collections.hwaccel.gpu.tests.openshift.rig.coreos import CoreOS
from ansible_collections.hwaccel.gpu.tests.openshift.rig.operators import Expected
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import launcher, release

NAME, DOMAIN = "ocp", "ocp.example.com"
GPU = {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559}
_EXAMPLE = REPOSITORY / "examples" / "inventories" / "sno-edge" / "hosts.yml"


#: Last byte of MAC and IP address of the first machine of a kind: more of them leave the others as they are.
_FIRST = {"bootstrap": 150, "master": 160, "worker": 170}


@dataclasses.dataclass(frozen=True)
class Layout:
    """How many masters and workers there are beside the bootstrap machine. reused: this becomes a worker, too."""

    masters: int = 1
    workers: int = 1
    reused: bool = False

    @property
    def machines(self) -> dict[str, tuple[str, ...]]:
        """Groups of each machine by its name."""
        return {
            "bootstrap-0": ("bootstrap", "workers") if self.reused else ("bootstrap",),
            **{f"master-{number}": ("control_plane",) for number in range(self.masters)},
            **{f"worker-{number}": ("workers",) for number in range(self.workers)},
        }

    def nodes(self, group: str) -> tuple[str, ...]:
        return tuple(f"{name}.{DOMAIN}" for name, groups in self.machines.items() if group in groups)

    @property
    def expected(self) -> Expected:
        """Nodes of an installation of them."""
        return Expected(self.nodes("control_plane"), self.nodes("workers"))


def precompiled(system: CoreOS) -> str:
    """The driver for the kernel of all machines, as a tag of its image."""
    return f"595-{system.release}-rhel9"


class Metal:
    """folder: that of the installation is in it. layout: machines that the inventory has, which may change between two runs.

    served, told: variables of the boot server and of the cluster beside those that all runs have.
    """

    def __init__(self, rig: BootRig, system: CoreOS, folder: pathlib.Path, layout: Layout) -> None:
        self.rig, self.folder, self.system, self.layout = rig, folder, system, layout
        self.served: dict[str, t.Any] = {}
        self.told: dict[str, t.Any] = {}
        self.balancer, self.boot = rig.machine("balancer"), rig.machine("boot")
        self.hyper = Hypervisor.of(rig, "hyper")
        self.mirror = rig.host("mirror")
        served = folder / "mirror"
        served.mkdir()
        (stream,) = release.RELEASES["4.20"].streams
        for kind in ("kernel", "initramfs", "rootfs"):
            (served / stream.artefact(kind, "x86_64")).symlink_to(system.folder / kind)
        self.mirror.spawn("busybox", "httpd", "-f", "-p", "80", "-h", str(served))
        (folder / "tool").mkdir()
        self.calls = folder / "calls"
        self.tool = launcher.write(folder / "tool", calls=str(self.calls), images=str(system.folder))

    def close(self) -> None:
        """Others can have the names of its machines."""
        for machine in (self.balancer, self.boot, self.hyper.machine):
            self.rig.remove(machine)
        self.mirror.stop()

    @property
    def installation(self) -> pathlib.Path:
        return self.folder / "installations" / NAME

    def cluster(self) -> dict[str, t.Any]:
        known = yaml.safe_load(_EXAMPLE.read_text(encoding="utf-8"))["gpu_clusters"]["hosts"]["edge"]
        given = {name: known[name] for name in ("cluster_openshift_pull_secret", "cluster_openshift_ssh_keys")}
        return {
            **given,
            "ansible_connection": "local",
            "hwaccel_installer": "openshift",
            "hwaccel_distribution": "openshift",
            "hwaccel_domain": DOMAIN,
            "hwaccel_machine_network": "10.99.0.0/24",
            "hwaccel_load_balancer_address": self.balancer.address,
            "cluster_openshift_folder": str(self.installation),
            "cluster_openshift_installer": str(self.tool),
            "cluster_openshift_artifacts_mirror": f"http://{self.mirror.address}",
            "hwaccel_pools": [{"name": "gpu", "selector": "node-role.kubernetes.io/worker", "gpu": GPU}],
            "hwaccel_stages": ALL,
            "hwaccel_wait_timeout": 600,
            "driver_source": "precompiled",
            "driver_precompiled_images": [precompiled(self.system)],
            **{f"cluster_openshift_{phase}_timeout": 1200 for phase in ("api", "bootstrap", "nodes", "install")},
            **self.told,
        }

    def groups(self) -> dict[str, dict[str, dict[str, t.Any]]]:
        served = {
            "dns_pxe_interfaces": ["eth0"],
            "dns_pxe_networks": [{"network": "10.99.0.0/24", "router": GATEWAY, "ntp": [GATEWAY], "mtu": 1500}],
            "dns_pxe_profiles": [
                {"role": role, "arguments": ["ip=dhcp", "rd.neednet=1", "console=ttyS0", "quiet", "panic=5"]}
                for role in ("bootstrap", "master", "worker")
            ],
            **self.served,
        }
        groups: dict[str, dict[str, dict[str, t.Any]]] = {
            "load_balancers": {"balancer": {}},
            "boot_servers": {"boot": served},
            "hypervisors": {"hyper": {}},
        }
        for name, own in self.layout.machines.items():
            for group in own:
                groups.setdefault(group, {})[name] = self._machine(name)
        return groups

    def _machine(self, name: str) -> dict[str, t.Any]:
        kind, _hyphen, index = name.partition("-")
        number = _FIRST[kind] + int(index)
        return {
            "hwaccel_address": f"10.99.0.{number}",
            "hwaccel_mac": f"52:54:00:99:00:{number:02x}",
            "hwaccel_firmware": "bios",
            "hwaccel_install": True,
            "hwaccel_install_device": "/dev/vda",
            "hwaccel_power_provider": "libvirt",
            "hwaccel_hypervisor": "hyper",
            "hwaccel_vm_bridge": BRIDGE,
            "hwaccel_vm_memory": 512,
            "hwaccel_vm_vcpus": 1,
            "hwaccel_vm_disk": coreos.DISK_GIB,
            "machine_boot_vm_small": [name],
            # The stand-in does not end when it is asked to.
            "machine_boot_shutdown_timeout": 5,
        }

    def play(self, *arguments: str, warnings: c.Sequence[str] = ()) -> Run:
        """warnings: regular expressions of those that are right to come."""
        clusters = {NAME: self.cluster()}
        return self.rig.play("site", self.groups(), *arguments, clusters=clusters, warnings=warnings, timeout=3000)

    def killed(self, when: c.Callable[[], bool], started: pathlib.Path | None = None) -> bool:
        """started: a file for the names of tasks that have started."""
        known = {"HWACCEL_STARTED": str(started)} if started else {}
        return self.rig.killed("site", self.groups(), when, {NAME: self.cluster()}, known, timeout=3000)

    def console(self, name: str) -> str:
        return self.hyper.console(name)

    def counted(self, text: str) -> dict[str, int]:
        """How often a text is on the console of each machine."""
        return {name: self.console(name).count(text) for name in self.layout.machines}
