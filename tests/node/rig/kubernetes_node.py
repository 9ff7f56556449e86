# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that is a node of the cluster: real containerd and kubelet, and imported images, because there is no registry."""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import json
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.node.rig.authority import Authority
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import KUBERNETES_SERVICE, Port

#: Folders on each machine with the rig's programs, and with those that take precedence over the system's for containerd.
PROGRAMS = "/opt/bin"
FIRST_PROGRAMS = "/rig/programs"
IMAGES = "/opt/images"
#: File of the network of pods.
POD_NETWORK = "/etc/cni/net.d/10-rig.conflist"
#: Stand-ins that make the modules of the driver visible to all programs on the node (tests/node/components/stand-in/node.go).
_SHOWING_MODULES = ("runc", "cat")
PRODUCT, MEMORY_MIB = "NVIDIA H100 80GB HBM3", 81559

#: enable_cdi is the default of containerd 2, and repeated for clarity. restrict_oom_score_adj is required because without
#: CAP_SYS_RESOURCE no sandbox would start.
CONTAINERD = """version = 3
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  enable_cdi = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/usr/lib/cni']
"""
_CONTAINERD_UNIT = f"""[Unit]
After=rig-prepare.service
[Service]
ExecStart=
ExecStart={PROGRAMS}/containerd
Environment=PATH={FIRST_PROGRAMS}:{PROGRAMS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LimitNOFILE=20000
OOMScoreAdjust=
"""
#: As in the upstream unit, restarts are unlimited (kubernetes/release, cmd/krel/templates/latest/kubelet/kubelet.service).
_KUBELET_UNIT = rf"""[Unit]
After=containerd.service rig-prepare.service
Requires=containerd.service rig-prepare.service
StartLimitIntervalSec=0
[Service]
ExecStart={PROGRAMS}/kubelet --config=/etc/kubernetes/kubelet.yaml --kubeconfig=/etc/kubernetes/kubelet.conf --hostname-override=%H \
  --node-ip=@ADDRESS@ --node-labels=@LABELS@
Restart=always
RestartSec=1
KillMode=process
[Install]
WantedBy=multi-user.target
"""
#: What a kubelet needs on a machine that is a container.
IN_CONTAINER = {
    # Its control groups are version 1 and have no systemd below them.
    "failCgroupV1": False,
    "cgroupDriver": "cgroupfs",
    "failSwapOn": False,
    "oomScoreAdj": 0,
    # Imported images must not be removed, because they cannot be pulled.
    "evictionHard": {
        "memory.available": "100Mi",
        "nodefs.available": "1%",
        "imagefs.available": "1%",
        "nodefs.inodesFree": "1%",
    },
    "imageGCHighThresholdPercent": 100,
}


def use_containerd_2(machine: Machine) -> None:
    """Replaces Debian's containerd by the rig's at the next start. The caller runs daemon-reload and restarts the service."""
    machine.write("/etc/systemd/system/containerd.service.d/rig.conf", _CONTAINERD_UNIT)
    # Programs that query the configuration from the containerd in PATH must not get it from Debian's, which has another format.
    machine.sh(f"ln -s {PROGRAMS}/containerd /usr/local/bin/containerd")


def show_modules(machine: Machine) -> None:
    """Modules of the driver become visible to programs on the machine, once it has some."""
    links = "; ".join(f"ln -sf {PROGRAMS}/stand-in {FIRST_PROGRAMS}/{name}" for name in _SHOWING_MODULES)
    machine.sh(f"mkdir {FIRST_PROGRAMS}; {links}")


def simulate_gpus(machine: Machine, count: int, faults: dict[str, t.Any] | None = None) -> None:
    """Sets the simulated GPUs of a machine, also for later boots. faults: see tests/node/components/stand-in/machine.go."""
    describe_gpus(
        machine, {"product": PRODUCT, "memory_mib": MEMORY_MIB, "ecc": True, "count": count, "faults": faults or {}}
    )
    plugged = machine.devices()
    for number in range(count):
        if (slot := f"0000:{16 + number:02x}:00.0") not in plugged:
            machine.plug_device(slot, "0x10de", "0x2330", "0x030200")


