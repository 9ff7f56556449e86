# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters of several servers that K3s' own script has made become those of the role: with etcd, and with a datastore of somebody else."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig import k3s_by_hand
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, K3sSite
from ansible_collections.hwaccel.gpu.tests.cluster.test_k3s_external import start_etcd
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

pytestmark = pytest.mark.slow
_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
#: Given to the script by its caller.
SECRET = "5c1e7a0b9d"
OPTIONS = (
    "--disable",
    "traefik,servicelb,coredns,local-storage,metrics-server",
    "--flannel-backend=host-gw",
    "--secrets-encryption",
)


def installed(site: K3sSite, name: str, command: str, *arguments: str, **environment: str) -> Machine:
    machine = site.machines[name]
    assert isinstance(site.rig, K3sRig)
    options = OPTIONS if command == "server" else ()
    k3s_by_hand.install_by_script(machine, site.rig.k3s, command, *options, *arguments, K3S_TOKEN=SECRET, **environment)
    return machine


def lasting(site: K3sSite) -> dict[str, t.Any]:
    """What stays of a cluster that is adopted."""
    client = site.client()
    return {
        "uid": client.get(_NAMESPACE, "kube-system")["metadata"]["uid"],
        "nodes": {one["metadata"]["name"]: one["metadata"]["uid"] for one in client.list(NODE).items},
        "authority": {site.machines[name].read(f"{DATA}/server/tls/server-ca.crt") for name in site.servers},
        "containers": {name: site.container(name) for name in (*site.servers, *site.agents)},
    }


def adopted(site: K3sSite) -> None:
    """It is adopted as check mode says, its pods go on, no secret is shown, and the next run changes nothing."""
    client = site.client()
    members = (*site.servers, *site.agents)
    site.machines[site.servers[0]].wait(
        "all nodes are registered", lambda: len(client.list(NODE).items) == len(members), seconds=120
    )
    for name in members:
        site.start_pod(name)
    before = lasting(site)
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    refused = site.play()
    assert refused.rc != 0 and refused.changed() == 0 and "cluster_k3s_adopt: true" in json.dumps(refused.summary)
    site.variables["cluster_k3s_adopt"] = True
    predicted = {name: one["changes"] for name, one in site.done("--check", "--diff").summary.items()}
    run = site.done("--diff")
    assert {name: one["changes"] for name, one in run.summary.items()} == predicted
    assert [text.partition(":")[0] for text in predicted["one"]] == [
        *(f"update the server {name}" for name in site.servers),
        *(f"update {name}" for name in site.agents),
    ]
    assert lasting(site) == before and SECRET not in run.stdout
    again = site.done()
    assert again.changed() == 0, again.stdout[-4000:]


def test_three_servers_with_etcd_and_an_agent_are_adopted(k3s_rig: K3sRig) -> None:
    site = K3sSite(k3s_rig, ("s1", "s2", "s3"), agents=("a1",), balancer="lb")
    first = installed(site, "s1", "server", "--cluster-init")
    url = f"https://{first.address}:6443"
    for name in ("s2", "s3"):
        installed(site, name, "server", f"--server={url}")
    installed(site, "a1", "agent", K3S_URL=url)
    voters = site.voters(first)
    adopted(site)
    assert site.voters(first) == voters == {"s1", "s2", "s3"}
    entry = site.machines["a1"].read("/etc/rancher/k3s/config.yaml.d/55-hwaccel-gpu-cluster.yaml")
    assert f"server: https://{site.machines['lb'].address}:6443" in entry


def test_two_servers_with_a_datastore_of_somebody_else_are_adopted(k3s_rig: K3sRig) -> None:
    endpoint = f"http://{start_etcd(k3s_rig).address}:2379"
    site = K3sSite(k3s_rig, ("e1", "e2"), balancer="lb2")
    for name in site.servers:
        installed(site, name, "server", f"--datastore-endpoint={endpoint}")
    site.variables |= {
        "cluster_k3s_datastore": "external",
        "cluster_k3s_datastore_endpoint": endpoint,
        "cluster_k3s_token": SECRET,
    }
    adopted(site)
