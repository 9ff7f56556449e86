# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods of a node must leave it, which stay, and what prevents a drain. Pure.

The rules are those of `kubectl drain --ignore-daemonsets` (kubernetes, staging/src/k8s.io/kubectl/pkg/drain/filters.go), in the same order, except for these:

- Pods that have ended stay as well: they use no resources of the node, and kubectl would delete their logs.
- Pods that are terminating are waited for in any case.
- The DaemonSet of a pod is not read. If it was deleted, its pods are deleted soon as well.
- A pod that tolerates the cordon and was created after it stays, because it would be recreated on the node again.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import placement

Obj = c.Mapping[str, t.Any]

#: Annotation of static pods, which only end if a file on the machine is removed.
_MIRROR = "kubernetes.io/config.mirror"
#: Taint that the node lifecycle controller adds to a cordoned node, with its time.
_CORDON_TAINT = "node.kubernetes.io/unschedulable"
_ENDED = ("Succeeded", "Failed")
_NAMED = 20


@dataclasses.dataclass(frozen=True)
class Pod:
    """where: namespace/name."""

    namespace: str
    name: str
    uid: str

    @property
    def where(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True)
class Pods:
    """leaving: must be evicted. ending: are terminating. staying: why, by pod. faults: what prevents the drain."""

    leaving: tuple[Pod, ...]
    ending: tuple[Pod, ...]
    staying: dict[str, str]
    faults: tuple[Fault, ...]


def sort(
    node: Obj,
    pods: c.Iterable[Obj],
    called: c.Callable[[str], str],
    *,
    force: bool = False,
    delete_emptydir_data: bool = False,
) -> Pods:
    """called: names of options in messages."""
    leaving, ending, unmanaged, local = list[Pod](), list[Pod](), list[str](), list[str]()
    staying: dict[str, str] = {}
    for pod in pods:
        metadata = pod["metadata"]
        one = Pod(metadata["namespace"], metadata["name"], metadata["uid"])
        if (pod.get("status") or {}).get("phase") in _ENDED:
            continue
        if why := _stays(pod, node):
            staying[one.where] = why
        elif metadata.get("deletionTimestamp"):
            ending.append(one)
        else:
            leaving.append(one)
            if not force and not _controller(pod):
                unmanaged.append(one.where)
            if not delete_emptydir_data and any(
                volume.get("emptyDir") is not None for volume in (pod.get("spec") or {}).get("volumes") or ()
            ):
                local.append(one.where)
    name, faults = node["metadata"]["name"], list[Fault]()
    if unmanaged:
        why, next_step = (
            f"no controller would recreate them: {some(unmanaged, _NAMED)}",
            f"end them yourself, or set {called('force')}, which deletes them",
        )
        faults.append(Fault("pods would be lost", f"node {name}", why, next_step))
    if local:
        why, next_step = (
            f"they have emptyDir volumes: {some(local, _NAMED)}",
            f"save the data that you need, and set {called('delete_emptydir_data')}",
        )
        faults.append(Fault("data of pods would be lost", f"node {name}", why, next_step))
    return Pods(tuple(leaving), tuple(ending), staying, tuple(faults))


def _stays(pod: Obj, node: Obj) -> str:
    """Why a pod stays, "" if it must leave."""
    if _MIRROR in (pod["metadata"].get("annotations") or {}):
        return "it is a static pod of the machine"
    owner = _controller(pod)
    if owner.get("kind") == "DaemonSet":
        return f"it belongs to DaemonSet {owner.get('name')}"
    for taint in (node.get("spec") or {}).get("taints") or ():
        # Both times are from the servers and have a resolution of a second. Within the same second, the pod may be older than the cordon.
        if taint.get("key") == _CORDON_TAINT and str(taint.get("timeAdded") or "9999") < str(
            pod["metadata"].get("creationTimestamp") or ""
        ):
            return (
                "it tolerates the cordon, and was created after it"
                if placement.tolerates((pod.get("spec") or {}).get("tolerations") or (), taint)
                else ""
            )
    return ""


def _controller(pod: Obj) -> Obj:
    return next((owner for owner in pod["metadata"].get("ownerReferences") or () if owner.get("controller")), {})
