# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster of the rig's machines, as an inventory has it.

site = Site(rig, servers=("cp1", "cp2", "cp3"), agents=("w1",), balancer="lb")
run = site.play("cluster_kubeadm")
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import json
import pathlib
import subprocess
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig import gpus, images
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import POD_SUBNET, SERVICE_SUBNET, ClusterRig, Parts
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import IN_CONTAINER
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

if t.TYPE_CHECKING:
    from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig

NAME = "one"
#: Of the role, on each machine: what stays, and the secrets of a run.
SECRETS = "/run/hwaccel-gpu-kubeadm"
FOLDER = "/var/lib/hwaccel-gpu/cluster_kubeadm"
PKI = "/etc/kubernetes/pki/etcd"
_SECRET = Resource("", "v1", "Secret", "secrets", True)
#: What processes of a machine have in memory, each shared page once, in MiB.
_MEMORY = "cat /proc/[0-9]*/smaps_rollup 2>/dev/null | awk '/^Pss:/ { sum += $2 } END { print int(sum / 1024) }'"
#: Imported by the configuration of the role: without restrict_oom_score_adj no sandbox would start, for want of CAP_SYS_RESOURCE. It has all that is set
#: there, too, because containerd takes a plugin's table as a whole from the last file that has it.
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10.2"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""
CONTAINERD_UNIT = "[Service]\nOOMScoreAdjust=\nLimitNOFILE=20000\nLimitNPROC=infinity\n"
#: Without zeros, kube-proxy would write limits of connections for the whole host.
CONNTRACK = {"maxPerCore": 0, "min": 0, "tcpCloseWaitTimeout": "0s", "tcpEstablishedTimeout": "0s"}
CONFIGURATION = {
    # The default of 20 seconds is most of the time of an upgrade, which replaces four static pods one by one.
    "KubeletConfiguration": {**IN_CONTAINER, "fileCheckFrequency": "2s"},
    "KubeProxyConfiguration": {"conntrack": CONNTRACK},
}


#: Of a node and its pods, as after a new installation. The shims would keep the static pods running.
REINSTALL = r"""systemctl stop kubelet containerd; pkill -9 containerd-shim || :
for path in $(cut -d ' ' -f 2 /proc/mounts | grep -E '^/(run/containerd|var/lib/kubelet)/' | sort -r); do umount "$path" || umount -l "$path" || :; done
rm -rf /etc/kubernetes /var/lib/etcd /var/lib/kubelet/* /var/lib/containerd/* /var/lib/hwaccel-gpu
rm -rf /usr/bin/kubeadm /usr/bin/kubelet /etc/systemd/system/kubelet.service*"""


