# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server and an agent whose pods and Services have addresses of both families, by the role, on the stand-in for K3s.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig import pods
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import K3sSite
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX
from ansible_collections.hwaccel.gpu.tests.node.rig.network import BRIDGE, ip

pytestmark = pytest.mark.slow
_SERVICE = Resource("", "v1", "Service", "services", True)
#: Of the machines' network.
_PREFIX = "fd00:99::"


@pytest.fixture(scope="module")
def site(k3s_rig: K3sRig) -> K3sSite:
    site = K3sSite(k3s_rig, ("s1",), ("a1",))
    site.variables |= {
        "cluster_k3s_pod_network": "10.42.0.0/16,fd00:42::/56",
        "cluster_k3s_service_network": "10.43.0.0/16,fd00:43::/112",
    }
    return site


def second(site: K3sSite, name: str) -> str:
    """The machine's address of IPv6."""
    return _PREFIX + site.machines[name].address.rpartition(".")[2]


def test_a_machine_without_an_address_of_ipv6_is_refused(site: K3sSite) -> None:
    run = site.play()
    assert run.rc != 0 and run.changed() == 0
    for name in site.machines:
        assert "the machine has no address of IPv6" in str(run.summary[name]["reasons"])


@pytest.fixture(scope="module")
def made(site: K3sSite) -> K3sSite:
    ip("-6", "address", "add", f"{_PREFIX}1/64", "dev", BRIDGE, "nodad")
    for name, machine in site.machines.items():
        machine.sh(f"ip -6 address add {second(site, name)}/64 dev eth0 nodad; ip -6 route add default via {_PREFIX}1")
    site.done()
    return site


def test_nodes_have_addresses_and_pods_of_both_families(made: K3sSite) -> None:
    nodes = {one["metadata"]["name"]: one for one in made.client().list(NODE).items}
    for name, machine in made.machines.items():
        found = [one["address"] for one in nodes[name]["status"]["addresses"] if one["type"] == "InternalIP"]
        assert found == [machine.address, second(made, name)]
        of_four, of_six = nodes[name]["spec"]["podCIDRs"]
        assert of_four.startswith("10.42.") and of_six.startswith("fd00:42:")
    assert made.done().changed() == 0


def test_two_stacks_reach_each_other(made: K3sSite) -> None:
    client, labels = made.client(), {"app": "web"}
    script = "mkdir /w; echo hello >/w/index.html; httpd -f -p '[::]:8080' -h /w"
    web = {"name": "main", "image": BUSYBOX, "command": ["sh", "-c", script]}
    metadata = {"name": "web", "namespace": "default"}
    spec = {"nodeName": "a1", "containers": [web]}
    client.create({"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "labels": labels}, "spec": spec}, POD)
    service = {
        "selector": labels,
        "ports": [{"port": 80, "targetPort": 8080}],
        "ipFamilyPolicy": "RequireDualStack",
        "clusterIPs": ["10.43.0.80", "fd00:43::80"],
        "clusterIP": "10.43.0.80",
    }
    client.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service}, _SERVICE)
    asked = "".join(
        f"until printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 {address} 80 | grep hello; do sleep 1; done; "
        for address in service["clusterIPs"]
    )
    assert pods.output(client, made.machines["s1"], "asks", asked, nodeName="s1").split() == ["hello", "hello"]
    assert [":" in one["ip"] for one in client.get(POD, "web", "default")["status"]["podIPs"]] == [False, True]
