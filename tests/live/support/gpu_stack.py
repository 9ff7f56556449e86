# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A minimal GPU stack in the layout of the GPU Operator, as an existing deployment that gates judge."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.tests.live.support import upstream_stack

NAMESPACE = "gpu-operator"
KERNEL = "6.8.0-111-generic"
DRIVER_IMAGE = f"nvcr.io/nvidia/driver:580-{KERNEL}-ubuntu24.04"
VALIDATOR_IMAGE = "nvcr.io/nvidia/gpu-operator:v26.7.0"
TOOLKIT_IMAGE = "nvcr.io/nvidia/k8s/container-toolkit:v1.20.0"
PLUGIN_IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"

Obj = dict[str, t.Any]

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CLUSTER_POLICY = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "clusterpolicies.nvidia.com"},
    "spec": {
        "group": "nvidia.com",
        "scope": "Cluster",
        "names": {
            "kind": "ClusterPolicy",
            "listKind": "ClusterPolicyList",
            "plural": "clusterpolicies",
            "singular": "clusterpolicy",
        },
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _ANYTHING}}],
    },
}
_VALIDATOR = "nvidia-operator-validator"
_PRIVILEGED = {"privileged": True, "runAsUser": 0}
_VOLUMES = {
    "run-nvidia": "/run/nvidia",
    "validations": "/run/nvidia/validations",
    "driver-install-dir": "/run/nvidia/driver",
    "install-dir": "/usr/local/nvidia",
    "host-root": "/",
    "host-dev-char": "/dev/char",
    "host-os-release": "/etc/os-release",
    "device-plugins": "/var/lib/kubelet/device-plugins",
    "containerd-config": "/etc/containerd",
    "containerd-conf-d": "/etc/containerd/conf.d",
    "containerd-socket": "/run/containerd",
    "cdi": "/var/run/cdi",
}


def _mount(name: str, path: str, propagation: str = "", read_only: bool = False) -> Obj:
    return {
        "name": name,
        "mountPath": path,
        **({"mountPropagation": propagation} if propagation else {}),
        **({"readOnly": True} if read_only else {}),
    }


_VALIDATIONS = _mount("validations", "/run/nvidia/validations", "Bidirectional")
_READ_VALIDATIONS = _mount("validations", "/run/nvidia/validations", "HostToContainer")
_HOST = _mount("host-root", "/host", "HostToContainer", True)


def _env(**values: str) -> list[Obj]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _wait_for(name: str, file: str) -> Obj:
    loop = f"until [ -f /run/nvidia/validations/{file} ]; do echo waiting for {file}; sleep 5; done"
    return {
        "name": name,
        "image": VALIDATOR_IMAGE,
        "command": ["sh", "-c"],
        "args": [loop],
        "securityContext": _PRIVILEGED,
        "volumeMounts": [_READ_VALIDATIONS],
    }


def _step(component: str, *mounts: Obj, wait: bool = False) -> Obj:
    node = [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
    namespace = [{"name": "OPERATOR_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}]
    return {
        "name": f"{component}-validation",
        "image": VALIDATOR_IMAGE,
        "command": ["sh", "-c"],
        "args": ["nvidia-validator"],
        "securityContext": _PRIVILEGED,
        "env": _env(
            COMPONENT=component, WITH_WAIT=str(wait).lower(), WITH_WORKLOAD="false", NVIDIA_VISIBLE_DEVICES="all"
        )
        + node
        + namespace,
        "volumeMounts": [_VALIDATIONS, *mounts],
    }


def _daemon_set(name: str, inits: list[Obj], containers: list[Obj], **spec: t.Any) -> Obj:
    used = {mount["name"] for container in (*inits, *containers) for mount in container.get("volumeMounts", [])}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "nodeSelector": {"feature.node.kubernetes.io/pci-10de.present": "true"},
                    "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
                    "initContainers": inits,
                    "containers": containers,
                    "volumes": [{"name": volume, "hostPath": {"path": _VOLUMES[volume]}} for volume in sorted(used)],
                    **spec,
                },
            },
        },
    }


