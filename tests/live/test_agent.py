# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet agent on a real control plane: an existing feature discovery and GPU stack, rights, killed processes, reboots, a lost API server."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support import gpu_stack as stack
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import await_right
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU, Cluster, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

Obj = dict[str, t.Any]
NFD = "registry.k8s.io/nfd/node-feature-discovery:v0.19.0"
NAMESPACE = "node-feature-discovery"
RESOURCE = "nvidia.com/gpu"
PCI = "feature.node.kubernetes.io/pci-10de.present"
FLEET: Obj = {
    "time_scale": 0.02,
    "pools": [
        {
            "name": "gpu",
            "count": 3,
            "kernel": stack.KERNEL,
            "gpu": GPU,
        },
        {"name": "cpu", "count": 1},
    ],
}


@pytest.fixture(scope="module")
def sandbox(make_sandbox: t.Any) -> Sandbox:
    cluster = Cluster(make_sandbox(FLEET))
    deploy(cluster.client, *feature_discovery())
    until(lambda: len(labeled(cluster, PCI)) == 3, "the RESOURCE nodes to be labeled")
    stack.deploy_all(cluster.client)
    return cluster.sandbox


@pytest.fixture
def cluster(sandbox: Sandbox) -> Cluster:
    return Cluster(sandbox)


def deploy(client: Client, *objects: Obj) -> None:
    for obj in objects:
        client.apply(obj, client.resource(obj["apiVersion"], obj["kind"]), field_manager="another-deployer", force=True)
        if obj["kind"] == "CustomResourceDefinition":
            kind = obj["spec"]["names"]["kind"]
            until(lambda kind=kind: _served(client, kind), f"the kind {kind} to be served")


def _served(client: Client, kind: str) -> bool:
    client.forget_discovery()
    return any(resource.kind == kind for resource in client.all_resources())


def labeled(cluster: Cluster, label: str, value: str | None = None) -> list[str]:
    """Nodes with a label, of any value unless one is given."""
    values = {name: (node["metadata"].get("labels") or {}).get(label) for name, node in cluster.nodes().items()}
    return [name for name, present in values.items() if present is not None and value in (None, present)]


def await_gpus(cluster: Cluster, *nodes: str) -> None:
    """GPUs are allocatable on all of these nodes."""
    until(
        lambda: all(int(cluster.node(node)["status"]["allocatable"].get(RESOURCE, 0)) == 8 for node in nodes),
        f"8 allocatable GPUs on {', '.join(nodes)}",
    )


def definition(kind: str, plural: str, scope: str) -> Obj:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.nfd.k8s-sigs.io",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements"},
        },
        "spec": {
            "group": "nfd.k8s-sigs.io",
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def rights(name: str, rules: list[Obj]) -> list[Obj]:
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
        },
    ]


def workload(kind: str, name: str, container: Obj, **spec: t.Any) -> Obj:
    node_name = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    pod = {
        "serviceAccountName": name,
        "containers": [{"name": name, "image": NFD, "command": [name], "env": [node_name], **container}],
        **spec,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }


def feature_discovery() -> list[Obj]:
    health = {"httpGet": {"path": "/healthz", "port": 8080}}
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "conf", "namespace": NAMESPACE},
        "data": {"nfd-worker.conf": "sources: {pci: {deviceLabelFields: [vendor]}}\n"},
    }
    group = ["nfd.k8s-sigs.io"]
    worker = workload(
        "DaemonSet",
        "nfd-worker",
        {
            "readinessProbe": health,
            "volumeMounts": [
                {"name": "sys", "mountPath": "/host-sys", "readOnly": True},
                {"name": "release", "mountPath": "/host-etc/os-release", "readOnly": True},
                {"name": "conf", "mountPath": "/etc/kubernetes/node-feature-discovery"},
            ],
        },
        volumes=[
            {"name": "sys", "hostPath": {"path": "/sys"}},
            {"name": "release", "hostPath": {"path": "/etc/os-release"}},
            {"name": "conf", "configMap": {"name": "conf"}},
        ],
    )
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        definition("NodeFeature", "nodefeatures", "Namespaced"),
        definition("NodeFeatureRule", "nodefeaturerules", "Cluster"),
        config,
        *rights(
            "nfd-worker", [{"apiGroups": group, "resources": ["nodefeatures"], "verbs": ["get", "create", "update"]}]
        ),
        *rights(
            "nfd-master",
            [
                {
                    "apiGroups": group,
                    "resources": ["nodefeatures", "nodefeaturerules"],
                    "verbs": ["get", "list", "watch"],
                },
                {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["get", "list", "patch"]},
            ],
        ),
        worker,
        workload("Deployment", "nfd-master", {"readinessProbe": health}),
    ]


