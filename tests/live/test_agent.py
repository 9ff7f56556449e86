# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet agent on a real control plane: another deployer's feature discovery and GPU stack, rights, kills, reboots, a lost API server."""

from __future__ import annotations

import collections.abc as c
import json
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support import gpu_stack as stack
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import await_right
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog

Obj = dict[str, t.Any]
NFD = "registry.k8s.io/nfd/node-feature-discovery:v0.19.0"
NAMESPACE = "node-feature-discovery"
GPU = "nvidia.com/gpu"
PCI = "feature.node.kubernetes.io/pci-10de.present"
FLEET: Obj = {
    "time_scale": 0.02,
    "pools": [
        {
            "name": "gpu",
            "count": 3,
            "kernel": stack.KERNEL,
            "gpu": {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559},
        },
        {"name": "cpu", "count": 1},
    ],
}


@pytest.fixture(scope="module")
def sandbox(make_sandbox: t.Any) -> t.Any:
    made = make_sandbox(FLEET)
    client = connect({"kubeconfig": made.kubeconfig})
    deploy(client, *feature_discovery())
    wait("GPU nodes are labeled", lambda: len([n for n in nodes(client) if PCI in n["metadata"]["labels"]]) == 3)
    stack.deploy_all(client)
    return made


@pytest.fixture
def client(sandbox: t.Any) -> Client:
    return connect({"kubeconfig": sandbox.kubeconfig})


def wait(what: str, condition: c.Callable[[], t.Any], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"did not happen in time: {what}"
        time.sleep(0.2)


def deploy(client: Client, *objects: Obj) -> None:
    for obj in objects:
        client.apply(obj, client.resource(obj["apiVersion"], obj["kind"]), field_manager="another-deployer", force=True)
        if obj["kind"] == "CustomResourceDefinition":
            wait("the kind is served", lambda obj=obj: _served(client, obj["spec"]["names"]["kind"]))


def _served(client: Client, kind: str) -> bool:
    client.forget_discovery()
    return any(resource.kind == kind for resource in client.all_resources())


def nodes(client: Client) -> list[Obj]:
    return list(client.list(client.resource("v1", "Node")).items)


def allocatable(client: Client, name: str) -> int:
    return int(stack.node(client, name)["status"]["allocatable"].get(GPU, 0))


def pods(client: Client, namespace: str, app: str, node: str = "") -> list[Obj]:
    found = client.list(client.resource("v1", "Pod"), namespace, label_selector=f"app={app}").items
    return [pod for pod in found if not node or pod["spec"].get("nodeName") == node]


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


def test_feature_discovery_labels_nodes(client: Client) -> None:
    for node in nodes(client):
        labels = node["metadata"]["labels"]
        if not node["metadata"]["name"].startswith("cpu"):
            assert labels["feature.node.kubernetes.io/kernel-version.full"] == stack.KERNEL
            assert PCI in labels


def test_rule_labels_and_its_end_takes_the_label_away(client: Client) -> None:
    match = [{"feature": "pci.device", "matchExpressions": {"vendor": {"op": "In", "value": ["10de"]}}}]
    rule = {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeatureRule",
        "metadata": {"name": "vendor"},
        "spec": {"rules": [{"name": "r", "labels": {"example.com/accelerated": "yes"}, "matchFeatures": match}]},
    }
    deploy(client, rule)
    wait(
        "rule labels",
        lambda: len([n for n in nodes(client) if n["metadata"]["labels"].get("example.com/accelerated") == "yes"]) == 3,
    )
    client.delete(client.resource("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule"), "vendor")
    wait("labels gone", lambda: not [n for n in nodes(client) if "example.com/accelerated" in n["metadata"]["labels"]])


def test_stack_of_another_deployer_offers_gpus_and_a_pod_computes(client: Client) -> None:
    wait("GPUs allocatable", lambda: all(allocatable(client, f"gpu-{n}") == 8 for n in range(3)))
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
                            "resources": {"limits": {GPU: "8"}},
                        }
                    ],
                }
            }
        },
    }
    deploy(client, job)
    wait(
        "the job",
        lambda: (
            client.get(client.resource("batch/v1", "Job"), "sample", "default").get("status", {}).get("succeeded") == 1
        ),
    )
    pod = client.list(client.resource("v1", "Pod"), "default", label_selector="job-name=sample").items[0]
    log = client.logs("default", pod["metadata"]["name"], "c")
    assert log.startswith("[sandbox] simulated")
    assert "Test PASSED" in log


