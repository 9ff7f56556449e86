# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device plugin behind the real kubelet: GPUs taken and waited for, a sick one, a plugin that is gone, a kubelet that starts anew.

The plugin is a stand-in, its interface, its manifest and the kubelet are not.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.tests.node.conftest import REAL, Enabled
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode

RESOURCE = "nvidia.com/gpu"
APP = "nvidia-device-plugin-daemonset"
#: Seconds until a verdict; the kubelet writes its node's status every five.
SOON = 15.0
Taken = c.Callable[[str], None]


def figures(cluster: Cluster) -> tuple[str, str]:
    """GPUs of the node: capacity and allocatable."""
    status = cluster.client.get(NODE, REAL)["status"]
    return status["capacity"].get(RESOURCE, ""), status["allocatable"].get(RESOURCE, "")


def plugin(client: Client) -> dict[str, t.Any]:
    pods = client.list(POD, label_selector=f"app={APP}", field_selector=f"spec.nodeName={REAL}").items
    return max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])


def replace_plugin(cluster: Cluster) -> None:
    metadata = plugin(cluster.client)["metadata"]
    cluster.client.delete(POD, metadata["name"], metadata["namespace"])
    cluster.wait("another pod of the plugin is there", lambda: plugin(cluster.client)["metadata"]["uid"] != metadata["uid"])


def switch(cluster: Cluster, value: str | None) -> None:
    """NVIDIA's own, which keeps the plugin away from a node."""
    cluster.client.patch(NODE, REAL, "", {"metadata": {"labels": {"nvidia.com/gpu.deploy.device-plugin": value}}})


@pytest.fixture
def take(cluster: Cluster, enabled: Enabled) -> c.Iterator[Taken]:
    """take(name): a pod for the node that asks for a GPU and stays."""
    names: list[str] = []

    def create(name: str) -> None:
        container = {"name": "main", "image": BUSYBOX, "command": ["sleep", "1000000"], "resources": {"limits": {RESOURCE: 1}}}
        spec = {
            "nodeSelector": {"kubernetes.io/hostname": REAL}, "terminationGracePeriodSeconds": 0, "containers": [container],
            "tolerations": [{"operator": "Exists"}],
        }
        cluster.client.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}, POD)
        names.append(name)

    yield create
    for name in names:
        cluster.client.delete(POD, name, "default")
    cluster.wait("the pods are gone", lambda: not any(pod["metadata"]["name"] in names for pod in cluster.client.list(POD, namespace="default").items))


def status(cluster: Cluster, name: str) -> dict[str, t.Any]:
    return dict(cluster.client.get(POD, name, "default")["status"])


def running(cluster: Cluster, name: str) -> bool:
    return status(cluster, name).get("phase") == "Running"


def test_two_pods_have_one_gpu_each_and_a_third_waits(cluster: Cluster, node: KubernetesNode, take: Taken) -> None:
    for name in ("first", "second"):
        take(name)
        cluster.wait(f"{name} runs", lambda name=name: running(cluster, name))
    take("third")

    def why() -> str:
        return " ".join(condition.get("message", "") for condition in status(cluster, "third").get("conditions", ()))

    cluster.wait("the scheduler has said why", lambda: f"Insufficient {RESOURCE}" in why())
    assert status(cluster, "third")["phase"] == "Pending"


def test_the_exporter_names_the_pod_that_has_a_gpu(cluster: Cluster, node: KubernetesNode, take: Taken) -> None:
    take("user")
    cluster.wait("it runs", lambda: running(cluster, "user"))
    pods = cluster.client.list(POD, label_selector="app=nvidia-dcgm-exporter", field_selector=f"spec.nodeName={REAL}").items
    text = node.machine.sh(f"busybox wget -qO- http://{pods[0]['status']['podIP']}:9400/metrics")
    temperatures = [line for line in text.splitlines() if line.startswith("DCGM_FI_DEV_GPU_TEMP{")]
    assert len(temperatures) == 2
    assert sum('namespace="default"' in line and 'pod="user"' in line for line in temperatures) == 1


def test_a_sick_gpu_is_offered_to_nobody_until_the_plugin_starts_anew(cluster: Cluster, node: KubernetesNode, enabled: Enabled) -> None:
    node.set_gpus(2, {"xid": {"1": 48}})
    cluster.wait("one GPU is left", lambda: figures(cluster) == ("2", "1"), SOON)
    node.set_gpus(2)
    replace_plugin(cluster)
    cluster.wait("both are back", lambda: figures(cluster) == ("2", "2"))


def test_a_kubelet_that_starts_anew_is_registered_with_anew(cluster: Cluster, node: KubernetesNode, take: Taken) -> None:
    take("stays")
    cluster.wait("it runs", lambda: running(cluster, "stays"))
    before = plugin(cluster.client)
    node.machine.sh("systemctl restart kubelet")
    cluster.wait("the GPUs are gone for a moment", lambda: figures(cluster)[1] == "0", SOON)
    cluster.wait("they are back", lambda: figures(cluster) == ("2", "2"))
    after = plugin(cluster.client)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert running(cluster, "stays")


def test_without_a_plugin_allocatable_tells_at_once_and_capacity_does_not(cluster: Cluster, node: KubernetesNode, enabled: Enabled) -> None:
    switch(cluster, "false")
    cluster.wait("none can be allocated", lambda: figures(cluster) == ("2", "0"), SOON)
    switch(cluster, None)
    cluster.wait("both are back", lambda: figures(cluster) == ("2", "2"))
