# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that a deletion waits for, and those among them that cannot end as long as their node is not ready.

The API server removes a pod only when its kubelet reports that it has ended, or when the Node object is gone.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import waves
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import objects

_POD = Resource("", "v1", "Pod", "pods", True)
_REPLICA_SET = Resource("apps", "v1", "ReplicaSet", "replicasets", True)
_NODE = Resource("", "v1", "Node", "nodes", False)
_NAMED = 5


@dataclasses.dataclass(frozen=True)
class Held:
    """A pod that still exists. ending: it is terminating."""

    name: str
    node: str
    ending: bool

    def __str__(self) -> str:
        return f"pod {self.name} on node {self.node}" if self.node else f"pod {self.name} on no node"


def pods_of(client: Client, step: Step) -> list[Held]:
    """Pods that a workload owns, or that are in a Namespace; [] for other kinds, and if they may not be read."""
    group_kind = (step.key.group, step.key.kind)
    try:
        if group_kind == waves.NAMESPACE:
            return [_held(pod) for page in client.pages(_POD, step.key.name) for pod in page.items]
        if group_kind not in waves.WORKLOADS:
            return []
        owners = {step.uid}
        if step.key.kind == "Deployment":
            owners |= {
                one["metadata"]["uid"]
                for one in client.list(_REPLICA_SET, step.key.namespace, metadata_only=True).items
                if _owned(one, owners)
            }
        return [
            _held(pod) for page in client.pages(_POD, step.key.namespace) for pod in page.items if _owned(pod, owners)
        ]
    except (Forbidden, NotFound):
        return []


def stranded(client: Client, step: Step) -> list[Held]:
    """The remaining pods, if none of them is on a ready node; [] if waiting can help."""
    left = pods_of(client, step)
    away: dict[str, bool] = {}
    for pod in left:
        if pod.ending and pod.node not in away:
            away[pod.node] = _away(client, pod.node)
        if not pod.ending or not away[pod.node]:
            return []
    return left


def named(pods: c.Sequence[Held]) -> str:
    more = f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else ""
    return ", ".join(str(pod) for pod in pods[:_NAMED]) + more


def _away(client: Client, name: str) -> bool:
    """A pod without a Node object is soon garbage collected, so it is waited for."""
    if not name:
        return False
    try:
        return not objects.node(client.get(_NODE, name)).ready
    except (Forbidden, NotFound):
        return False


def _held(pod: dict[str, t.Any]) -> Held:
    metadata = pod["metadata"]
    return Held(
        f"{metadata.get('namespace')}/{metadata['name']}",
        str((pod.get("spec") or {}).get("nodeName") or ""),
        bool(metadata.get("deletionTimestamp")),
    )


def _owned(obj: dict[str, t.Any], owners: c.Collection[str]) -> bool:
    return any(owner.get("uid") in owners for owner in obj["metadata"].get("ownerReferences") or ())
