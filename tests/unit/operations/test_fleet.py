# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The summary of a fleet from pages of nodes, and detection of existing components."""

from __future__ import annotations

import collections.abc as c
import itertools
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import image_base
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet, fleet_drivers, fleet_existing
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import KINDS, served
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request

H100 = {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559}


#: Kinds that only some clusters serve.
MORE_KINDS = {
    "ClusterVersion": served("config.openshift.io/v1", "ClusterVersion", "clusterversions", namespaced=False),
    "PrometheusRule": served("monitoring.coreos.com/v1", "PrometheusRule", "prometheusrules"),
    "ServiceMonitor": served("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors"),
}


def assert_reads_only_the_uid(request: Request) -> None:
    assert (request.kind, request.name, request.metadata_only) == ("Namespace", "kube-system", True)


def cluster_of(
    nodes: c.Sequence[dict] = (),
    workloads: c.Sequence[dict] = (),
    version: str = "v1.36.4",
    kinds: c.Collection[str] = (),
    pods: c.Sequence[dict] = (),
    runtime_classes: c.Sequence[dict] = (),
) -> Cluster:
    """A cluster with pages of two objects."""
    cluster = Cluster(kinds=(*KINDS, *(MORE_KINDS[kind] for kind in kinds)))
    cluster.page_size, cluster.git_version = 2, version
    cluster.on("get", assert_reads_only_the_uid)
    cluster.put({"kind": "Namespace", "metadata": {"name": "kube-system", "uid": "the-uid"}})
    of_kinds = {"Node": nodes, "DaemonSet": workloads, "Pod": pods, "RuntimeClass": runtime_classes}
    for kind, objects in of_kinds.items():
        for obj in objects:
            cluster.put({"kind": kind, **obj})
    return cluster


def node(name: str, ready: bool = True, gpu: bool = False, count: int = 8, **labels: str) -> dict:
    if gpu:
        labels |= {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": H100["product"],
            "nvidia.com/gpu.count": str(count),
            "nvidia.com/gpu.memory": "81559",
        }
    info = {
        "kernelVersion": "6.8.0-45-generic",
        "osImage": "Ubuntu 24.04.1 LTS",
        "architecture": "amd64",
        "containerRuntimeVersion": "containerd://2.0.0",
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {
            "nodeInfo": info,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False", "reason": "KubeletNotReady"}],
        },
    }


def workload(
    name: str, image: str, container: str = "x", command: str = "", manager: str = "helm", init: str = ""
) -> dict:
    inits = [{"name": "init", "image": init}] if init else []
    pod = {"initContainers": inits, "containers": [{"name": container, "image": image, "command": [command]}]}
    return {
        "metadata": {"name": name, "namespace": "n", "managedFields": [{"manager": manager}]},
        "spec": {"template": {"spec": pod}},
    }


def summary(cluster: Cluster, *arguments: t.Any, **options: t.Any) -> dict[str, t.Any]:
    return fleet.summary(cluster, *arguments, **options)


def test_declared_pools_come_first_and_detected_ones_have_the_most_frequent_gpu() -> None:
    cluster = cluster_of(
        [
            node("a", gpu=True),
            node("b", gpu=True),
            node("c", gpu=True, count=4),
            node("d", ready=False),
            node("t", pool="t"),
        ]
    )
    found = summary(
        cluster, [{"name": "training", "selector": "pool=t", "gpu": H100}, {"name": "empty", "nodes": ["d"]}]
    )
    assert found["pools"] == [
        {"name": "training", "declared": True, "nodes": 1, "ready": 1, "gpu": H100},
        {"name": "empty", "declared": True, "nodes": 1, "ready": 0, "gpu": None},
        {"name": "default", "declared": False, "nodes": 3, "ready": 3, "gpu": H100},
    ]
    assert [
        (entry["pool"], entry["gpu_present"], entry["gpu_assumed"], entry["count"]) for entry in found["classes"]
    ] == [
        ("default", True, False, 3),
        ("empty", False, False, 1),
        ("training", False, True, 1),
    ]
    assert found["cluster_uid"] == "the-uid"
    assert "nodes" not in found


