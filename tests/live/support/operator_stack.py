# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All objects that NVIDIA's GPU Operator v26.7.0 makes for a default ClusterPolicy, and a stand-in for its controller, which labels nodes.

Driver, toolkit, validator and plugin are those of gpu_stack.py, with the operator's node selectors. Facts: tests/upstream/fields, and what the operator's
own binary made on the sandbox.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.tests.live.support import gpu_stack, upstream_stack

Obj = dict[str, t.Any]

NAMESPACE, PREFIX = gpu_stack.NAMESPACE, "nvidia.com/gpu.deploy."
EXPORTER_IMAGE = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"
MANAGER_IMAGE = "nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.12.0"
#: Its program is not simulated: a fleet names it among its own images.
MIG_MANAGER_IMAGE = "nvcr.io/nvidia/cloud-native/k8s-mig-manager:v0.15.0"
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
CONTROL_PLANE = {
    "key": "node-role.kubernetes.io/control-plane",
    "operator": "Equal",
    "value": "",
    "effect": "NoSchedule",
}
#: Of each DaemonSet, the label of its nodes (assets/*/*_daemonset.yaml).
SELECTED = {
    "gpu-feature-discovery": {f"{PREFIX}gpu-feature-discovery": "true"},
    "nvidia-container-toolkit-daemonset": {f"{PREFIX}container-toolkit": "true"},
    "nvidia-dcgm-exporter": {f"{PREFIX}dcgm-exporter": "true"},
    "nvidia-device-plugin-daemonset": {f"{PREFIX}device-plugin": "true"},
    "nvidia-device-plugin-mps-control-daemon": {f"{PREFIX}device-plugin": "true", "nvidia.com/mps.capable": "true"},
    "nvidia-driver-daemonset": {f"{PREFIX}driver": "true"},
    "nvidia-mig-manager": {f"{PREFIX}mig-manager": "true"},
    "nvidia-operator-validator": {f"{PREFIX}operator-validator": "true"},
}
#: Operands of a node for containers (gpuStateLabels in controllers/state_manager.go).
OPERANDS = (
    "driver",
    "gpu-feature-discovery",
    "container-toolkit",
    "device-plugin",
    "dcgm",
    "dcgm-exporter",
    "node-status-exporter",
    "operator-validator",
    "client",
)
WORKER_CONF = """sources:
  pci:
    deviceClassWhitelist: ["02", "0200", "0207", "0300", "0302"]
    deviceLabelFields: [vendor]
"""


def _agent(name: str, container: Obj, mounts: dict[str, str], *read_only: str, **spec: t.Any) -> Obj:
    """A DaemonSet that waits for the toolkit's validation, with these mounts."""
    wait = "until [ -f /run/nvidia/validations/toolkit-ready ]; do echo waiting for nvidia container stack to be setup; sleep 5; done"
    mounted, volumes = upstream_stack.paths(mounts, *read_only)
    run = {"name": "run-nvidia", "mountPath": "/run/nvidia", "mountPropagation": "HostToContainer"}
    waiting = {
        "name": "toolkit-validation",
        "image": gpu_stack.VALIDATOR_IMAGE,
        "command": ["sh", "-c"],
        "args": [wait],
        "securityContext": {"privileged": True, "runAsUser": 0},
        "volumeMounts": [run],
    }
    container = {**container, "securityContext": {"privileged": True}, "volumeMounts": mounted}
    more = {"runtimeClassName": "nvidia", "priorityClassName": "system-node-critical", **spec}
    return upstream_stack.workload(
        "DaemonSet",
        name,
        NAMESPACE,
        container,
        {"app": name},
        initContainers=[waiting],
        volumes=[*volumes, {"name": "run-nvidia", "hostPath": {"path": "/run/nvidia"}}],
        **more,
    )


def discovery() -> Obj:
    container = {
        "name": "gpu-feature-discovery",
        "image": gpu_stack.PLUGIN_IMAGE,
        "command": ["gpu-feature-discovery"],
        "env": upstream_stack.env(
            GFD_SLEEP_INTERVAL="60s",
            GFD_FAIL_ON_INIT_ERROR="true",
            NAMESPACE="metadata.namespace",
            NODE_NAME="spec.nodeName",
            POD_NAME="metadata.name",
            MIG_STRATEGY="single",
            NVIDIA_MIG_MONITOR_DEVICES="all",
        ),
    }
    output = "/etc/kubernetes/node-feature-discovery/features.d"
    account = "nvidia-gpu-feature-discovery"
    return _agent(
        "gpu-feature-discovery", container, {output: output, "/sys": "/sys"}, "/sys", serviceAccountName=account
    )


def exporter() -> Obj:
    container = {
        "name": "nvidia-dcgm-exporter",
        "image": EXPORTER_IMAGE,
        "env": upstream_stack.env(
            DCGM_EXPORTER_LISTEN=":9400",
            DCGM_EXPORTER_KUBERNETES="true",
            DCGM_EXPORTER_COLLECTORS="/etc/dcgm-exporter/dcp-metrics-included.csv",
            NODE_NAME="spec.nodeName",
        ),
        "ports": [{"name": "metrics", "containerPort": 9400}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 9400}, "initialDelaySeconds": 45},
    }
    resources = "/var/lib/kubelet/pod-resources"
    return _agent("nvidia-dcgm-exporter", container, {resources: resources}, resources)


