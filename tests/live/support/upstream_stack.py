# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Upstream's static manifests, written anew from the facts in tests/upstream/fields: NFD v0.19.0 (overlay default), device plugin and GPU feature discovery
v0.20.0, DCGM exporter 4.5.3-4.8.2, and the pod of NVIDIA's vectorAdd sample."""

from __future__ import annotations

import typing as t

Obj = dict[str, t.Any]

NFD, KUBE_SYSTEM, DEFAULT = "node-feature-discovery", "kube-system", "default"
NFD_IMAGE = "registry.k8s.io/nfd/node-feature-discovery:v0.19.0"
PLUGIN_IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
EXPORTER_IMAGE = "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless"
SAMPLE_IMAGE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"
FEATURES = "/etc/kubernetes/node-feature-discovery"
_RBAC, _API = "rbac.authorization.k8s.io", "nfd.k8s-sigs.io"
_LEASE = "nfd-master.nfd.kubernetes.io"
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
#: Host paths of the worker, by their mount in it.
_WORKER_PATHS = {
    "/host-boot": "/boot",
    "/host-etc/os-release": "/etc/os-release",
    "/host-sys": "/sys",
    "/host-proc/swaps": "/proc/swaps",
    "/host-usr/lib": "/usr/lib",
    "/host-lib": "/lib",
    f"{FEATURES}/features.d/": f"{FEATURES}/features.d/",
}
_MASTER_RULES = (
    ("", ["namespaces"], ["watch", "list"]),
    ("", ["nodes", "nodes/status"], ["get", "patch", "update", "list"]),
    (_API, ["nodefeatures", "nodefeaturerules", "nodefeaturegroups"], ["get", "list", "watch"]),
    (_API, ["nodefeaturegroups/status"], ["patch", "update"]),
    ("coordination.k8s.io", ["leases"], ["create"]),
)
_GC_RULES = (
    ("", ["nodes"], ["list", "watch"]),
    ("topology.node.k8s.io", ["noderesourcetopologies"], ["delete", "list"]),
    (_API, ["nodefeatures"], ["delete", "list"]),
)
_WORKER_RULES = ((_API, ["nodefeatures"], ["create", "get", "update", "delete"]), ("", ["pods"], ["get"]))


def env(**fields: str) -> list[Obj]:
    """Values, or paths of fields of the pod."""
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": value}}}
        if value.startswith(("spec.", "metadata."))
        else {"name": name, "value": value}
        for name, value in fields.items()
    ]


def paths(mounts: dict[str, str], *read_only: str) -> tuple[list[Obj], list[Obj]]:
    """Mounts and volumes of host paths. mounts: host path by the path in the container. read_only: those that are not written."""
    names = {path: f"v{number}" for number, path in enumerate(mounts)}
    mounted = [
        {"name": names[path], "mountPath": path, **({"readOnly": True} if path in read_only else {})} for path in mounts
    ]
    return mounted, [{"name": names[path], "hostPath": {"path": host}} for path, host in mounts.items()]


def workload(kind: str, name: str, namespace: str, container: Obj, labels: dict[str, str], **spec: t.Any) -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}},
        },
    }


def account(name: str, namespace: str, kind: str, rules: t.Iterable[tuple[str, list[str], list[str]]]) -> list[Obj]:
    """A ServiceAccount with a Role or a ClusterRole."""
    listed: list[Obj] = [
        {"apiGroups": [group], "resources": resources, "verbs": verbs} for group, resources, verbs in rules
    ]
    if name == "nfd-master":
        leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]}
        listed.append({**leases, "resourceNames": [_LEASE]})
    where = {"namespace": namespace} if kind == "Role" else {}
    version = f"{_RBAC}/v1"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        {"apiVersion": version, "kind": kind, "metadata": {"name": name, **where}, "rules": listed},
        {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": {"name": name, **where},
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    ]


def kinds() -> list[Obj]:
    """The kinds of NFD, without the schemas."""
    made = []
    for kind, scope in (
        ("NodeFeature", "Namespaced"),
        ("NodeFeatureRule", "Cluster"),
        ("NodeFeatureGroup", "Namespaced"),
    ):
        plural = f"{kind.lower()}s"
        version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _ANYTHING}}
        names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
        made.append(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{_API}"},
                "spec": {"group": _API, "scope": scope, "names": names, "versions": [version]},
            }
        )
    return made


def _nfd_container(name: str, memory: str, **more: t.Any) -> Obj:
    health = {"httpGet": {"path": "/healthz", "port": "http"}}
    return {
        "name": name,
        "image": NFD_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": [name],
        "env": env(NODE_NAME="spec.nodeName", POD_NAME="metadata.name", POD_UID="metadata.uid"),
        "ports": [{"name": "http", "containerPort": 8080}],
        "livenessProbe": health,
        "readinessProbe": {**health, "failureThreshold": 10},
        "resources": {"limits": {"memory": memory}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
        },
        **more,
    }


def _conf(name: str, namespace: str, file: str, text: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {file: text},
    }


