# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the benchmark works on: 40 objects of 8 kinds in one namespace, nodes of realistic size, and machines that become a cluster."""

from __future__ import annotations

import json
from typing import Any

COUNTS = {
    "ServiceAccount": 5,
    "ConfigMap": 12,
    "Role": 4,
    "RoleBinding": 4,
    "Service": 6,
    "DaemonSet": 4,
    "Deployment": 4,
}
RBAC = "rbac.authorization.k8s.io"


def workload(kind: str, name: str) -> dict[str, Any]:
    """A workload that matches no node, so that controllers create no pods for it."""
    labels = {"app": name}
    container = {
        "name": "main",
        "image": "registry.invalid/bench:1",
        "env": [{"name": f"OPTION_{number}", "value": str(number)} for number in range(6)],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    pod = {"metadata": {"labels": labels}, "spec": {"nodeSelector": {"bench": "none"}, "containers": [container]}}
    spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": pod}
    if kind == "Deployment":
        spec["replicas"] = 0
    return {"apiVersion": "apps/v1", "kind": kind, "spec": spec}


def body(kind: str, number: int) -> dict[str, Any]:
    name = f"bench-{number}"
    if kind in ("DaemonSet", "Deployment"):
        return workload(kind, name)
    return {
        "ServiceAccount": {"apiVersion": "v1", "kind": kind, "automountServiceAccountToken": False},
        "ConfigMap": {
            "apiVersion": "v1",
            "kind": kind,
            "data": {f"key-{key}": f"value {key} of {name}" for key in range(8)},
        },
        "Role": {
            "apiVersion": f"{RBAC}/v1",
            "kind": kind,
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
        },
        "RoleBinding": {
            "apiVersion": f"{RBAC}/v1",
            "kind": kind,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name}],
        },
        "Service": {
            "apiVersion": "v1",
            "kind": kind,
            "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80}]},
        },
    }[kind]


def objects(namespace: str) -> list[dict[str, Any]]:
    """The Namespace and 39 objects in it."""
    result: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {"bench": "true"}}}
    ]
    for kind, count in COUNTS.items():
        for number in range(count):
            manifest = body(kind, number)
            manifest["metadata"] = {"name": f"bench-{number}", "namespace": namespace, "labels": {"bench": "true"}}
            if kind == "RoleBinding":
                manifest["subjects"][0]["namespace"] = namespace
            result.append(manifest)
    return result


def fat_node(number: int) -> dict[str, Any]:
    """A node of about 30 KB, with 50 images and NFD's labels. Every fifth node has no GPU."""
    gpu = number % 5 != 0
    labels = {f"feature.node.kubernetes.io/cpu-cpuid.FEATURE{index}": "true" for index in range(120)}
    labels |= {"kubernetes.io/hostname": f"fat-{number}", "pool": "training" if gpu else "cpu"}
    if gpu:
        labels |= {
            "feature.node.kubernetes.io/pci-10de.present": "true",
            "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        }
    image = "registry.invalid/image-"
    images = [
        {"names": [f"{image}{index}@sha256:{index:064x}", f"{image}{index}:v1.{index}.0-{'x' * 180}"]}
        for index in range(50)
    ]
    resources = {"cpu": "128", "memory": "1056563204Ki", "pods": "110"} | ({"nvidia.com/gpu": "8"} if gpu else {})
    info = {
        "kernelVersion": f"6.8.0-{45 + number % 3}-generic",
        "osImage": "Ubuntu 24.04.1 LTS",
        "architecture": "amd64",
        "operatingSystem": "linux",
        "containerRuntimeVersion": "containerd://2.0.0",
        "kubeletVersion": "v1.36.4",
        "kubeProxyVersion": "",
        "bootID": f"boot-{number}",
        "machineID": f"machine-{number}",
        "systemUUID": f"uuid-{number}",
    }
    annotations = {"bench.invalid/padding": json.dumps({f"field-{index}": "y" * 80 for index in range(60)})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"fat-{number}", "labels": labels, "annotations": annotations},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "images": images,
            "nodeInfo": info,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
            "addresses": [{"type": "Hostname", "address": f"fat-{number}"}],
        },
    }


#: Settings of a cluster, as the plan reads them.
WISH = {"version": "1.36.4", "endpoint": "10.0.0.1:6443", "even_servers": False, "at_a_time": "10%"}
#: What was observed on a machine on which nothing is.
_ABSENT = {
    "state": "absent", "why": "", "serves": False, "data": False, "authority": "", "certificate": "", "endpoint": "", "version": [], "control_plane": [],
    "running": False, "days": None, "expired": False, "behind": [], "begun": False,
}  # fmt: skip


def group(count: int) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Three servers and agents, and what was observed on each, by its name."""
    machines: list[dict[str, Any]] = []
    observed: dict[str, dict[str, Any]] = {}
    for number in range(count):
        name, address = f"m{number}", f"10.{number // 250}.{number % 250}.9"
        role = "server" if number < 3 else "agent"
        labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
        machines.append({"host": name, "node": name, "address": address, "role": role, "labels": labels, "taints": []})
        identity = {
            "node name": name,
            "host name": name,
            "machine-id": f"{number:032x}",
            "product UUID": f"{number:036x}",
        }
        observed[name] = {"found": _ABSENT, "identity": identity, "turn": {}, "apt": True, "kubelet": ""}
    return machines, observed
