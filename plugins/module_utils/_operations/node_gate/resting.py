# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of DaemonSets that are at rest, from the lines that the API server prints of them instead of from the pods, which are 50 times as large.

A DaemonSet is at rest if its controller has nothing left to do and each of its pods is ready. Then its pods have its template, and differ in name and
node only. In a fleet where everything has passed, which is the usual one, a gate needs no more.
"""

from __future__ import annotations

import collections
import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, Gone

Obj = dict[str, t.Any]
#: Length of the random end of a generated name, and of what it is appended to (Kubernetes 1.36, staging/src/k8s.io/apiserver/pkg/storage/names).
_RANDOM, _LONGEST_BASE = 5, 58


class Group(t.NamedTuple):
    """pod: one of the DaemonSet, without name and node. places: (name, node) of each."""

    pod: Obj
    places: list[tuple[str, str]]


def pods(client: Client, namespace: str, counts: c.Callable[[Obj], bool]) -> list[Group] | None:
    """The pods of all DaemonSets of the namespace whose template `counts`; None if there is none, or one of them is not known to be at rest."""
    sets = [
        item
        for item in client.list(client.resource("apps/v1", "DaemonSet"), namespace).items
        if counts(item["spec"]["template"])
    ]
    bases = [_base(item["metadata"]["name"]) for item in sets]
    if not sets or len(set(bases)) < len(bases) or not all(map(_settled, sets)):
        return None
    printed = collections.defaultdict(list)
    for row in client.rows(client.resource("v1", "Pod"), namespace):
        printed[str(row.get("name"))[:-_RANDOM]].append(row)
    found = []
    for base, item in zip(bases, sets, strict=True):
        rows, containers = printed[base], len(item["spec"]["template"]["spec"]["containers"])
        if len(rows) != _desired(item) or not all(_steady(row, containers) for row in rows):
            return None
        found.append(Group(_sample(item), [(str(row["name"]), str(row["node"])) for row in rows]))
    return found


def pods_of_all(client: Client, namespaces: c.Iterable[str], counts: c.Callable[[Obj], bool]) -> list[Group] | None:
    """The pods of several namespaces, as of one."""
    found: list[Group] = []
    try:
        for namespace in namespaces:
            groups = pods(client, namespace, counts) if namespace else None
            if groups is None:
                return None
            found += groups
    except (Forbidden, Gone):
        # Who may not list DaemonSets may still list pods, and a list that has expired is read again as a list of pods.
        return None
    return found


def _base(name: str) -> str:
    return f"{name}-"[:_LONGEST_BASE]


def _desired(item: Obj) -> int:
    return int((item.get("status") or {}).get("desiredNumberScheduled") or 0)


def _settled(item: Obj) -> bool:
    """Whether its controller has observed its latest version, and all pods that it should have are there, ready and of that version."""
    status = item.get("status") or {}
    numbers = {
        int(status.get(name) or 0) for name in ("currentNumberScheduled", "updatedNumberScheduled", "numberReady")
    }
    return (
        status.get("observedGeneration") == item["metadata"].get("generation")
        and not item["metadata"].get("deletionTimestamp")
        and not status.get("numberMisscheduled")
        and numbers == {_desired(item)}
    )


def _steady(row: c.Mapping[str, t.Any], containers: int) -> bool:
    """Whether the pod is running with all containers ready. Of one that is being deleted, the status is Terminating (printers/internalversion)."""
    ready, _slash, all_of_them = str(row.get("ready")).partition("/")
    return (
        row.get("status") == "Running"
        and ready == all_of_them
        and int(ready or 0) >= containers
        and row.get("node") not in (None, "", "<none>")
    )


def _sample(item: Obj) -> Obj:
    template, metadata = item["spec"]["template"], item["metadata"]
    spec = template["spec"]
    owner = {"kind": "DaemonSet", "name": metadata["name"], "controller": True}
    return {
        "metadata": {
            **(template.get("metadata") or {}),
            "namespace": metadata.get("namespace"),
            "ownerReferences": [owner],
        },
        "spec": spec,
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "initContainerStatuses": [_init(one) for one in spec.get("initContainers") or ()],
            "containerStatuses": [_running(one) for one in spec["containers"]],
        },
    }


def _init(container: Obj) -> Obj:
    """One that restarts always keeps running beside the others (sidecar)."""
    if container.get("restartPolicy") == "Always":
        return _running(container)
    return {"name": container["name"], "ready": True, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}


def _running(container: Obj) -> Obj:
    return {"name": container["name"], "ready": True, "started": True, "state": {"running": {}}}