def describe_gpus(machine: Machine, described: dict[str, t.Any]) -> None:
    """What programs on the machine and in its containers say of its GPUs. described: as tests/node/components/stand-in/machine.go has it."""
    machine.write("/rig/machine.json", json.dumps({"serial": machine.name, **described}))
    machine.write("/rig/boot", f"#!/bin/sh -e\n{PROGRAMS}/stand-in machine /rig/machine.json\n", mode="0755")
    machine.sh("/rig/boot")


def pod_network(port: Port) -> dict[str, t.Any]:
    """A configuration of CNI with the pods of a machine on a bridge. Pods of other machines are reached by the routes of the machines' network."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": port.pods}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {
        "cniVersion": "1.0.0",
        "name": "rig",
        "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


@dataclasses.dataclass
class KubernetesNode:
    """kubelet and containerd on a machine."""

    machine: Machine
    authority: Authority
    #: Labels that the kubelet sets on its Node.
    labels: c.Mapping[str, str]

    def install(self) -> None:
        """Installs configuration and images, without starting the kubelet."""
        machine = self.machine
        show_modules(machine)
        labels = ",".join(f"{key}={value}" for key, value in self.labels.items())
        machine.write("/etc/containerd/config.toml", CONTAINERD)
        use_containerd_2(machine)
        machine.write(POD_NETWORK, json.dumps(pod_network(machine.port)))
        machine.write("/etc/kubernetes/kubelet.yaml", yaml.safe_dump(self._kubelet()))
        machine.write("/etc/kubernetes/resolv.conf", "")
        machine.write(
            "/etc/systemd/system/kubelet.service",
            _KUBELET_UNIT.replace("@ADDRESS@", machine.address).replace("@LABELS@", labels),
        )
        self._certificates()
        machine.sh("systemctl daemon-reload && systemctl enable --quiet --now containerd")
        self.import_images()

    def import_images(self) -> None:
        script = f'for file in {IMAGES}/*.tar; do {PROGRAMS}/ctr --namespace k8s.io images import --local --all-platforms=false "$file"; done'
        self.machine.sh(script, seconds=900)

    def set_gpus(self, count: int, faults: dict[str, t.Any] | None = None) -> None:
        """As simulate_gpus documents it."""
        simulate_gpus(self.machine, count, faults)

    @contextlib.contextmanager
    def faulty(self, faults: dict[str, t.Any]) -> c.Iterator[None]:
        """The GPUs of the machine have these faults until the end of the context."""
        count = len(self.machine.devices())
        self.set_gpus(count, faults)
        try:
            yield
        finally:
            self.set_gpus(count)

    def start(self) -> None:
        self.machine.sh("systemctl enable --quiet kubelet && systemctl start kubelet")

    def _certificates(self) -> None:
        name = self.machine.name
        client = self.authority.issue(f"system:node:{name}", groups=("system:nodes",))
        server = self.authority.issue(
            f"system:node:{name}", groups=("system:nodes",), addresses=(self.machine.address,)
        )
        machine, folder = self.machine, "/etc/kubernetes"
        machine.write(f"{folder}/ca.crt", self.authority.certificate)
        machine.write(f"{folder}/serving.crt", server.certificate)
        machine.write(f"{folder}/serving.key", server.key, mode="0600")
        machine.write(
            f"{folder}/kubelet.conf", self.authority.kubeconfig(f"https://{KUBERNETES_SERVICE}", client), mode="0600"
        )

    def _kubelet(self) -> dict[str, t.Any]:
        """Settings that differ from the defaults (KubeletConfiguration v1beta1)."""
        folder = "/etc/kubernetes"
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{folder}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{folder}/serving.crt",
            "tlsPrivateKeyFile": f"{folder}/serving.key",
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "address": self.machine.address,
            "resolvConf": f"{folder}/resolv.conf",
            **IN_CONTAINER,
            "imageMinimumGCAge": "24h",
            "nodeStatusUpdateFrequency": "5s",
            "syncFrequency": "10s",
            "serializeImagePulls": False,
        }