def test_feature_discovery_labels_nodes(cluster: Cluster) -> None:
    for name, node in cluster.nodes().items():
        labels = node["metadata"]["labels"]
        if not name.startswith("cpu"):
            assert labels["feature.node.kubernetes.io/kernel-version.full"] == stack.KERNEL
            assert PCI in labels


def test_a_rule_adds_a_label_and_its_deletion_removes_the_label(cluster: Cluster) -> None:
    match = [{"feature": "pci.device", "matchExpressions": {"vendor": {"op": "In", "value": ["10de"]}}}]
    label = "example.com/accelerated"
    rule = {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeatureRule",
        "metadata": {"name": "vendor"},
        "spec": {"rules": [{"name": "r", "labels": {label: "yes"}, "matchFeatures": match}]},
    }
    deploy(cluster.client, rule)
    until(lambda: len(labeled(cluster, label, "yes")) == 3, "the label of the rule on the RESOURCE nodes")
    cluster.client.delete(cluster.client.resource("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule"), "vendor")
    until(lambda: not labeled(cluster, label), "the label to be removed")


def test_an_existing_stack_offers_gpus_and_a_pod_computes(cluster: Cluster) -> None:
    client = cluster.client
    await_gpus(cluster, "gpu-0", "gpu-1", "gpu-2")
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sample", "namespace": "default"},
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "runtimeClassName": "nvidia",
                    "containers": [
                        {
                            "name": "c",
                            "image": "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0",
                            "resources": {"limits": {RESOURCE: "8"}},
                        }
                    ],
                }
            }
        },
    }
    deploy(client, job)

    def pods() -> list[Obj]:
        return client.list(client.resource("v1", "Pod"), "default", label_selector="job-name=sample").items

    until(
        lambda: (
            client.get(client.resource("batch/v1", "Job"), "sample", "default").get("status", {}).get("succeeded") == 1
        ),
        "the job to succeed",
        seen=lambda: [pod["status"].get("containerStatuses", pod["status"]) for pod in pods()],
    )
    [pod] = pods()
    log = client.logs("default", pod["metadata"]["name"], "c")
    assert log.startswith("[sandbox] simulated")
    assert "Test PASSED" in log


def test_every_component_writes_under_its_own_identity(sandbox: Sandbox) -> None:
    users: dict[str, set[str]] = {}
    log = AuditLog(sandbox.audit_log)
    log.offset = 0
    for event in log.events():
        if event["verb"] in ("create", "update", "patch") and event.get("impersonatedUser"):
            users.setdefault(event["impersonatedUser"]["username"], set()).add(
                f"{event['objectRef']['resource']}/{event['objectRef'].get('subresource', '')}"
            )
    assert users["system:node:gpu-0"] <= {"nodes/", "nodes/status", "pods/status", "events/"}
    assert users[f"system:serviceaccount:{NAMESPACE}:nfd-worker"] == {"nodefeatures/"}
    assert users[f"system:serviceaccount:{NAMESPACE}:nfd-master"] <= {"nodes/", "nodes/status"}


