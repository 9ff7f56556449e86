# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Existing deployments of others are detected, left unchanged, and judged; none of our components runs beside them.

Runtime: seven runs of site on two sandboxes, and two short ones.
"""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.names import QUARANTINE
from ansible_collections.hwaccel.gpu.tests.live.support import gpu_stack, site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import AGENTS, GPU, Cluster, is_ready, until

NFD = "node-feature-discovery"
WAIT = {"hwaccel_wait_timeout": 240}
#: Of the pool's two nodes, one may fail and is quarantined.
QUARANTINING: dict[str, t.Any] = {
    "hwaccel_max_failed": "1",
    "hwaccel_pools": [{"name": "all", "nodes": ["gpu-0", "gpu-1"], "gpu": {"count": 8}}],
}
KINDS = (
    "DaemonSet",
    "Deployment",
    "ConfigMap",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
)


def existing_nfd(folder: pathlib.Path) -> list[dict[str, t.Any]]:
    """NFD as another deployer has it: with other names, in another namespace, without our labels."""
    rendered = site.playbook(
        "render", {"x": site.cluster("/nonexistent", driver_provider="none", hwaccel_render_to=str(folder))}
    )
    assert rendered.rc == 0, rendered.stdout[-4000:]
    text = (folder / "x" / "feature-discovery.yaml").read_text(encoding="utf-8")
    names = (
        ("hwaccel-gpu-system", NFD),
        ("hwaccel-gpu-nfd", "nfd"),
        ("hwaccel-gpu", NFD),
        ("hwaccel.gpu/", "example.com/"),
        ("hwaccel.gpu", "Helm"),
    )
    for ours, theirs in names:
        text = text.replace(ours, theirs)
    objects = [obj for obj in yaml.safe_load_all(text) if obj and obj["kind"] not in ("Namespace", "NodeFeatureRule")]
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NFD}}, *objects]


def put(client: Client, objects: t.Iterable[dict[str, t.Any]]) -> None:
    for obj in objects:
        client.forget_discovery()
        client.apply(obj, client.resource(obj["apiVersion"], obj["kind"]), field_manager="helm")


def desired(client: Client) -> dict[str, t.Any]:
    """The desired state of every object of the kinds above, with the field managers of its fields; without what its controller reports."""
    objects = {}
    for resource in client.all_resources():
        if resource.kind in (*KINDS, "RuntimeClass", "ClusterPolicy"):
            for item in client.list(resource).items:
                metadata = item["metadata"]
                if (
                    metadata.get("namespace", "").startswith(("kube-", "hwaccel-gpu"))
                    or metadata["name"] == "kube-root-ca.crt"
                ):
                    continue
                managers = [
                    entry for entry in metadata.pop("managedFields", []) if entry.get("subresource") != "status"
                ]
                objects[f"{resource.kind} {metadata.get('namespace', '')}/{metadata['name']}"] = {
                    **{key: value for key, value in item.items() if key != "status"},
                    "metadata": {key: value for key, value in metadata.items() if key != "resourceVersion"},
                    "managers": managers,
                }
    return objects


class Coexistence(Cluster):
    """A cluster in which another deployer has the GPU stack of support/gpu_stack.py."""

    def pod_names(self, namespace: str = AGENTS) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods(namespace=namespace).items]

    def operator_pods(self, prefix: str) -> list[dict[str, t.Any]]:
        pods = self.pods(namespace=gpu_stack.NAMESPACE).items
        return [pod for pod in pods if pod["metadata"]["name"].startswith(prefix)]

    def completed(self) -> list[str]:
        """Nodes on which a pod of the validator has computed. Such a pod has no DaemonSet, and remains after it has succeeded."""
        succeeded = [
            pod for pod in self.operator_pods("nvidia-cuda-validator-") if pod["status"]["phase"] == "Succeeded"
        ]
        assert all(
            owner["kind"] == "ClusterPolicy" for pod in succeeded for owner in pod["metadata"]["ownerReferences"]
        )
        return sorted(pod["spec"]["nodeName"] for pod in succeeded)

    def validators(self) -> dict[str, bool]:
        """Whether the validator is ready, by node."""
        pods = self.operator_pods("nvidia-operator-validator-")
        return {pod["spec"].get("nodeName", ""): is_ready(pod) for pod in pods}

    def plugin_on(self, node: str) -> str:
        """Name of the device plugin's pod, "" if none runs there or it is being deleted."""
        pods = [pod for pod in self.operator_pods("nvidia-device-plugin") if pod["spec"].get("nodeName") == node]
        return next((pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")), "")


def deploy_operator(cluster: Coexistence) -> None:
    """Deploys the GPU Operator with its ClusterPolicy, and waits until all its objects are ready."""
    client = cluster.client
    until(
        lambda: bool(
            [one for one in client.all_resources() if one.kind == "ClusterPolicy"] or client.forget_discovery()
        ),
        "the kind ClusterPolicy",
    )
    put(
        client,
        [
            {
                "apiVersion": "nvidia.com/v1",
                "kind": "ClusterPolicy",
                "metadata": {"name": "cluster-policy"},
                "spec": {"driver": {"enabled": True}},
            }
        ],
    )
    (policy,) = client.list(client.resource("nvidia.com/v1", "ClusterPolicy")).items
    gpu_stack.deploy_operator(client, policy)
    until(lambda: cluster.gpus("gpu-0") == cluster.gpus("gpu-1") == 8, "the existing stack to offer its GPUs")
    until(
        lambda: len(cluster.completed()) == 2 and all(cluster.validators().values()),
        "its validators to have passed",
        seen=lambda: cluster.pod_names(gpu_stack.NAMESPACE),
    )


def repair(cluster: Coexistence) -> None:
    """The quarantine does not prevent a repair: the device plugin's pod is recreated on the node, and the next run releases the node."""
    cluster.sandbox.clear_faults()
    old = cluster.plugin_on("gpu-1")
    cluster.client.delete(cluster.client.resource("v1", "Pod"), old, gpu_stack.NAMESPACE)
    until(
        lambda: cluster.plugin_on("gpu-1") not in ("", old),
        "the device plugin's pod to be recreated on the quarantined node",
        60,
    )
    until(lambda: cluster.gpus("gpu-1") == 8 and all(cluster.validators().values()), "gpu-1 to have all its GPUs")
    cluster.deploy(**QUARANTINING)
    assert QUARANTINE not in cluster.taints("gpu-1")


@pytest.fixture(scope="module")
def nfd(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, t.Any]]:
    return existing_nfd(tmp_path_factory.mktemp("render"))


def test_an_existing_stack_is_used_and_stays_unchanged(make_sandbox: t.Any, nfd: list[dict[str, t.Any]]) -> None:
    sandbox = make_sandbox(
        {"time_scale": 0.01, "pools": [{"name": "gpu", "count": 2, "kernel": gpu_stack.KERNEL, "gpu": GPU}]}
    )
    cluster = Coexistence(sandbox, **WAIT)
    client = cluster.client
    put(client, [*nfd, gpu_stack.CLUSTER_POLICY])
    deploy_operator(cluster)
    before, audit = desired(client), AuditLog(sandbox.audit_log)

    # The timeout is too short for a gate that waited for the pods which have completed.
    run = cluster.run("site", hwaccel_wait_timeout=30)
    assert (run.rc, run.changed("one")) == (0, 0), run.stdout[-6000:]
    assert [str(request) for request in audit.our_writes()] == []
    for message in (
        "feature discovery by existing (detected",
        "driver by existing (detected ClusterPolicy cluster-policy",
        "device plugin by existing (detected",
    ):
        assert message in run.stdout, run.stdout[-6000:]
    assert sum(pool["seen"] for pool in run.summary["one"]["pools"]) == 16
    assert desired(client) == before
    namespaces = [item["metadata"]["name"] for item in client.list(client.resource("v1", "Namespace")).items]
    assert not [name for name in namespaces if name.startswith("hwaccel-gpu")]

    # The gates judge the existing stack.
    sandbox.add_fault("plugin_fewer_gpus", node="gpu-1")
    sandbox.reboot("gpu-1")
    until(lambda: cluster.gpus("gpu-1") == 7, "gpu-1 to lose a GPU")
    judged = cluster.run("site", **QUARANTINING)
    assert judged.rc != 0
    assert judged.summary["one"]["failed_nodes"] == ["gpu-1"], judged.stdout[-6000:]
    assert "7 nvidia.com/gpu allocatable" in judged.failures[-1]
    assert {(request.resource, request.name) for request in audit.our_writes()} == {("nodes", "gpu-1")}

    repair(cluster)

    # A request for our own components beside the existing ones is refused before anything is written.
    roles = ("feature_discovery", "driver", "device_plugin")
    refused = cluster.run("preflight", **{f"{role}_provider": "hwaccel" for role in roles})
    assert refused.rc != 0
    for what in ("another Node Feature Discovery", "another driver deployment", "another device plugin"):
        assert any(f"{what} " in message for message in refused.failures), refused.failures
    assert desired(client) == before
    sandbox.close()


def test_a_driver_on_the_host_and_an_existing_device_plugin(make_sandbox: t.Any) -> None:
    sandbox = make_sandbox(
        {"time_scale": 0.01, "pools": [{"name": "dgx", "count": 1, "gpu": GPU, "host_driver": "580.95.05"}]}
    )
    cluster = Coexistence(sandbox, **WAIT)
    client = cluster.client
    plugin = gpu_stack.plugin()
    plugin["metadata"]["namespace"] = "kube-system"
    put(client, [plugin])
    resource = client.resource("apps/v1", "DaemonSet")
    before = client.get(resource, plugin["metadata"]["name"], "kube-system")["spec"]

    run = cluster.deploy()
    assert "device plugin by existing (detected DaemonSet kube-system/nvidia-device-plugin-daemonset)" in run.stdout
    assert cluster.gpus("dgx-0") == 8
    assert client.get(resource, plugin["metadata"]["name"], "kube-system")["spec"] == before
    ours = cluster.pod_names()
    assert not [
        name for name in ours if name.startswith(("nvidia-driver", "nvidia-device-plugin", "gpu-feature-discovery"))
    ], ours
    assert [name for name in ours if name.startswith("nvidia-validator")], "the host's driver is validated as well"
    again = cluster.deploy()
    # The API does not show such a driver until the driver manager has detected it. The driver manager then labels the node, and loads no driver.
    assert re.search(r"driver by host \(detected driver \S+ on the host\)", again.stdout), again.stdout[-6000:]

    # A declared host driver needs only the validator of ours. Pruning that many objects at once has to be allowed explicitly.
    declared: dict[str, t.Any] = {
        "hwaccel_pools": [{"name": "dgx", "nodes": ["dgx-0"], "gpu": {"count": 8}, "driver": {"provider": "host"}}]
    }
    many = cluster.run("site", **declared)
    assert many.rc != 0
    assert "would be deleted" in many.failures[0], many.failures
    allowed = cluster.deploy(**declared, driver_max_prune="99%")
    assert "pool dgx: driver by host (declared)" in allowed.stdout
    left = [item["metadata"]["name"] for item in client.list(resource, AGENTS).items]
    assert "nvidia-validator" in left
    assert not [name for name in left if name.startswith("nvidia-driver")], left
    assert cluster.gpus("dgx-0") == 8
    sandbox.close()
