# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two servers whose etcd runs on a machine of its own, and networks of pods and Services of both families of addresses, for real."""

from __future__ import annotations

import ipaddress
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.pki import ensure_pki
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import POD_SUBNET, SERVICE_SUBNET, ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import CONFIGURATION, Site
from ansible_collections.hwaccel.gpu.tests.node.rig.authority import Authority
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

_SERVICE = Resource("", "v1", "Service", "services", True)
_PODS_6, _SERVICES_6 = "fd00:10:244::/56", "fd00:10:96::/112"
#: On the servers, whose owner has put them there.
_FOLDER = "/etc/etcd-client"
_UNIT = """[Service]
ExecStart=/opt/etcd --name=own --data-dir=/var/lib/own-etcd --listen-client-urls=https://{address}:2379 --advertise-client-urls=https://{address}:2379 \
  --listen-peer-urls=http://127.0.0.1:2380 --client-cert-auth --trusted-ca-file=/etc/own-etcd/ca.crt --cert-file=/etc/own-etcd/own.crt \
  --key-file=/etc/own-etcd/own.key
"""


def start_etcd(rig: ClusterRig, known: Authority) -> Machine:
    machine = rig.machine("db", {str(rig.parts.programs.packed["etcd"]): "/opt/etcd"})
    own = known.issue("etcd", addresses=(machine.address,))
    for name, text in {"ca.crt": known.certificate, "own.crt": own.certificate, "own.key": own.key}.items():
        machine.write(f"/etc/own-etcd/{name}", text, "0600")
    machine.write("/etc/systemd/system/own-etcd.service", _UNIT.format(address=machine.address))
    machine.sh("systemctl daemon-reload && systemctl start own-etcd")
    return machine


@pytest.fixture(scope="module")
def site(rig: ClusterRig, tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("etcd") / "pki"
    ensure_pki(folder)
    known = Authority(folder)
    address = start_etcd(rig, known).address
    site = Site(rig, servers=("cp1", "cp2"), agents=("w1",), balancer="lb")
    mine = known.issue("kube-apiserver")
    for name in site.servers:
        for file, text in {"ca.crt": known.certificate, "own.crt": mine.certificate, "own.key": mine.key}.items():
            site.machines[name].write(f"{_FOLDER}/{file}", text, "0600")
    files = {"caFile": f"{_FOLDER}/ca.crt", "certFile": f"{_FOLDER}/own.crt", "keyFile": f"{_FOLDER}/own.key"}
    external: dict[str, t.Any] = {"endpoints": [f"https://{address}:2379"], **files}
    site.variables |= {
        "cluster_kubeadm_pod_network": f"{POD_SUBNET},{_PODS_6}",
        "cluster_kubeadm_service_network": f"{SERVICE_SUBNET},{_SERVICES_6}",
        "cluster_kubeadm_configuration": {**CONFIGURATION, "ClusterConfiguration": {"etcd": {"external": external}}},
    }
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    return site


@pytest.mark.slow
def test_servers_keep_their_data_in_an_etcd_of_somebody_else(site: Site) -> None:
    predicted = site.done("--check").summary["one"]["changes"]
    run = site.done()
    assert run.summary["one"]["changes"] == predicted
    nodes = {node["metadata"]["name"]: node for node in site.client().list(NODE).items}
    assert nodes.keys() == {"cp1", "cp2", "w1"}
    for name in site.servers:
        assert site.machines[name].sh("ls /etc/kubernetes/manifests/etcd.yaml /var/lib/etcd 2>/dev/null || :") == ""
    for node in nodes.values():
        families = [ipaddress.ip_network(one).version for one in node["spec"]["podCIDRs"]]
        assert families == [4, 6]
    own = site.client().get(_SERVICE, "kube-dns", "kube-system")
    assert own["spec"]["ipFamilies"] == ["IPv4"]
    second = site.done()
    assert second.changed() == 0, second.stdout[-6000:]


@pytest.mark.slow
def test_a_turn_of_such_servers_takes_no_snapshot_and_waits_for_no_voter(site: Site) -> None:
    before = dict(site.variables)
    usual = site.variables["cluster_kubeadm_configuration"]
    kubelet = {**usual["KubeletConfiguration"], "maxPods": 77}
    site.variables["cluster_kubeadm_configuration"] = {**usual, "KubeletConfiguration": kubelet}
    run = site.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == [
        "change the configuration of the cluster on cp1",
        "update the server cp1",
        "update the server cp2",
        "update w1",
    ]
    assert {node["status"]["capacity"]["pods"] for node in site.client().list(NODE).items} == {"77"}
    assert site.done().changed() == 0
    site.variables = before


@pytest.mark.slow
def test_a_retired_server_leaves_the_data_to_the_other_one(site: Site) -> None:
    site.retired = {"cp1"}
    run = site.done()
    assert "take out cp1: it is retired" in run.summary["one"]["changes"]
    assert {node["metadata"]["name"] for node in site.client().list(NODE).items} == {"cp2", "w1"}
    assert site.done().changed() == 0
