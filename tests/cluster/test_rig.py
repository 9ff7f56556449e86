# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig itself: kubeadm makes a cluster of its machines by hand, without any role, whose pods run and whose Services answer."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import time
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.cluster.rig import images, programs
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import (
    IMAGES,
    POD_SUBNET,
    PROGRAMS,
    SERVICE_SUBNET,
    ClusterRig,
)
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import CONNTRACK, CONTAINERD, CONTAINERD_UNIT, memory
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import IN_CONTAINER
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

#: Addresses of the Services that kubeadm creates: the API server's and that of DNS.
KUBERNETES, DNS = "10.96.0.1", "10.96.0.10"
#: The role's tests use the same rig. Here it is shown without the role.
pytestmark = pytest.mark.slow
_API = "kubeadm.k8s.io/v1beta4"
#: The kernel of the machines has no configuration file, and control groups of version 1.
_IGNORED = ["SystemVerification"]
#: As in the packages of Kubernetes (kubernetes/release, cmd/krel/templates/latest).
_KUBELET_UNIT = """[Unit]
After=containerd.service
StartLimitIntervalSec=0
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=2
KillMode=process
[Install]
WantedBy=multi-user.target
"""
_KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    **IN_CONTAINER,
    # The default of 20 seconds is most of the time of an upgrade, which replaces four static pods one by one.
    "fileCheckFrequency": "2s",
}
_KUBE_PROXY = {
    "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
    "kind": "KubeProxyConfiguration",
    "mode": "nftables",
    "conntrack": CONNTRACK,
}

_PLUGINS = """[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
"""


def install(machine: Machine, *archives: str) -> None:
    """What a machine needs before kubeadm runs."""
    machine.sh(f"install {PROGRAMS}/kubeadm {PROGRAMS}/kubelet /usr/local/bin; echo 1 >/proc/sys/net/ipv4/ip_forward")
    machine.write("/etc/containerd/config.toml", CONTAINERD + _PLUGINS)
    machine.write("/etc/systemd/system/containerd.service.d/limits.conf", CONTAINERD_UNIT)
    machine.write("/etc/systemd/system/kubelet.service", _KUBELET_UNIT)
    machine.sh("systemctl daemon-reload; systemctl enable --quiet --now containerd; systemctl enable --quiet kubelet")
    for archive in archives:
        machine.sh(f"ctr --namespace k8s.io images import {IMAGES}/{archive}", seconds=600)


def kubeadm(machine: Machine, command: str, *documents: dict[str, t.Any]) -> str:
    machine.write("/etc/kubernetes/kubeadm.yaml", yaml.safe_dump_all(documents))
    return machine.sh(f"kubeadm {command} --config /etc/kubernetes/kubeadm.yaml 2>&1", seconds=900)


def init(machine: Machine) -> str:
    return kubeadm(
        machine,
        "init",
        {
            "apiVersion": _API,
            "kind": "InitConfiguration",
            "localAPIEndpoint": {"advertiseAddress": machine.address},
            "nodeRegistration": {"ignorePreflightErrors": _IGNORED},
        },
        {
            "apiVersion": _API,
            "kind": "ClusterConfiguration",
            "kubernetesVersion": programs.VERSION,
            "controlPlaneEndpoint": f"{machine.address}:6443",
            "networking": {"podSubnet": POD_SUBNET, "serviceSubnet": SERVICE_SUBNET},
        },
        _KUBELET,
        _KUBE_PROXY,
    )


def join(machine: Machine, first: Machine) -> str:
    command = first.sh("kubeadm token create --print-join-command")
    token, digest = re.findall(r"--token (\S+) --discovery-token-ca-cert-hash (\S+)", command)[0]
    discovery = {"apiServerEndpoint": f"{first.address}:6443", "token": token, "caCertHashes": [digest]}
    return kubeadm(
        machine,
        "join",
        {
            "apiVersion": _API,
            "kind": "JoinConfiguration",
            "discovery": {"bootstrapToken": discovery},
            "nodeRegistration": {"ignorePreflightErrors": _IGNORED},
        },
    )