def driver(image: str = DRIVER_IMAGE) -> Obj:
    run = _mount("run-nvidia", "/run/nvidia", "Bidirectional")
    ready = "[ -f /sys/module/nvidia/refcnt ] && nvidia-smi && mkdir -p /run/nvidia/validations && touch /run/nvidia/validations/.driver-ctr-ready"
    container = {
        "name": "nvidia-driver-ctr",
        "image": image,
        "command": ["nvidia-driver"],
        "args": ["init"],
        "securityContext": _PRIVILEGED,
        "env": _env(NVIDIA_VISIBLE_DEVICES="void"),
        "volumeMounts": [run, _mount("host-os-release", "/host-etc/os-release", read_only=True)],
        "startupProbe": {
            "exec": {"command": ["sh", "-c", ready]},
            "initialDelaySeconds": 60,
            "periodSeconds": 10,
            "failureThreshold": 120,
            "timeoutSeconds": 60,
        },
        "lifecycle": {
            "preStop": {"exec": {"command": ["sh", "-c", "rm -f /run/nvidia/validations/.driver-ctr-ready"]}}
        },
    }
    objects = _daemon_set("nvidia-driver-daemonset", [], [container], hostPID=True)
    objects["spec"]["updateStrategy"] = {"type": "OnDelete"}
    return objects


def toolkit() -> Obj:
    container = {
        "name": "nvidia-container-toolkit-ctr",
        "image": TOOLKIT_IMAGE,
        "command": ["/bin/sh", "-c"],
        "args": ["set -o allexport; . /run/nvidia/validations/driver-ready; exec nvidia-toolkit"],
        "securityContext": _PRIVILEGED,
        "env": _env(
            ROOT="/usr/local/nvidia",
            RUNTIME="containerd",
            CONTAINERD_RUNTIME_CLASS="nvidia",
            CONTAINERD_CONFIG="/runtime/config-dir/config.toml",
            RUNTIME_CONFIG="/runtime/config-dir/config.toml",
            RUNTIME_DROP_IN_CONFIG="/runtime/config-dir.d/99-nvidia.toml",
            RUNTIME_DROP_IN_CONFIG_HOST_PATH="/etc/containerd/conf.d/99-nvidia.toml",
            CONTAINERD_SOCKET="/runtime/sock-dir/containerd.sock",
            RUNTIME_SOCKET="/runtime/sock-dir/containerd.sock",
            CDI_ENABLED="true",
            NVIDIA_RUNTIME_SET_AS_DEFAULT="false",
            NVIDIA_VISIBLE_DEVICES="void",
            TOOLKIT_PID_FILE="/run/nvidia/toolkit/toolkit.pid",
        ),
        "volumeMounts": [
            _READ_VALIDATIONS,
            _mount("driver-install-dir", "/driver-root", "HostToContainer"),
            _mount("run-nvidia", "/run/nvidia"),
            _mount("install-dir", "/usr/local/nvidia"),
            _mount("containerd-config", "/runtime/config-dir"),
            _mount("containerd-conf-d", "/runtime/config-dir.d"),
            _mount("containerd-socket", "/runtime/sock-dir"),
            _mount("cdi", "/var/run/cdi"),
            _HOST,
        ],
    }
    first = _step(
        "driver",
        _mount("driver-install-dir", "/run/nvidia/driver", "HostToContainer"),
        _HOST,
        _mount("host-dev-char", "/host-dev-char"),
        wait=True,
    )
    return _daemon_set("nvidia-container-toolkit-daemonset", [first], [container], hostPID=True)


def validator() -> Obj:
    install = _mount("driver-install-dir", "/run/nvidia/driver", "HostToContainer")
    inits = [
        _step("driver", install, _HOST, _mount("host-dev-char", "/host-dev-char"), wait=True),
        _step("toolkit"),
        _step("cuda"),
    ]
    main = {
        "name": "nvidia-operator-validator",
        "image": VALIDATOR_IMAGE,
        "command": ["sh", "-c"],
        "args": ["echo all validations are successful; while true; do sleep 86400; done"],
        "securityContext": _PRIVILEGED,
        "volumeMounts": [_VALIDATIONS],
    }
    return _daemon_set("nvidia-operator-validator", inits, [main], runtimeClassName="nvidia")