def nfd(
    namespace: str = NFD, prefix: str = "nfd", worker_conf: str = "", tolerations: t.Sequence[Obj] = ()
) -> list[Obj]:
    """prefix: of the names of workloads. worker_conf: the worker's configuration, without which it has its defaults."""
    mounts, volumes = paths(_WORKER_PATHS, *_WORKER_PATHS)
    config = {"name": "conf", "mountPath": FEATURES, "readOnly": True}
    confs = {name: f"{prefix}-{name}-conf" for name in ("master", "worker")}
    volume = {name: {"name": "conf", "configMap": {"name": conf}} for name, conf in confs.items()}
    labels = {name: {"app.kubernetes.io/name": NFD, "app": f"nfd-{name}"} for name in ("master", "worker", "gc")}
    master = _nfd_container("nfd-master", "4Gi", volumeMounts=[config])
    worker = _nfd_container("nfd-worker", "512Mi", volumeMounts=[*mounts, config])
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *kinds(),
        *account("nfd-master", namespace, "ClusterRole", _MASTER_RULES),
        *account("nfd-gc", namespace, "ClusterRole", _GC_RULES),
        *account("nfd-worker", namespace, "Role", _WORKER_RULES),
        _conf(confs["master"], namespace, "nfd-master.conf", ""),
        _conf(confs["worker"], namespace, "nfd-worker.conf", worker_conf),
        workload(
            "Deployment",
            f"{prefix}-master",
            namespace,
            master,
            labels["master"],
            serviceAccountName="nfd-master",
            volumes=[volume["master"]],
        ),
        workload(
            "Deployment",
            f"{prefix}-gc",
            namespace,
            _nfd_container("nfd-gc", "1Gi"),
            labels["gc"],
            serviceAccountName="nfd-gc",
        ),
        workload(
            "DaemonSet",
            f"{prefix}-worker",
            namespace,
            worker,
            labels["worker"],
            serviceAccountName="nfd-worker",
            tolerations=list(tolerations),
            volumes=[*volumes, volume["worker"]],
        ),
    ]


def plugin() -> Obj:
    mounts, volumes = paths({"/var/lib/kubelet/device-plugins": "/var/lib/kubelet/device-plugins"})
    container = {
        "name": "nvidia-device-plugin-ctr",
        "image": PLUGIN_IMAGE,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": mounts,
    }
    return workload(
        "DaemonSet",
        "nvidia-device-plugin-daemonset",
        KUBE_SYSTEM,
        container,
        {"name": "nvidia-device-plugin-ds"},
        priorityClassName="system-node-critical",
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        volumes=volumes,
    )


def discovery(**more: str) -> Obj:
    """more: environment variables that the manifest does not have."""
    output = f"{FEATURES}/features.d"
    mounts, volumes = paths({output: output, "/sys": "/sys"})
    container = {
        "name": "gpu-feature-discovery",
        "image": PLUGIN_IMAGE,
        "command": ["/usr/bin/gpu-feature-discovery"],
        "env": env(MIG_STRATEGY="none", **more),
        "securityContext": {"privileged": True},
        "volumeMounts": mounts,
    }
    any_of = (
        ("feature.node.kubernetes.io/pci-10de.present", "true"),
        ("feature.node.kubernetes.io/cpu-model.vendor_id", "NVIDIA"),
        ("nvidia.com/gpu.present", "true"),
    )
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for key, value in any_of]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return workload(
        "DaemonSet",
        "gpu-feature-discovery",
        DEFAULT,
        container,
        {"app.kubernetes.io/name": "gpu-feature-discovery", "app.kubernetes.io/part-of": "nvidia-gpu"},
        affinity={"nodeAffinity": required},
        volumes=volumes,
    )


def exporter() -> Obj:
    resources = "/var/lib/kubelet/pod-resources"
    mounts, volumes = paths({resources: resources}, resources)
    container = {
        "name": "dcgm-exporter",
        "image": EXPORTER_IMAGE,
        "env": env(DCGM_EXPORTER_LISTEN=":9400", DCGM_EXPORTER_KUBERNETES="true", NODE_NAME="spec.nodeName"),
        "ports": [{"name": "metrics", "containerPort": 9400}],
        "resources": {"limits": {"cpu": "200m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            "runAsNonRoot": False,
            "runAsUser": 0,
            "capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]},
            "allowPrivilegeEscalation": False,
        },
        "volumeMounts": mounts,
    }
    labels = {"app.kubernetes.io/name": "dcgm-exporter", "app.kubernetes.io/version": "4.8.2"}
    return workload(
        "DaemonSet", "dcgm-exporter", DEFAULT, container, labels, automountServiceAccountToken=False, volumes=volumes
    )


def sample(name: str = "gpu-pod") -> Obj:
    """NVIDIA's sample pod of the device plugin's README."""
    container = {
        "name": "cuda-container",
        "image": SAMPLE_IMAGE,
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }
    spec = {
        "restartPolicy": "Never",
        "containers": [container],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": DEFAULT}, "spec": spec}
