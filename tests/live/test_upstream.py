# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Upstream's static manifests and the GPU Operator's objects come up on nodes of the sandbox as they do on real ones, and fail where they do there.

Runtime: two sandboxes, without a run of a playbook.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.tests.live.support import gpu_stack, operator_stack
from ansible_collections.hwaccel.gpu.tests.live.support import upstream_stack as upstream
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU, Cluster, is_ready, until

DGX = {
    "name": "dgx",
    "count": 1,
    "os_image": "Ubuntu 22.04.5 LTS",
    "kernel": "5.15.0-1046-nvidia",
    "host_driver": "580.95.05",
    "host_toolkit": True,
    "gpu": GPU,
}
FEATURE = "feature.node.kubernetes.io/"
#: Labels of a GPU node that the operator's binary, GPU feature discovery and the driver manager had written on it.
LABELS = {
    **{f"nvidia.com/gpu.deploy.{name}": "true" for name in (*operator_stack.OPERANDS, "mig-manager")},
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.deploy.nvsm": "",
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.product": GPU["product"],
    "nvidia.com/gpu.sharing-strategy": "none",
    "nvidia.com/mig.capable": "true",
    "nvidia.com/mig.strategy": "single",
    "nvidia.com/mps.capable": "false",
}


def put(client: Client, objects: t.Iterable[dict[str, t.Any]]) -> None:
    for obj in objects:
        client.forget_discovery()
        client.apply(obj, client.resource(obj["apiVersion"], obj["kind"]), field_manager="kubectl", force=True)


def serves(client: Client, kind: str) -> bool:
    client.forget_discovery()
    return any(one.kind == kind for one in client.all_resources())