def plugin() -> Obj:
    container = {
        "name": "nvidia-device-plugin",
        "image": PLUGIN_IMAGE,
        "command": ["sh", "-c"],
        "args": ["set -o allexport; . /run/nvidia/validations/driver-ready; exec nvidia-device-plugin"],
        "securityContext": _PRIVILEGED,
        "env": _env(
            NVIDIA_VISIBLE_DEVICES="all",
            NVIDIA_DRIVER_CAPABILITIES="compute,utility",
            CDI_ENABLED="true",
            DEVICE_LIST_STRATEGY="cdi-annotations",
            NVIDIA_CDI_HOOK_PATH="/usr/local/nvidia/toolkit/nvidia-cdi-hook",
        ),
        "volumeMounts": [
            _mount("device-plugins", "/var/lib/kubelet/device-plugins"),
            _READ_VALIDATIONS,
            _mount("driver-install-dir", "/driver-root", "HostToContainer"),
            _HOST,
            _mount("cdi", "/var/run/cdi"),
        ],
    }
    return _daemon_set(
        "nvidia-device-plugin-daemonset",
        [_wait_for("cuda-proof", "cuda-ready")],
        [container],
        runtimeClassName="nvidia",
    )


def deploy(client: Client, *objects: Obj) -> None:
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
    }
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
    }
    # NVIDIA's validator checks whether a driver DaemonSet exists in its namespace.
    rules = [{"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get", "list", "watch"]}]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "validator", "namespace": NAMESPACE},
        "rules": rules,
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "validator", "namespace": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "validator"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE}],
    }
    for obj in (namespace, runtime, role, binding, *objects):
        client.apply(obj, client.resource(obj["apiVersion"], obj["kind"]), field_manager="another-deployer", force=True)


def deploy_all(client: Client) -> None:
    deploy(client, driver(), toolkit(), validator(), plugin())


def deploy_operator(
    client: Client,
    policy: Obj,
    first: Obj | None = None,
    *more: Obj,
    selected: t.Mapping[str, dict[str, str]] | None = None,
) -> None:
    """The same stack as the GPU Operator creates it (v26.7.0): owned by its ClusterPolicy, tolerating NVIDIA's taint only, with a validator that creates pods.

    policy: the stored ClusterPolicy. first: the driver, by default that of this stack. more: other DaemonSets. selected: node selectors by DaemonSet.
    """
    rules = (
        ("apps", ["daemonsets"], ["get", "list", "watch"]),
        ("", ["pods"], ["get", "list", "create", "delete"]),
        ("", ["nodes"], ["get"]),
    )
    objects = [first or driver(), toolkit(), validator(), plugin(), *more]
    steps = objects[2]["spec"]["template"]["spec"]["initContainers"]
    steps.append(_step("plugin"))
    for step in steps[2:]:
        step["env"] = [one for one in step["env"] if one["name"] != "WITH_WORKLOAD"] + _env(
            VALIDATOR_IMAGE=VALIDATOR_IMAGE, VALIDATOR_RUNTIME_CLASS="nvidia"
        )
        step["env"] += _env(WITH_WORKLOAD=str(step["name"] == "cuda-validation").lower())
    objects[2]["spec"]["template"]["spec"]["serviceAccountName"] = _VALIDATOR
    metadata = policy["metadata"]
    owner = {
        "apiVersion": policy["apiVersion"],
        "kind": policy["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    for daemon_set in objects:
        daemon_set["metadata"]["ownerReferences"] = [owner]
        spec = daemon_set["spec"]["template"]["spec"]
        spec["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
        if selected:
            spec["nodeSelector"] = selected[daemon_set["metadata"]["name"]]
    objects[0]["metadata"]["labels"] = {"app.kubernetes.io/component": "nvidia-driver"}
    deploy(client, *upstream_stack.account(_VALIDATOR, NAMESPACE, "ClusterRole", rules), *objects)


def label_as_nfd_would(client: Client) -> None:
    """The labels of feature discovery, which has its own tests."""
    resource = client.resource("v1", "Node")
    for node in client.list(resource).items:
        name = node["metadata"]["name"]
        labels = {"feature.node.kubernetes.io/kernel-version.full": node["status"]["nodeInfo"]["kernelVersion"]}
        if not name.startswith("cpu"):
            labels["feature.node.kubernetes.io/pci-10de.present"] = "true"
        client.patch(resource, name, "", {"metadata": {"labels": labels}}, field_manager="nfd-master")


def delete_daemon_set(client: Client, name: str) -> None:
    try:
        client.delete(client.resource("apps/v1", "DaemonSet"), name, NAMESPACE)
    except NotFound:
        return