def mps_control_daemon() -> Obj:
    container = {
        "name": "mps-control-daemon-ctr",
        "image": gpu_stack.PLUGIN_IMAGE,
        "command": ["mps-control-daemon"],
        "env": upstream_stack.env(NODE_NAME="spec.nodeName", NVIDIA_VISIBLE_DEVICES="all"),
    }
    return _agent("nvidia-device-plugin-mps-control-daemon", container, {"/mps": "/run/nvidia/mps"}, hostPID=True)


def mig_manager() -> Obj:
    container = {
        "name": "nvidia-mig-manager",
        "image": MIG_MANAGER_IMAGE,
        "env": upstream_stack.env(NODE_NAME="spec.nodeName"),
    }
    return _agent("nvidia-mig-manager", container, {"/sys": "/sys", "/host": "/"}, hostPID=True, hostIPC=True)


def driver() -> Obj:
    """With NVIDIA's driver manager, which finds a driver of the host."""
    made = gpu_stack.driver()
    mounts, volumes = upstream_stack.paths({"/host": "/", "/sys": "/sys"}, "/host")
    manager = {
        "name": "k8s-driver-manager",
        "image": MANAGER_IMAGE,
        "command": ["driver-manager"],
        "args": ["uninstall_driver"],
        "env": upstream_stack.env(
            NODE_NAME="spec.nodeName",
            NVIDIA_VISIBLE_DEVICES="void",
            ENABLE_GPU_POD_EVICTION="true",
            ENABLE_AUTO_DRAIN="false",
            OPERATOR_NAMESPACE="metadata.namespace",
        ),
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"name": "run-nvidia", "mountPath": "/run/nvidia", "mountPropagation": "Bidirectional"},
            *mounts,
        ],
    }
    spec = made["spec"]["template"]["spec"]
    spec |= {
        "initContainers": [manager],
        "volumes": [*spec["volumes"], *volumes],
        "serviceAccountName": "nvidia-driver",
    }
    return made


def accounts() -> list[Obj]:
    """Rights of the driver manager and of GPU feature discovery; the validator's are in gpu_stack.py."""
    driver_rules = (
        ("", ["nodes"], ["get", "list", "patch", "update", "watch"]),
        ("", ["pods"], ["get", "list", "watch"]),
        ("", ["pods/eviction"], ["create"]),
        ("resource.k8s.io", ["resourceclaims"], ["get", "list"]),
        ("apps", ["daemonsets"], ["get"]),
    )
    discovery_rules = (
        ("nfd.k8s-sigs.io", ["nodefeatures"], ["get", "list", "watch", "create", "update"]),
        ("", ["pods"], ["get"]),
    )
    return [
        *upstream_stack.account("nvidia-driver", NAMESPACE, "ClusterRole", driver_rules),
        *upstream_stack.account("nvidia-gpu-feature-discovery", NAMESPACE, "Role", discovery_rules),
    ]


class Controller:
    """What the operator's controller does after it has made its objects: it labels GPU nodes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._nodes, self._sets = client.resource("v1", "Node"), client.resource("apps/v1", "DaemonSet")

    def deploy(self, policy: Obj) -> None:
        """policy: the stored ClusterPolicy."""
        nfd = upstream_stack.nfd(
            NAMESPACE, "gpu-operator-node-feature-discovery", WORKER_CONF, (CONTROL_PLANE, TOLERATION)
        )
        gpu_stack.deploy(self._client, *nfd, *accounts())
        gpu_stack.deploy_operator(
            self._client,
            policy,
            driver(),
            discovery(),
            exporter(),
            mps_control_daemon(),
            mig_manager(),
            selected=SELECTED,
        )

    def reconcile(self) -> None:
        """labelGPUNodes in controllers/state_manager.go: labels that are missing. A label that another has set stays."""
        for node in self._client.list(self._nodes).items:
            labels = node["metadata"].get("labels") or {}
            if labels.get("feature.node.kubernetes.io/pci-10de.present") != "true":
                continue
            desired = {"nvidia.com/gpu.present": "true", **{f"{PREFIX}{name}": "true" for name in OPERANDS}}
            if labels.get("nvidia.com/mig.capable") == "true":
                desired[f"{PREFIX}mig-manager"] = "true"
            if missing := {key: value for key, value in desired.items() if key not in labels}:
                patch = {"metadata": {"labels": missing}}
                self._client.patch(self._nodes, node["metadata"]["name"], "", patch, field_manager="gpu-operator")

    def states(self) -> dict[str, tuple[int, int]]:
        """Desired and ready pods of each DaemonSet of the operator."""
        self.reconcile()
        return {
            item["metadata"]["name"]: (
                item["status"].get("desiredNumberScheduled", 0),
                item["status"].get("numberReady", 0),
            )
            for item in self._client.list(self._sets, NAMESPACE).items
        }