class Stack(Cluster):
    """A cluster with pods that are found by the beginnings of their names."""

    def of(self, prefix: str, node: str) -> dict[str, t.Any]:
        """The pod of a workload on a node, {} without one."""
        pods = self.client.list(self.client.resource("v1", "Pod"), field_selector=f"spec.nodeName={node}").items
        return next((pod for pod in pods if pod["metadata"]["name"].startswith(f"{prefix}-")), {})

    def ready(self, prefix: str, node: str) -> bool:
        pod = self.of(prefix, node)
        return bool(pod) and is_ready(pod)

    def crashes(self, prefix: str, node: str) -> bool:
        pod = self.of(prefix, node)
        statuses = (pod.get("status") or {}).get("containerStatuses") or []
        return any(
            one["restartCount"] and one["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"
            for one in statuses
        )

    def log(self, prefix: str, node: str) -> str:
        pod = self.of(prefix, node)
        metadata, container = pod["metadata"], pod["spec"]["containers"][0]["name"]
        return self.client.logs(metadata["namespace"], metadata["name"], container, previous=True)

    def labels(self, node: str) -> dict[str, str]:
        return self.node(node)["metadata"].get("labels") or {}


def test_static_manifests_on_a_machine_with_its_own_driver_and_toolkit(make_sandbox: t.Any) -> None:
    cluster = Stack(make_sandbox({"time_scale": 0.01, "pools": [DGX, {"name": "cpu", "count": 1}]}))
    client = cluster.client
    put(client, [*upstream.nfd(), upstream.plugin(), upstream.exporter(), upstream.discovery()])
    until(lambda: cluster.gpus("dgx-0") == 8, "the static device plugin to offer the GPUs")
    until(lambda: f"{FEATURE}pci-0302_10de.present" in cluster.labels("dgx-0"), "NFD's default labels")
    until(lambda: cluster.ready("dcgm-exporter", "dgx-0"), "the static exporter to be ready")
    until(lambda: all(cluster.ready("nfd-worker", node) for node in ("dgx-0", "cpu-0")), "NFD's workers to be ready")

    # The manifests of plugin and exporter select no nodes.
    for name in ("nvidia-device-plugin-daemonset", "dcgm-exporter"):
        until(lambda name=name: cluster.crashes(name, "cpu-0"), f"{name} to fail on a node without GPUs")

    # GPU feature discovery waits for a label that NFD writes only with another configuration, or somebody by hand.
    assert not cluster.of("gpu-feature-discovery", "dgx-0")
    node = client.resource("v1", "Node")
    client.patch(
        node, "dgx-0", "", {"metadata": {"labels": {"nvidia.com/gpu.present": "true"}}}, field_manager="people"
    )
    # Its manifest has no NODE_NAME, which its program needs since NodeFeatures are its default (v0.20.0, internal/lm/output.go).
    until(lambda: cluster.crashes("gpu-feature-discovery", "dgx-0"), "GPU feature discovery to fail")
    assert "required flag" in cluster.log("gpu-feature-discovery", "dgx-0")
    put(client, [upstream.discovery(USE_NODE_FEATURE_API="false")])
    until(
        lambda: cluster.labels("dgx-0").get("nvidia.com/gpu.product") == GPU["product"],
        "labels from GPU feature discovery's file",
    )

    pod = upstream.sample()
    put(client, [pod])
    pods = client.resource("v1", "Pod")

    def phase() -> str:
        return str(client.get(pods, "gpu-pod", "default")["status"].get("phase"))

    until(lambda: phase() in ("Succeeded", "Failed"), "the sample to end", seen=phase)
    assert phase() == "Succeeded"
    assert "Test PASSED" in client.logs("default", "gpu-pod", "cuda-container")
    cluster.sandbox.close()


def test_the_operators_objects_with_a_stand_in_for_its_controller(make_sandbox: t.Any) -> None:
    capable = {"name": "gpu", "count": 1, "kernel": gpu_stack.KERNEL, "gpu": {**GPU, "mig_capable": True}}
    fleet = {
        "time_scale": 0.01,
        "images": [operator_stack.MIG_MANAGER_IMAGE],
        "pools": [capable, DGX, {"name": "cpu", "count": 1}],
    }
    cluster = Stack(make_sandbox(fleet))
    client, controller = cluster.client, operator_stack.Controller(cluster.client)
    put(client, [gpu_stack.CLUSTER_POLICY])
    until(lambda: serves(client, "ClusterPolicy"), "the kind ClusterPolicy")
    metadata = {"name": "cluster-policy"}
    put(client, [{"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": {}}])
    (policy,) = client.list(client.resource("nvidia.com/v1", "ClusterPolicy")).items
    controller.deploy(policy)
    expected = {
        "gpu-feature-discovery": (2, 2),
        "gpu-operator-node-feature-discovery-worker": (3, 3),
        "nvidia-container-toolkit-daemonset": (2, 2),
        "nvidia-dcgm-exporter": (2, 2),
        "nvidia-device-plugin-daemonset": (2, 2),
        # No GPU of this fleet is offered by MPS, only one pool has MIG, and the DGX has a driver of its own.
        "nvidia-device-plugin-mps-control-daemon": (0, 0),
        "nvidia-driver-daemonset": (1, 1),
        "nvidia-mig-manager": (1, 1),
        "nvidia-operator-validator": (2, 2),
    }
    until(lambda: controller.states() == expected, "the operator's DaemonSets to be ready", 150, controller.states)
    assert cluster.gpus("gpu-0") == cluster.gpus("dgx-0") == 8
    proofs = [cluster.of("nvidia-cuda-validator", node) for node in ("gpu-0", "dgx-0")]
    assert [pod["status"]["phase"] for pod in proofs] == ["Succeeded", "Succeeded"]
    assert {owner["kind"] for pod in proofs for owner in pod["metadata"]["ownerReferences"]} == {"ClusterPolicy"}
    assert cluster.labels("gpu-0").items() >= LABELS.items()
    assert cluster.labels("dgx-0")[f"{operator_stack.PREFIX}driver"] == "pre-installed"
    cluster.sandbox.close()
