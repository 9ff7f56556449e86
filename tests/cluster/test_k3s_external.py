# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two servers of K3s whose datastore is an etcd of somebody else, behind a load balancer, and an agent, on the stand-in.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import INSIDE, K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import NEXT, VERSION
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, K3sSite
from ansible_collections.hwaccel.gpu.tests.cluster.test_k3s_ha import REINSTALL
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

pytestmark = pytest.mark.slow
SERVERS = ("s1", "s2")
TOKEN = "planted-token-of-servers"
_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
_UNIT = """[Service]
ExecStart={etcd} --name=own --data-dir=/var/lib/own-etcd --listen-client-urls=http://{address}:2379 --advertise-client-urls=http://{address}:2379 \
  --listen-peer-urls=http://127.0.0.1:2380
"""


def start_etcd(rig: K3sRig) -> Machine:
    machine = rig.machine("db")
    etcd = f"{INSIDE}/{VERSION}/etcd"
    machine.write("/etc/systemd/system/own-etcd.service", _UNIT.format(etcd=etcd, address=machine.address))
    machine.sh("systemctl daemon-reload && systemctl start own-etcd")
    return machine


@pytest.fixture(scope="module")
def made(k3s_rig: K3sRig) -> K3sSite:
    address = start_etcd(k3s_rig).address
    site = K3sSite(k3s_rig, SERVERS, agents=("a1",), balancer="lb")
    site.variables |= {
        "cluster_k3s_datastore": "external",
        "cluster_k3s_datastore_endpoint": f"http://{address}:2379",
        "cluster_k3s_token": TOKEN,
    }
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    predicted = site.done("--check").summary["one"]["changes"]
    assert site.done().summary["one"]["changes"] == predicted
    return site


def test_servers_keep_nothing_and_are_one_cluster(made: K3sSite) -> None:
    nodes = {one["metadata"]["name"]: one for one in made.client().list(NODE).items}
    assert nodes.keys() == {*SERVERS, "a1"}
    for name in SERVERS:
        assert made.machines[name].sh(f"ls -d {DATA}/server/db/etcd {DATA}/server/db/state.db 2>/dev/null || :") == ""
    assert len({made.machines[name].sh(f"sha256sum <{DATA}/server/tls/server-ca.crt") for name in SERVERS}) == 1
    assert made.done().changed() == 0


def test_the_endpoint_is_in_no_argument_and_in_one_closed_file(made: K3sSite) -> None:
    endpoint = made.variables["cluster_k3s_datastore_endpoint"]
    for name in SERVERS:
        machine = made.machines[name]
        assert machine.sh(f"grep -rl {endpoint} /etc /run /root 2>/dev/null || :").split() == [
            "/etc/rancher/k3s/config.yaml.d/50-hwaccel-gpu.yaml"
        ]
        assert machine.sh("stat -c %a /etc/rancher/k3s/config.yaml.d/50-hwaccel-gpu.yaml").strip() == "600"
        of_k3s = "for one in $(pgrep -x k3s); do tr '\\0' '\\n' </proc/$one/cmdline; tr '\\0' '\\n' </proc/$one/environ; done"
        assert endpoint not in machine.sh(of_k3s) and TOKEN not in machine.sh(of_k3s)
    nodes = {one["metadata"]["name"]: one for one in made.client().list(NODE).items}
    assert endpoint not in json.dumps(nodes["s1"]["metadata"]["annotations"])


def test_a_changed_setting_is_taken_over_in_turns(made: K3sSite) -> None:
    made.variables["cluster_k3s_configuration"] = {"kubelet-arg": ["max-pods=77"]}
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == [
        "update the server s1",
        "update the server s2",
        "update a1",
    ]
    assert made.done().changed() == 0


def test_a_server_that_was_installed_anew_finds_its_cluster_in_the_datastore(made: K3sSite) -> None:
    uid = made.client().get(_NAMESPACE, "kube-system")["metadata"]["uid"]
    made.machines["s1"].sh(REINSTALL, seconds=120)
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == ["join the server s1"]
    assert made.client().get(_NAMESPACE, "kube-system")["metadata"]["uid"] == uid
    assert {one["metadata"]["name"] for one in made.client().list(NODE).items} == {*SERVERS, "a1"}
    assert made.done().changed() == 0


def test_two_servers_are_upgraded_one_at_a_time(made: K3sSite) -> None:
    assert isinstance(made.rig, K3sRig)
    made.k3s = made.rig.versions[NEXT]
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == [
        "upgrade the server s1",
        "upgrade the server s2",
        "upgrade a1",
    ]
    assert set(made.versions().values()) == {NEXT}
    assert made.done().changed() == 0


def test_another_datastore_is_refused_before_anything_is_changed(made: K3sSite) -> None:
    before = dict(made.variables)
    made.variables["cluster_k3s_datastore_endpoint"] = "http://10.0.0.99:2379"
    try:
        run = made.play()
    finally:
        made.variables = before
    assert run.rc != 0 and run.changed() == 0
    assert "http://10.0.0.99:2379 is set" in json.dumps(run.summary)
