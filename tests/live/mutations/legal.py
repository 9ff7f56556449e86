# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other legal values of strings whose schema lists its values.

Sources: Kubernetes v1.36.4 (staging/src/k8s.io/api, apiextensions), and of environment variables the programs that read them: container toolkit v1.20.0
(cmd/nvidia-ctk-installer), device plugin v0.20.0 (cmd/nvidia-device-plugin/main.go), k8s-driver-manager v0.12.0 (cmd/driver-manager).
"""

from __future__ import annotations

#: Values by the name of the field, those of one field of several objects in lists of their own.
_BY_FIELD: dict[str, tuple[tuple[str, ...], ...]] = {
    "imagePullPolicy": (("IfNotPresent", "Never", "Always"),),
    "mountPropagation": (("None", "HostToContainer", "Bidirectional"),),
    "restartPolicy": (("Always", "Never", "OnFailure"),),
    "operator": (("In", "NotIn"), ("Exists", "DoesNotExist")),
    "effect": (("NoSchedule", "PreferNoSchedule", "NoExecute"),),
    "type": (
        ("RollingUpdate", "OnDelete"),
        ("RollingUpdate", "Recreate"),
        ("DirectoryOrCreate", "Directory", "File"),
        ("RuntimeDefault", "Unconfined"),
        ("ClusterIP", "NodePort"),
        ("object", "array"),
        ("string", "integer"),
        ("spc_t", "container_t"),
    ),
    "failurePolicy": (("Fail", "Ignore"),),
    "scope": (("Namespaced", "Cluster"),),
    "protocol": (("TCP", "UDP"),),
    "fieldPath": (
        ("spec.nodeName", "metadata.name", "metadata.namespace"),
        ("metadata.uid", "status.hostIP", "status.podIP"),
    ),
    "topologyKey": (("kubernetes.io/hostname", "topology.kubernetes.io/zone"),),
    "priorityClassName": (("system-node-critical", "system-cluster-critical"),),
    "format": (("date-time", "date"),),
    "op": (("In", "NotIn"), ("InRegexp", "NotIn")),
    "feature": (("cpu.model", "kernel.version"),),
}
#: Values by the list that has them.
_BY_LIST: dict[str, tuple[str, ...]] = {
    "verbs": ("get", "list", "watch", "create", "update", "patch", "delete"),
    "operations": ("CREATE", "UPDATE", "DELETE", "CONNECT"),
    "validationActions": ("Deny", "Warn", "Audit"),
    "drop": ("ALL", "NET_RAW"),
}
#: Values of words of command lines and of environment variables, whatever they are called.
_WORDS: tuple[tuple[str, ...], ...] = (
    ("true", "false"),
    ("all", "void", "none"),
    ("containerd", "docker", "crio"),
    ("cdi", "legacy", "csv"),
    ("config", "hook"),
    ("open", "proprietary", "auto"),
    ("management.nvidia.com/gpu", "nvidia.com/gpu"),
    ("cdi-annotations,cdi-cri", "envvar", "volume-mounts"),
    ("compute,utility", "compute", "utility"),
    ("uninstall_driver", "preflight_check"),
    ("privileged", "baseline", "restricted"),
)
_WORD_FIELDS = frozenset(("value", "command", "args", "enforce", "audit", "warn"))


def another(path: tuple[str | int, ...], value: str) -> str | None:
    """Another value that the schema of the field allows; None if it lists none."""
    names = [part for part in path if isinstance(part, str)]
    field = names[-1].rpartition("/")[2]
    if isinstance(path[-1], int) and field in _BY_LIST:
        return _next(_BY_LIST[field], value)
    for values in _BY_FIELD.get(field, ()) if not isinstance(path[-1], int) else ():
        if value in values:
            return _next(values, value)
    if field in _WORD_FIELDS:
        for values in _WORDS:
            if value in values:
                return _next(values, value)
    return None


def _next(values: tuple[str, ...], value: str) -> str | None:
    return values[(values.index(value) + 1) % len(values)] if value in values else None