@dataclasses.dataclass(frozen=True)
class Made:
    """The cluster, what each step took in seconds, and the memory of each machine in MiB without what is shared."""

    first: Machine
    worker: Machine
    client: Client
    seconds: dict[str, float]

    def ready(self, nodes: int) -> bool:
        conditions = [one for node in self.client.list(NODE).items for one in node["status"].get("conditions", ())]
        return sum(one["type"] == "Ready" and one["status"] == "True" for one in conditions) == nodes

    def memory(self) -> dict[str, int]:
        return {machine.name: memory(machine) for machine in (self.first, self.worker)}


@pytest.fixture(scope="module")
def made(rig: ClusterRig, tmp_path_factory: pytest.TempPathFactory) -> Made:
    seconds: dict[str, float] = {}

    def timed(step: str, does: t.Callable[[], t.Any]) -> t.Any:
        began = time.monotonic()
        result = does()
        seconds[step] = round(time.monotonic() - began, 1)
        return result

    first = timed("boot first", functools.partial(rig.machine, "first"))
    worker = timed("boot worker", functools.partial(rig.machine, "worker"))
    timed("install first", functools.partial(install, first, images.CONTROL_PLANE, images.NODE))
    timed("install worker", functools.partial(install, worker, images.NODE))
    timed("init", functools.partial(init, first))
    timed("join", functools.partial(join, worker, first))
    kubeconfig = tmp_path_factory.mktemp("made") / "kubeconfig"
    kubeconfig.write_text(first.read("/etc/kubernetes/admin.conf"), encoding="utf-8")
    made = Made(first, worker, connect({"kubeconfig": str(kubeconfig)}), seconds)
    timed("nodes Ready", lambda: worker.wait("both nodes are Ready", lambda: made.ready(2)))
    timed("pods Ready", lambda: worker.wait("all pods of the system are Ready", functools.partial(_running, made)))
    return made


def _running(made: Made) -> bool:
    """Whether all pods of the system, with two of DNS and a kube-proxy for each node, are Ready."""
    pods = made.client.list(POD, namespace="kube-system").items
    ready = [
        one["status"] == "True" for pod in pods for one in pod["status"].get("conditions", ()) if one["type"] == "Ready"
    ]
    return len(pods) == len(ready) == 8 and all(ready)


def test_the_archives_contain_what_kubeadm_asks_for(made: Made) -> None:
    wanted = set(made.first.sh(f"kubeadm config images list --kubernetes-version {programs.VERSION}").split())
    imported = set(made.first.sh("ctr --namespace k8s.io images list --quiet").split())
    assert wanted <= imported
    assert made.first.sh("kubelet --version; kubeadm version -o short").split()[1:] == [programs.VERSION] * 2


def test_a_pod_resolves_and_reaches_a_service_and_its_log_is_read(made: Made) -> None:
    script = (
        f"nslookup kubernetes.default.svc.cluster.local {DNS} && nc -w 5 {KUBERNETES} 443 </dev/null && echo reached"
    )
    container = {"name": "main", "image": BUSYBOX, "command": ["sh", "-c", script]}
    spec = {"restartPolicy": "Never", "nodeName": made.worker.name, "containers": [container]}
    metadata = {"name": "hello", "namespace": "default"}
    began = time.monotonic()
    made.client.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, POD)
    made.worker.wait(
        "the pod has ended",
        lambda: made.client.get(POD, "hello", "default")["status"].get("phase") in ("Succeeded", "Failed"),
    )
    made.seconds["pod"] = round(time.monotonic() - began, 1)
    log = made.client.logs("default", "hello", "main")
    assert log.endswith("reached\n"), log
    assert KUBERNETES in log


def test_the_service_of_the_api_server_answers_by_rules_of_nftables(made: Made) -> None:
    ask = "import ssl, urllib.request as r; print(r.urlopen('https://{}/readyz', context=ssl._create_unverified_context()).read())"
    assert made.worker.execute("python3", "-c", ask.format(KUBERNETES)).stdout == "b'ok'\n"
    rules = made.worker.sh("nsenter --target $(pidof -s kube-proxy) --mount nft list table ip kube-proxy")
    assert KUBERNETES in rules


def test_time_and_memory(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints what the rig takes, as the basis of the budgets of tests."""
    memory = made.memory()
    with capsys.disabled():
        print(f"\n{json.dumps({'seconds': made.seconds, 'memory in MiB': memory})}")
    assert sum(memory.values()) < 2048