def test_rows_are_sorted_and_have_the_pool() -> None:
    rows = summary(cluster_of([node("b"), node("a", gpu=True, ready=False)]), rows=True)["nodes"]
    assert [(row["name"], row["pool"], row["ready"], row["gpu"]) for row in rows] == [
        ("a", "default", False, H100),
        ("b", "cpu", True, None),
    ]
    assert rows[0]["not_ready"] == "KubeletNotReady"


def test_an_empty_cluster_and_incomplete_nodes_are_summarized() -> None:
    assert summary(cluster_of())["pools"] == []
    cluster = cluster_of()
    cluster.objects["nodes", "", "a"] = {}
    cluster.objects["nodes", "", "b"] = {"metadata": None, "status": {"conditions": None}}
    assert summary(cluster)["pools"][0]["nodes"] == 2


def test_overlaps_are_errors_and_missing_nodes_warnings_without_a_selector() -> None:
    cluster = cluster_of([node("a")])
    with pytest.raises(ManyFaults, match="overlap"):
        summary(cluster, [{"name": "x", "nodes": ["a"]}, {"name": "y", "nodes": ["a"]}])
    warnings: list[str] = []
    summary(cluster, [{"name": "x", "nodes": ["a", "gone"]}], warn=warnings.append)
    assert len(warnings) == 1 and "gone" in warnings[0]
    summary(cluster, [{"name": "x", "nodes": ["a", "gone"]}], label_selector="a=b", warn=warnings.append)
    assert len(warnings) == 1 and "a=b" in [request.selector for request in cluster.sent("list")]


@pytest.mark.parametrize(
    ("version", "kinds", "distribution"),
    [
        ("v1.33.1+k3s1", (), "k3s"),
        ("v1.33.1+rke2r1", (), "rke2"),
        ("v1.31.9", ("ClusterVersion",), "openshift"),
        ("v1.36.4", (), "kubernetes"),
    ],
)
def test_the_platform_is_detected(version: str, kinds: tuple[str, ...], distribution: str) -> None:
    assert summary(cluster_of(version=version, kinds=kinds))["platform"] == {
        "distribution": distribution,
        "version": version,
    }


@pytest.mark.parametrize(
    ("obj", "component"),
    [
        (workload("a", "registry.k8s.io/nfd/node-feature-discovery:v0.17.0"), "nfd"),
        (workload("a", "registry.redhat.io/openshift4/ose-node-feature-discovery-rhel9@sha256:00"), "nfd"),
        (workload("a", "mirror:5000/k8s-device-plugin"), "device_plugin"),
        (workload("a", "nvcr.io/nvidia/k8s-device-plugin:v1", command="gpu-feature-discovery"), ""),
        (workload("a", "nvcr.io/nvidia/k8s-device-plugin:v1", container="config-manager"), ""),
        (workload("nvidia-driver-daemonset", "mirror/driver:580"), "driver"),
        (workload("secrets-store", "mirror/driver:1.4"), ""),
        (workload("gke", "gke.gcr.io/cos-nvidia-installer:fixed"), "driver"),
        (workload("nvidia-driver-installer", "gke.gcr.io/pause:3.8", init="cos-nvidia-installer:fixed"), "driver"),
        (workload("metrics", "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"), "dcgm_exporter"),
        (workload("web", "nginx:1"), ""),
        (workload("ours", "mirror/node-feature-discovery:v1", manager="hwaccel.gpu/feature-discovery"), ""),
        ({"metadata": {}, "spec": None}, ""),
    ],
)
def test_components_are_detected_by_their_image(obj: dict, component: str) -> None:
    cluster = cluster_of()
    cluster.objects["daemonsets", "n", "a"] = obj
    found = fleet_existing.components(cluster)
    assert [name for name, entries in found.items() if entries] == ([component] if component else [])


@pytest.mark.parametrize(
    ("handler", "manager", "found"),
    [
        ("nvidia", "helm", ["gpu"]),
        ("nvidia", "hwaccel.gpu/driver", []),
        ("kata", "helm", []),
        # Of an installer, for pods on Docker.
        ("docker", "hwaccel.gpu/cluster-runtime", ["gpu"]),
    ],
)
def test_existing_runtime_classes_are_detected_by_their_handler_and_owner(
    handler: str, manager: str, found: list[str]
) -> None:
    runtime_class = {"metadata": {"name": "gpu", "managedFields": [{"manager": manager}]}, "handler": handler}
    cluster = cluster_of(runtime_classes=[runtime_class])
    assert [row["name"] for row in fleet_existing.components(cluster)["runtime_class"]] == found