def test_every_component_writes_as_itself(sandbox: t.Any, client: Client) -> None:
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


def test_killed_driver_is_seen_and_comes_back_when_clients_leave(sandbox: t.Any, client: Client) -> None:
    wait("GPUs allocatable", lambda: allocatable(client, "gpu-1") == 8)
    with open(sandbox.state_dir / "control.jsonl", "a", encoding="utf-8") as stream:
        stream.write(json.dumps({"kill": {"node": "gpu-1", "container": "nvidia-driver-ctr", "signal": "KILL"}}) + "\n")
    driver = "nvidia-driver-daemonset"

    def status() -> Obj:
        return dict(pods(client, stack.NAMESPACE, driver, "gpu-1")[0]["status"]["containerStatuses"][0])

    wait("restarts", lambda: status()["restartCount"] >= 2 and not status()["ready"])
    name = pods(client, stack.NAMESPACE, driver, "gpu-1")[0]["metadata"]["name"]
    assert "driver is in use" in client.logs(stack.NAMESPACE, name, "nvidia-driver-ctr", previous=True)
    stack.delete_daemon_set(client, "nvidia-device-plugin-daemonset")
    wait("driver ready", lambda: status()["ready"])
    stack.deploy(client, stack.plugin())
    wait("GPUs back", lambda: allocatable(client, "gpu-1") == 8)


def test_reboot_into_another_boot_closes_the_gates_and_opens_them_again(sandbox: t.Any, client: Client) -> None:
    wait("GPUs allocatable", lambda: allocatable(client, "gpu-2") == 8)
    before = stack.node(client, "gpu-2")["status"]["nodeInfo"]["bootID"]
    validator = pods(client, stack.NAMESPACE, "nvidia-operator-validator", "gpu-2")[0]["metadata"]["name"]
    sandbox.reboot("gpu-2")
    wait("another boot id", lambda: stack.node(client, "gpu-2")["status"]["nodeInfo"]["bootID"] != before)
    wait("GPUs back", lambda: allocatable(client, "gpu-2") == 8)

    def restarts() -> list[int]:
        return [
            one["restartCount"]
            for one in client.get(client.resource("v1", "Pod"), validator, stack.NAMESPACE)["status"][
                "initContainerStatuses"
            ]
        ]

    wait("every step has been told to have run anew", lambda: min(restarts()) >= 1)


def test_missing_right_stops_the_master_and_its_log_names_it(sandbox: t.Any, client: Client) -> None:
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
    # The API server hears of roles by a watch of its own.
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
    name = pods(client, NAMESPACE, "nfd-master")[0]["metadata"]["name"]
    wait("the refusal", lambda: 'cannot patch resource "nodes"' in client.logs(NAMESPACE, name, "nfd-master"))
    assert not [n for n in nodes(client) if "example.com/later" in n["metadata"]["labels"]]
    deploy(client, *feature_discovery())
    wait("labels", lambda: len([n for n in nodes(client) if "example.com/later" in n["metadata"]["labels"]]) == 4)


def test_lost_api_server_does_not_stop_the_fleet(sandbox: t.Any) -> None:
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
    wait(
        "the pod runs",
        lambda: client.get(client.resource("v1", "Pod"), "after", "default")["status"].get("phase") == "Running",
    )