@dataclasses.dataclass
class Site:
    """balancer: name of a load balancer before its servers. machines: by name. variables: of the cluster's host, which tests may change. labels: of nodes.

    retired: names of machines that are to leave. lost: of those that are gone. parts: of the version that is set, by default the rig's.
    with_gpus: number of simulated GPUs by agent. gpu_parts: what machines need for the GPU stack. shares: more folders that machines have, by path on the host.
    """

    rig: ClusterRig | K3sRig
    servers: tuple[str, ...]
    agents: tuple[str, ...] = ()
    balancer: str = ""
    variables: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    labels: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    machines: dict[str, Machine] = dataclasses.field(default_factory=dict)
    retired: set[str] = dataclasses.field(default_factory=set)
    lost: set[str] = dataclasses.field(default_factory=set)
    parts: Parts | None = None
    with_gpus: dict[str, int] = dataclasses.field(default_factory=dict)
    gpu_parts: gpus.Gpus | None = None
    shares: dict[str, str] = dataclasses.field(default_factory=dict)
    #: Of its installer, and where a server has the kubeconfig of its administrator.
    playbook: t.ClassVar[str] = "cluster_kubeadm"
    admin: t.ClassVar[str] = "/etc/kubernetes/admin.conf"
    #: Of each machine, the certificate of the cluster's authority, and what only a node has.
    authority: t.ClassVar[str] = "/etc/kubernetes/pki/ca.crt"
    made: t.ClassVar[tuple[str, ...]] = (
        "/etc/kubernetes",
        "/var/lib/etcd",
        "/usr/bin/kubeadm",
        "/usr/bin/kubelet",
        SECRETS,
    )

    def __post_init__(self) -> None:
        for name in (*self.servers, *self.agents):
            self.machines[name] = self.boot(name)
        if self.balancer:
            self.machines[self.balancer] = self.rig.machine(self.balancer)
            self.variables["hwaccel_load_balancer_address"] = self.machines[self.balancer].address

    def boot(self, name: str) -> Machine:
        # Feature discovery runs on servers, too.
        if self.gpu_parts:
            machine = self.rig.machine(name, self.gpu_parts.shares)
            self.gpu_parts.install(machine, self.with_gpus.get(name, 0))
            return machine
        machine = self.rig.machine(name, self.shares)
        machine.write("/etc/containerd/conf.d/rig.toml", CONTAINERD)
        machine.write("/etc/systemd/system/containerd.service.d/limits.conf", CONTAINERD_UNIT)
        return machine

    def play(self, name: str = "", *arguments: str, **more: t.Any) -> Run:
        return self.rig.play(name or self.playbook, self.groups(), *arguments, clusters={NAME: self.cluster()}, **more)

    def done(self, *arguments: str, **more: t.Any) -> Run:
        # An upgrade of five machines takes ten minutes.
        run = self.play("", *arguments, timeout=2400, **more)
        assert run.rc == 0, run.stdout[-8000:]
        return run

    def killed(self, when: c.Callable[[], bool], *arguments: str, **more: t.Any) -> bool:
        """As play, but killed with all its processes when `when` returns true. False if the run has ended before."""
        known = {NAME: self.cluster()}
        return self.rig.killed(self.playbook, self.groups(), when, known, arguments=arguments, **more)

    def client(self, of: str = "") -> Client:
        """As an administrator, at the endpoint. of: the server whose own API server is asked instead."""
        server = self.machines[of or self.servers[-1]]
        config = yaml.safe_load(server.read(self.admin))
        if of or "127.0.0.1" in config["clusters"][0]["cluster"]["server"]:
            config["clusters"][0]["cluster"]["server"] = f"https://{server.address}:6443"
        return connect({"kubeconfig": config})

    def voters(self, machine: Machine) -> set[str]:
        """Nodes whose members of etcd vote, as this machine sees them."""
        return voters(machine)

    def versions(self) -> dict[str, str]:
        """Of kubelets, by node."""
        nodes = self.client().list(NODE).items
        return {node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes}

    def cordoned(self) -> set[str]:
        nodes = self.client().list(NODE).items
        return {node["metadata"]["name"] for node in nodes if node["spec"].get("unschedulable")}

    def secrets_left(self) -> list[str]:
        """Of a run of kubeadm: what the cluster keeps of its secrets, and machines that do."""
        names = [one["metadata"]["name"] for one in self.client().list(_SECRET, namespace="kube-system").items]
        kept = [name for name in names if name.startswith("bootstrap-token-") or name == "kubeadm-certs"]
        members = {*self.servers, *self.agents} - self.retired - self.lost
        return kept + [
            name for name in sorted(members) if self.machines[name].sh(f"ls -d {SECRETS} 2>/dev/null || :") != ""
        ]

    def groups(self) -> dict[str, dict[str, dict[str, t.Any]]]:
        groups = {"control_plane": self.servers, "workers": self.agents}
        if self.balancer:
            groups["load_balancers"] = (self.balancer,)
        return {
            group: {
                name: {
                    "hwaccel_node_labels": self.labels.get(name, {}),
                    "hwaccel_retired": name in self.retired,
                    "hwaccel_lost": name in self.lost,
                }
                for name in names
            }
            for group, names in groups.items()
        }

    def cluster(self) -> dict[str, t.Any]:
        parts = self.parts or t.cast("ClusterRig", self.rig).parts
        programs = parts.programs
        return {
            "ansible_connection": "local",
            "hwaccel_installer": "kubeadm",
            "hwaccel_machines_at_a_time": 2,
            "cluster_kubeadm_version": programs.version.removeprefix("v"),
            "cluster_kubeadm_programs": [
                {"name": name, **file_of(programs.installed / name)} for name in ("kubeadm", "kubelet")
            ],
            "cluster_kubeadm_images": [file_of(parts.images / name) for name in (images.NODE, images.CONTROL_PLANE)],
            "cluster_kubeadm_cni_plugins": [file_of(parts.plugins)],
            "cluster_kubeadm_pod_network": POD_SUBNET,
            "cluster_kubeadm_service_network": SERVICE_SUBNET,
            "cluster_kubeadm_cgroup_driver": "cgroupfs",
            "cluster_kubeadm_ignored_errors": ["SystemVerification"],
            "cluster_kubeadm_configuration": CONFIGURATION,
            # All machines are on one computer, whose clock and disk are not the tests' business.
            "cluster_kubeadm_skipped_checks": ["clock", "disk", "identity", "swap", "cgroup"],
            **self.variables,
        }


def voters(
    machine: Machine, authority: str = "ca", client: str = "healthcheck-client", pki: str = PKI, port: int = 2379
) -> set[str]:
    """Names of etcd's members that vote, as this one sees them. pki: folder of the certificates that are named."""
    script = f"""import json, ssl, urllib.request
tls = ssl.create_default_context(cafile="{pki}/{authority}.crt")
tls.load_cert_chain("{pki}/{client}.crt", "{pki}/{client}.key")
asked = urllib.request.Request("https://127.0.0.1:{port}/v3/cluster/member/list", data=b"{{}}", method="POST")
print(urllib.request.urlopen(asked, context=tls).read().decode())"""
    found = json.loads(machine.execute("python3", "-c", script).stdout)["members"]
    return {one["name"] for one in found if not one.get("isLearner")}


def nft(machine: Machine, *arguments: str) -> str:
    """What nft prints in the machine's network. Machines of the rig have no such program."""
    argv = ["nsenter", f"--net={machine.port.namespace}", "nft", *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=30).stdout


def memory(machine: Machine) -> int:
    return int(machine.sh(_MEMORY))


def begun(machine: Machine) -> bool:
    """Whether its turn to be upgraded has begun, and has not ended."""
    return machine.sh(f"ls {FOLDER}/turn.json 2>/dev/null || :") != ""


def gpu_site(rig: ClusterRig, servers: tuple[str, ...], agents: tuple[str, str], balancer: str = "") -> Site:
    """A site whose first agent has two GPUs. balancer: name of a load balancer, which site configures. Skips tests if this machine cannot have the parts."""
    try:
        parts = gpus.ensure_gpus(say, gpus.DRIVERS)
    except Unavailable as missing:
        pytest.skip(str(missing))
    site = Site(rig, servers, agents, balancer, with_gpus={agents[0]: 2}, gpu_parts=parts)
    site.labels = {agents[0]: {"pool": "a"}}
    # Pods of the system with an emptyDir lose nothing.
    site.variables |= {"cluster_kubeadm_drain_delete_emptydir_data": True}
    site.variables |= gpus.variables([gpus.pool("a", "pool=a", 2)], gpus.DRIVERS)
    return site


def file_of(path: pathlib.Path) -> dict[str, str]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return {"source": str(path), "checksum": f"sha256:{digest.hexdigest()}"}
