# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From an empty disk to a GPU on which a pod has computed, by one command: an emulated computer is switched on, installed by network, and joins.

Its processor is emulated, and so is its hypervisor's network; kernel, boot server, libvirt, kubelet and containerd are real. GPUs are those of tests/node.
"""

from __future__ import annotations

import collections.abc as c
import pathlib
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.hypervisor import BRIDGE, Hypervisor
from ansible_collections.hwaccel.gpu.tests.boot.rig.installer import artifact_of
from ansible_collections.hwaccel.gpu.tests.cluster.rig import gpus, small_debian
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import NAME, Site
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig import nvidia_images
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import pod_network
from ansible_collections.hwaccel.gpu.tests.node.rig.network import GATEWAY, Port, ip
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = pytest.mark.slow
#: The computer has the address and the pods of a machine with this number.
WORKER, PORT, MAC = "w1", Port(150), "52:54:00:99:00:a0"
USER = "gpuadmin"
#: What an emulated processor takes many times as long for as a real one.
PATIENCE = {
    "hwaccel_wait_timeout": 3000,
    "gpu_validation_schedule_timeout": 1200,
    "gpu_validation_start_timeout": 1200,
    "gpu_validation_timeout": 1200,
    "cluster_kubeadm_timeout": 1800,
}


class Metal:
    """The inventory of a cluster whose worker is a computer with an empty disk."""

    def __init__(self, rig: ClusterRig, folder: pathlib.Path) -> None:
        self.rig = rig
        installation = small_debian.Installation.of(folder / "installer")
        drivers = nvidia_images.driver_images(installation.release, "debian", "12")
        self.parts = gpus.ensure_gpus(say, drivers)
        self.mirror = rig.host("mirror")
        self._write_disk(installation, folder)
        self.site = Site(rig, ("cp1",), gpu_parts=self.parts)
        self.site.variables |= gpus.variables([gpus.pool("a", "pool=a", 2)], drivers) | PATIENCE
        self.site.variables |= {"hwaccel_domain": "k8s.example.com", "hwaccel_machine_network": "10.99.0.0/24"}
        self.boot = rig.machine("boot")
        self.hyper = Hypervisor.of(rig, "hyper")
        ip("route", "add", PORT.pods, "via", PORT.address)
        self.artifacts = [
            {"path": f"os/{path.name}", **artifact_of(path)} for path in (installation.kernel, installation.initramfs)
        ]

    def _write_disk(self, installation: small_debian.Installation, folder: pathlib.Path) -> None:
        served = folder / "mirror" / "debian"
        served.mkdir(parents=True)
        golden = self.rig.machine("golden", self.parts.shares | installation.shares)
        self.parts.install(golden, 2)
        installation.write_disk(golden, pod_network(PORT), served / small_debian.IMAGE)
        self.rig.remove(golden)
        self.mirror.spawn("busybox", "httpd", "-f", "-p", "80", "-h", str(served.parent))

    def groups(self) -> dict[str, dict[str, dict[str, t.Any]]]:
        kernel, initramfs = (artifact["path"] for artifact in self.artifacts)
        answer = {
            "kind": "preseed",
            "user": USER,
            "ssh_keys": [(self.rig.folder / "key.pub").read_text(encoding="ascii").strip()],
            "source": f"http://{self.mirror.address}/debian",
        }
        profile = {"role": "worker", "kernel": kernel, "initramfs": initramfs, "install_device": "/dev/vda"}
        served = {
            "dns_pxe_interfaces": ["eth0"],
            "dns_pxe_profiles": [{**profile, "answer": answer, "arguments": ["console=ttyS0", "panic=5"]}],
            "dns_pxe_artifacts": self.artifacts,
            "dns_pxe_networks": [{"network": "10.99.0.0/24", "router": GATEWAY, "ntp": [GATEWAY], "mtu": 1500}],
        }
        groups = self.site.groups()
        # The boot server wants it of all machines.
        groups["control_plane"]["cp1"]["hwaccel_mac"] = (
            self.site.machines["cp1"].read("/sys/class/net/eth0/address").strip()
        )
        groups["workers"] = {WORKER: self._worker()}
        return {**groups, "boot_servers": {"boot": served}, "hypervisors": {"hyper": {}}}

    def _worker(self) -> dict[str, t.Any]:
        return {
            "ansible_host": PORT.address,
            "ansible_user": USER,
            "ansible_become": True,
            "ansible_timeout": 60,
            "ansible_python_interpreter": "/usr/bin/python3",
            "hwaccel_address": PORT.address,
            "hwaccel_mac": MAC,
            "hwaccel_firmware": "bios",
            "hwaccel_install": True,
            "hwaccel_install_device": "/dev/vda",
            "hwaccel_node_labels": {"pool": "a"},
            "hwaccel_power_provider": "libvirt",
            "hwaccel_hypervisor": "hyper",
            "hwaccel_vm_bridge": BRIDGE,
            "hwaccel_vm_memory": 4096,
            "hwaccel_vm_vcpus": 2,
            "hwaccel_vm_disk": small_debian.DISK_GIB,
            "machine_boot_vm_small": [WORKER],
            "machine_boot_ssh_key": str(self.rig.folder / "key"),
            "machine_boot_system": "debian 12",
        }

    def play(self, *arguments: str) -> Run:
        # The cluster is to be made from empty machines: one that does not answer is no node.
        cluster = self.site.cluster() | {"hwaccel_new_cluster": True}
        return self.rig.play("site", self.groups(), *arguments, clusters={NAME: cluster}, timeout=3000)

    def console(self) -> str:
        return self.hyper.console(WORKER)


@pytest.fixture(scope="module")
def metal(rig: ClusterRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Metal]:
    try:
        yield Metal(rig, tmp_path_factory.mktemp("metal"))
    except Unavailable as missing:
        pytest.skip(str(missing))


def test_an_empty_disk_becomes_a_worker_whose_gpu_has_computed(
    metal: Metal, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = metal.play("--check")
    assert checked.rc == 0, checked.stdout[-6000:]
    assert metal.hyper.state(WORKER) == ""
    began = time.monotonic()
    made = metal.play()
    middle = time.monotonic()
    assert made.rc == 0, made.stdout[-8000:] + metal.console()[-3000:]
    assert f"{small_debian.INSTALLS} {WORKER} /dev/vda" in metal.console()
    assert gpus_of(metal.site.client().get(NODE, WORKER)) == 2
    second = metal.play()
    with capsys.disabled():
        print(f"\nfrom an empty disk: {middle - began:.0f} s; the second run: {time.monotonic() - middle:.0f} s")
    assert (second.rc, second.changed()) == (0, 0), second.stdout[-6000:]


def test_switched_off_and_on_it_boots_its_disk(metal: Metal) -> None:
    boot = metal.site.client().get(NODE, WORKER)["status"]["nodeInfo"]["bootID"]
    metal.hyper.virsh("destroy", WORKER)
    metal.hyper.virsh("start", WORKER)

    def is_back() -> bool:
        node = metal.site.client().get(NODE, WORKER)
        ready = {one["type"]: one["status"] for one in node["status"]["conditions"]}["Ready"]
        return bool(node["status"]["nodeInfo"]["bootID"] != boot and ready == "True")

    metal.hyper.machine.wait("the node is Ready again", is_back, seconds=900)
    console = metal.console()
    assert console.count(small_debian.INSTALLS) == 1 and console.count(small_debian.STARTS) == 2, console[-3000:]