def test_a_killed_driver_restarts_after_its_clients_have_left(cluster: Cluster) -> None:
    await_gpus(cluster, "gpu-1")
    cluster.sandbox.kill_container("gpu-1", "nvidia-driver-ctr")

    def driver() -> Obj:
        return cluster.pods("nvidia-driver-daemonset", node="gpu-1", namespace=stack.NAMESPACE).items[0]

    def status() -> Obj:
        return dict(driver()["status"]["containerStatuses"][0])

    until(lambda: status()["restartCount"] >= 2 and not status()["ready"], "restarts of the driver")
    log = cluster.client.logs(stack.NAMESPACE, driver()["metadata"]["name"], "nvidia-driver-ctr", previous=True)
    assert "driver is in use" in log
    stack.delete_daemon_set(cluster.client, "nvidia-device-plugin-daemonset")
    until(lambda: status()["ready"], "the driver to be ready")
    stack.deploy(cluster.client, stack.plugin())
    await_gpus(cluster, "gpu-1")


def test_a_reboot_closes_the_gates_and_they_open_again(cluster: Cluster) -> None:
    def boot_id() -> str:
        return str(cluster.node("gpu-2")["status"]["nodeInfo"]["bootID"])

    await_gpus(cluster, "gpu-2")
    before = boot_id()
    (validator,) = cluster.pods("nvidia-operator-validator", node="gpu-2", namespace=stack.NAMESPACE).items
    cluster.sandbox.reboot("gpu-2")
    until(lambda: boot_id() != before, "another boot ID")
    await_gpus(cluster, "gpu-2")

    def restarts() -> list[int]:
        pods = cluster.client.resource("v1", "Pod")
        pod = cluster.client.get(pods, validator["metadata"]["name"], stack.NAMESPACE)
        return [one["restartCount"] for one in pod["status"]["initContainerStatuses"]]

    until(lambda: min(restarts()) >= 1, "every init container to be reported as restarted")


def test_a_missing_right_stops_the_master_and_its_log_reports_it(sandbox: Sandbox, cluster: Cluster) -> None:
    client = cluster.client
    deploy(
        client,
        *rights(
            "nfd-master",
            [
                {
                    "apiGroups": ["nfd.k8s-sigs.io"],
                    "resources": ["nodefeatures", "nodefeaturerules"],
                    "verbs": ["list", "watch"],
                },
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]},
            ],
        ),
    )
    # The authorizer of the API server observes changed roles by a watch, that is, a moment later.
    master = connect(
        {"kubeconfig": sandbox.kubeconfig, "impersonate_user": f"system:serviceaccount:{NAMESPACE}:nfd-master"}
    )
    await_right(master, "patch", client.resource("v1", "Node"), allowed=False)
    match = [{"feature": "kernel.version", "matchExpressions": {"full": {"op": "Exists"}}}]
    deploy(
        client,
        {
            "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
            "kind": "NodeFeatureRule",
            "metadata": {"name": "later"},
            "spec": {"rules": [{"name": "r", "labels": {"example.com/later": "yes"}, "matchFeatures": match}]},
        },
    )
    name = cluster.pods("nfd-master", namespace=NAMESPACE).items[0]["metadata"]["name"]
    until(
        lambda: 'cannot patch resource "nodes"' in client.logs(NAMESPACE, name, "nfd-master"),
        "nfd-master to log the refused request",
    )
    assert not labeled(cluster, "example.com/later")
    deploy(client, *feature_discovery())
    until(lambda: len(labeled(cluster, "example.com/later")) == 4, "the label on all nodes")


def test_the_fleet_keeps_running_after_the_loss_of_the_api_server(sandbox: Sandbox) -> None:
    sandbox.kill("kube-apiserver")
    sandbox.start()
    client = connect({"kubeconfig": sandbox.kubeconfig})
    deploy(
        client,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "after", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]},
        },
    )
    until(
        lambda: client.get(client.resource("v1", "Pod"), "after", "default")["status"].get("phase") == "Running",
        "the pod to run",
    )
