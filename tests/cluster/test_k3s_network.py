# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server and an agent of K3s without flannel, whose pods have a network by manifests of the user's and another default runtime; and their certificates when
they expire. On the stand-in.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import places
from ansible_collections.hwaccel.gpu.tests.cluster.rig.expiry import K3S_AGENT, K3S_SERVER, expire, last_day
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, K3sSite
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX

pytestmark = pytest.mark.slow
#: Where a network plugin installs itself on a node whose containerd has its defaults, as that of K3s without flannel.
_CONF, _BIN = "/etc/cni/net.d", "/opt/cni/bin"
#: Each node has the part of the pods' network with the last number of its address, and answers for it to whoever asks for one of its pods.
_INSTALL = """set -eu
number=${HOST##*.} device=$(ip -4 route show default | sed 's/.* dev //; s/ .*//' | head -n 1)
cp /debian/* /bin-of-node
ip link show own0 2>/dev/null || ip link add own0 type bridge
ip address replace 10.42.$number.1/24 dev own0; ip link set own0 up
ip route replace 10.42.0.0/16 dev $device
echo 1 >/proc/sys/net/ipv4/conf/$device/proxy_arp; echo 1 >/proc/sys/net/ipv4/ip_forward
echo '{"cniVersion": "1.0.0", "name": "own", "plugins": [{"type": "bridge", "bridge": "own0", "isGateway": true, "ipam": {"type": "host-local",
  "ranges": [[{"subnet": "10.42.NUMBER.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}' | sed "s/NUMBER/$number/" >/conf-of-node/10-own.new
mv /conf-of-node/10-own.new /conf-of-node/10-own.conflist
exec sleep 1000000
"""
#: Of NVIDIA's runtime only that it starts containers.
_RUNTIME = """#!/bin/sh
echo "$@" >>/run/started-by-nvidia
exec runc "$@"
"""


def network() -> dict[str, t.Any]:
    folders = {"conf-of-node": _CONF, "bin-of-node": _BIN, "debian": "/usr/lib/cni"}
    container = {
        "name": "install",
        "image": BUSYBOX,
        "command": ["sh", "-c", _INSTALL],
        "env": [{"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in folders],
    }
    spec = {
        "hostNetwork": True,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "terminationGracePeriodSeconds": 1,
        "volumes": [
            {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for name, path in folders.items()
        ],
    }
    labels = {"app": "own-network"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "own-network", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


@pytest.fixture(scope="module")
def made(k3s_rig: K3sRig) -> K3sSite:
    site = K3sSite(k3s_rig, servers=("s1",), agents=("a1",))
    for machine in site.machines.values():
        machine.write("/usr/bin/nvidia-container-runtime", _RUNTIME, "0755")
    site.variables |= {
        "cluster_k3s_flannel_backend": "none",
        "cluster_k3s_network": [network()],
        "cluster_k3s_default_runtime": "nvidia",
    }
    predicted = site.done("--check").summary["one"]["changes"]
    run = site.done()
    assert run.summary["one"]["changes"] == predicted
    return site


def test_nodes_are_ready_when_the_network_of_the_user_is_there(made: K3sSite) -> None:
    for node in made.client().list(NODE).items:
        conditions = {one["type"]: one["status"] for one in node["status"]["conditions"]}
        assert conditions["Ready"] == "True"
        assert "flannel.alpha.coreos.com/backend-type" not in node["metadata"].get("annotations", {})
    for name, machine in made.machines.items():
        configured = machine.sh(f"find {DATA}/agent/etc/cni {_CONF} -name '*.conf*' 2>/dev/null || :").split()
        # That of podman is Debian's.
        assert [path for path in configured if "podman" not in path] == [f"{_CONF}/10-own.conflist"]
        made.start_pod(name)
        pod = made.client().get(POD, f"stays-{name}", "default")
        assert pod["status"]["podIP"].startswith(f"10.42.{machine.address.rpartition('.')[2]}.")
    assert made.done().changed() == 0


def test_pods_that_name_no_runtime_start_with_the_default_one(made: K3sSite) -> None:
    for name, machine in made.machines.items():
        assert made.container(name).rpartition("/")[2] in machine.read("/run/started-by-nvidia")


def test_certificates_that_expire_soon_are_renewed_by_a_restart_which_pods_outlive(made: K3sSite) -> None:
    server, agent = made.machines["s1"], made.machines["a1"]
    expire(server, 12.5, K3S_SERVER)
    expire(agent, 14.5, K3S_AGENT, server)
    due = {name: last_day(machine, places.NODE_CERTIFICATE) for name, machine in made.machines.items()}
    before = {name: made.container(name) for name in made.machines}
    run = made.done()
    assert run.summary["one"]["changes"] == [
        "update the server s1: a certificate of its K3s expires in 12 days",
        "update a1: a certificate of its K3s expires in 14 days",
    ]
    assert {name: made.container(name) for name in made.machines} == before
    for name, machine in made.machines.items():
        assert (last_day(machine, places.NODE_CERTIFICATE) - due[name]).days > 300
    assert made.done().changed() == 0


def test_a_cluster_whose_certificates_have_all_expired_is_brought_back(made: K3sSite) -> None:
    server, agent = made.machines["s1"], made.machines["a1"]
    before = {name: made.container(name) for name in made.machines}
    expire(server, -2, K3S_SERVER)
    expire(agent, -2, K3S_AGENT, server)
    server.sh("systemctl stop k3s")
    agent.sh("systemctl stop k3s-agent")
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == [
        "renew the certificates of s1",
        "update a1",
    ]
    assert {one["metadata"]["name"] for one in made.client().list(NODE).items} == {"s1", "a1"}
    # Pods outlive it.
    assert {name: made.container(name) for name in made.machines} == before
    assert made.done().changed() == 0
