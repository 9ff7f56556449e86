# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The readiness predicate of each kind."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._state import objects, workloads
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.verdicts import READY, Verdict, waiting

Obj = c.Mapping[str, t.Any]

_PREDICATES: dict[tuple[str, str], c.Callable[[Obj], Verdict]] = {
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("", "ReplicationController"): workloads.replica_set,
    ("", "Pod"): workloads.pod,
    ("batch", "Job"): workloads.job,
    ("", "PersistentVolumeClaim"): objects.claim,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): objects.crd,
    ("apiregistration.k8s.io", "APIService"): objects.api_service,
    ("", "Node"): objects.node,
    ("", "Namespace"): objects.namespace,
    ("", "Service"): objects.service,
}

#: "Kind" or "Kind.group" to a JMESPath expression.
Conditions = c.Mapping[str, str]


def expression_for(group: str, kind: str, ready_when: Conditions) -> str:
    return ready_when.get(f"{kind}.{group}") or ready_when.get(kind) or ""


def has_predicate(group: str, kind: str, ready_when: Conditions) -> bool:
    """Whether objects of a kind can exist without being ready."""
    return (group, kind) in _PREDICATES or bool(expression_for(group, kind, ready_when))


def judge(obj: Obj, group: str, kind: str, ready_when: Conditions, nodes: workloads.Nodes | None = None) -> Verdict:
    """One live object's verdict. A user's expression for a kind replaces the built-in predicate."""
    if (obj.get("metadata") or {}).get("deletionTimestamp"):
        return waiting("it is being deleted")
    expression = expression_for(group, kind, ready_when)
    if expression:
        return objects.custom(obj, expression)
    if (group, kind) == ("apps", "DaemonSet"):
        return workloads.daemon_set(obj, nodes)
    predicate = _PREDICATES.get((group, kind))
    return predicate(obj) if predicate else READY