@pytest.mark.parametrize(
    ("kinds", "found"), [(("PrometheusRule",), 0), (("PrometheusRule", "ServiceMonitor"), 2), ((), 0)]
)
def test_the_prometheus_operator_is_detected_by_its_kinds(kinds: tuple[str, ...], found: int) -> None:
    rows = fleet_existing.components(cluster_of(kinds=kinds))["prometheus_operator"]
    assert len(rows) == found
    assert all(row["name"].endswith(".monitoring.coreos.com") for row in rows)


DRIVER_LABELS = {"app.kubernetes.io/managed-by": "hwaccel.gpu", "hwaccel.gpu/driver-version": "595.91.07"}
SERIAL = itertools.count(1)


def driver(name: str, privileged: bool = True, manager: str = "hwaccel.gpu/driver") -> dict:
    labels = DRIVER_LABELS | {"hwaccel.gpu/pool": "training"}
    pod = {
        "containers": [
            {"name": "nvidia-driver-ctr", "image": "mirror/driver:595", "securityContext": {"privileged": privileged}}
        ],
        "affinity": {"nodeAffinity": {"the": "terms"}},
    }
    return {
        "metadata": {"name": name, "namespace": "n", "labels": labels, "managedFields": [{"manager": manager}]},
        "spec": {
            "selector": {"matchLabels": {"hwaccel.gpu/class": "c1"}},
            "template": {"metadata": {"labels": {"hwaccel.gpu/kernel": "6.8"}}, "spec": pod},
        },
    }


def driver_pod(node_name: str, owner: str = "ours", **status: t.Any) -> dict:
    statuses = [{"name": "nvidia-driver-ctr", **status}]
    return {
        "metadata": {
            "name": f"{owner}-{next(SERIAL)}",
            "namespace": "n",
            "labels": DRIVER_LABELS,
            "ownerReferences": [{"name": owner}],
        },
        "spec": {"nodeName": node_name, "containers": [{"name": "nvidia-driver-ctr"}]},
        "status": {"containerStatuses": statuses},
    }


def test_our_driver_daemon_sets_and_their_nodes_are_listed() -> None:
    running, pulling = {"state": {"running": {}}}, {"state": {"waiting": {"reason": "ImagePullBackOff"}}}
    crashed = {
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "restartCount": 3,
        "lastState": {"terminated": {"exitCode": 1}},
    }
    pods = [
        *(driver_pod(f"node-{number}", **running) for number in (7, 3, 5, 1, 4)),
        driver_pod("node-2", **crashed),
        driver_pod("new", **pulling),
        driver_pod("node-1", **running),
        driver_pod("orphaned", owner="gone", **running),
    ]
    cluster = cluster_of(
        workloads=[driver("ours"), driver("refuses", privileged=False), driver("copied", manager="helm")], pods=pods
    )
    assert fleet_drivers.daemon_sets(cluster) == [
        {
            "namespace": "n",
            "name": "ours",
            "pool": "training",
            "class": "c1",
            "version": "595.91.07",
            "kernel": "6.8",
            "image": "mirror/driver:595",
            "node_affinity": {"the": "terms"},
            "running": 6,
            "nodes": ["node-1", "node-2", "node-3", "node-4", "node-5"],
        }
    ]


def test_driver_pods_are_only_read_if_there_is_a_driver() -> None:
    cluster = cluster_of()
    assert summary(cluster)["driver_daemon_sets"] == []
    assert cluster.sent("list", "Pod") == []


@pytest.mark.parametrize(
    ("image", "name"),
    [("a/b/c:1@sha256:0", "c"), ("host:5000/c", "c"), ("c", "c"), ("host:5000/x/c:tag", "c"), ("", "")],
)
def test_base_names_of_images(image: str, name: str) -> None:
    assert image_base(image) == name


def test_an_invalid_query_is_reported() -> None:
    jmespath = pytest.importorskip("jmespath")
    assert fleet.query("pools[0].name", {"pools": [{"name": "a"}]}, jmespath) == "a"
    for wrong in ("pools[", "sum(pools)", "nosuch(pools)"):
        with pytest.raises(HwaccelError, match="the query cannot be evaluated"):
            fleet.query(wrong, {"pools": ["a"]}, jmespath)
