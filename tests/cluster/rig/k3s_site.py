# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster of the rig's machines that K3s makes, as an inventory has it.

site = K3sSite(rig, servers=("s1",), agents=("a1",))
run = site.done()
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import ARCHIVE, K3s, K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import Site, file_of, voters
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import POD
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

POD_SUBNET, SERVICE_SUBNET = "10.42.0.0/16", "10.43.0.0/16"
FOLDER = "/var/lib/hwaccel-gpu/cluster_k3s"
DATA = "/var/lib/rancher/k3s"
#: The stand-in deploys none of what K3s brings as manifests.
DISABLED = ["coredns", "local-storage", "metrics-server", "servicelb", "traefik"]
#: As after a new installation. Containers outlive K3s.
REINSTALL = f"""systemctl disable --now k3s 2>/dev/null; pkill -9 containerd || :
for path in $(cut -d ' ' -f 2 /proc/mounts | grep -E '^/(run/k3s|var/lib/kubelet)/' | sort -r); do umount "$path" || umount -l "$path" || :; done
ip link delete cni0 2>/dev/null || :
rm -rf {DATA} /etc/rancher /var/lib/hwaccel-gpu /usr/local/bin/k3s /etc/systemd/system/k3s.service /run/k3s /var/lib/kubelet/*; systemctl daemon-reload"""


@dataclasses.dataclass
class K3sSite(Site):
    """k3s: of the version that is set, by default the rig's. of_machines: variables of each machine. boards: names of machines that are Jetson boards."""

    k3s: K3s | None = None
    of_machines: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    boards: tuple[str, ...] = ()
    playbook: t.ClassVar[str] = "cluster_k3s"
    admin: t.ClassVar[str] = "/etc/rancher/k3s/k3s.yaml"
    authority: t.ClassVar[str] = f"{DATA}/agent/server-ca.crt"
    made: t.ClassVar[tuple[str, ...]] = (
        DATA,
        "/etc/rancher",
        "/run/k3s",
        "/usr/local/bin/k3s",
        "/etc/systemd/system/k3s.service",
        "/etc/systemd/system/k3s-agent.service",
    )

    def boot(self, name: str) -> Machine:
        machine = self.rig.machine(name, {**self.shares, **(self.gpu_parts.shares if self.gpu_parts else {})})
        if self.gpu_parts and name in self.boards:
            self.gpu_parts.install_board(machine)
        elif self.gpu_parts:
            self.gpu_parts.install_with_driver(machine, self.with_gpus.get(name, 0))
        return machine

    def groups(self) -> dict[str, dict[str, dict[str, t.Any]]]:
        groups = super().groups()
        return {
            group: {name: {**one, **self.of_machines} for name, one in hosts.items()} for group, hosts in groups.items()
        }

    def voters(self, machine: Machine) -> set[str]:
        """K3s calls a member as its node, and a number after it."""
        return {
            name.rpartition("-")[0] for name in voters(machine, "server-ca", "client", f"{DATA}/server/tls/etcd", 2382)
        }

    def start_pod(self, node: str, **more: str) -> None:
        """A pod that does nothing on a node. more: of its spec."""
        container = {"name": "main", "image": BUSYBOX, "command": ["sleep", "100000"]}
        metadata = {"name": f"stays-{node}", "namespace": "default"}
        spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 1, **more}
        self.client().create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, POD)
        self.machines[node].wait("the pod runs", lambda: bool(self.container(node)), seconds=90)

    def container(self, node: str) -> str:
        """The container of that pod while it runs."""
        status = self.client().get(POD, f"stays-{node}", "default")["status"]
        running = [
            one["containerID"] for one in status.get("containerStatuses", ()) if "running" in one.get("state", {})
        ]
        return str(running[0]) if running else ""

    def cluster(self) -> dict[str, t.Any]:
        assert isinstance(self.rig, K3sRig)
        k3s = self.k3s or self.rig.k3s
        archives = self.gpu_parts.archives if self.gpu_parts else ()
        return {
            "ansible_connection": "local",
            "hwaccel_installer": "k3s",
            "hwaccel_machines_at_a_time": 2,
            "cluster_k3s_version": k3s.version,
            "cluster_k3s_programs": [file_of(k3s.binary)],
            "cluster_k3s_images": [file_of(path) for path in (k3s.images / ARCHIVE, *archives)],
            "cluster_k3s_pod_network": POD_SUBNET,
            "cluster_k3s_service_network": SERVICE_SUBNET,
            "cluster_k3s_flannel_backend": "host-gw",
            "cluster_k3s_disable": DISABLED,
            # All machines are on one computer, whose clock and disk are not the tests' business.
            "cluster_k3s_skipped_checks": ["clock", "disk", "identity", "swap", "cgroup"],
            **self.variables,
        }
