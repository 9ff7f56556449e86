# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nfd-master and nfd-gc, which run once in a cluster, in another namespace, so that no node's pods show their state.

Without nfd-master no node gets a label, which a gate detects. Without nfd-gc, features of deleted nodes remain, which it cannot detect.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import hints, trouble
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.names import OWNER_LABELS
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import PodFacts, reduce_pod
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError, Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import causes
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import workloads
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.verdicts import READY

#: Labels of nfd-master's pods in NFD's own manifests, in those of this collection, and in its Helm chart.
_MASTERS = ("app=nfd-master", "app.kubernetes.io/name=node-feature-discovery,role=master")
#: If pods cannot be created, the Deployment's status usually has the cause with this reason, and events add nothing.
_REFUSED = "FailedCreate"
_NEXT = "check its pods, their events and their logs"


@dataclasses.dataclass(frozen=True)
class Controller:
    """A Deployment of this collection that is not ready. pod: the one with the cause, None if all of its pods are ready."""

    name: str
    namespace: str
    #: From its status: "0 of 1 pods".
    lacking: str
    pod: PodFacts | None

    def __str__(self) -> str:
        return f"Deployment {self.name}: {self.lacking}"

    def moves(self, nodes: c.Mapping[str, NodeFacts]) -> bool:
        """Whether its node is not ready. Kubernetes recreates the pod on another one after five minutes (tolerationSeconds of not-ready and unreachable)."""
        return (
            self.pod is not None and bool(self.pod.node) and not (self.pod.node in nodes and nodes[self.pod.node].ready)
        )


def lacking(client: Client) -> list[Controller]:
    """Needs one request if all are ready. The NFD of another deployment is not judged."""
    selector = ",".join(f"{key}={value}" for key, value in OWNER_LABELS.items())
    found = []
    for item in client.list(client.resource("apps/v1", "Deployment"), label_selector=selector).items:
        ours = parts.role_of(item["spec"]["template"]) in (parts.NFD_MASTER, parts.NFD_GC)
        verdict = workloads.deployment(item) if ours and item["spec"].get("replicas", 1) else READY
        if verdict != READY:
            metadata, labels = item["metadata"], item["spec"]["selector"].get("matchLabels") or {}
            pods = _pods(client, ",".join(f"{key}={value}" for key, value in labels.items()), metadata["namespace"])
            found.append(
                Controller(
                    metadata["name"],
                    metadata["namespace"],
                    verdict.reason,
                    _telling(pod for pod in pods if not pod.ready),
                )
            )
    return sorted(found, key=lambda one: one.name)


def faults(client: Client, controllers: c.Iterable[Controller]) -> list[Fault]:
    """Why each one is not ready, from its pod, or from its owner if it has none."""
    found = []
    for one in controllers:
        why, tail = one.lacking, ""
        try:
            if one.pod is not None:
                why, tail = _cause(client, one.pod)
            elif _REFUSED not in one.lacking and (
                event := causes.event_of_replica_sets(client, f"{one.name}-", one.namespace)
            ):
                why = f"{one.lacking}; {event}"
        except ApiError as error:
            why = f"{one.lacking}; the cause could not be read: {error}"
        said = trouble.of_pod(one.pod) if one.pod is not None else None
        next_step = hints.next_step(tail) or hints.next_step(why) or (said.next_step if said else _NEXT)
        line = hints.telling(tail)
        found.append(
            Fault(
                one.name,
                f"Deployment {one.namespace}/{one.name}",
                why + (f"; its log: {line}" if line else ""),
                next_step,
            )
        )
    return found


def master(client: Client) -> tuple[str, str]:
    """(the problem of nfd-master of any deployment, the tail of its log)."""
    try:
        found = (
            _telling(pod for pod in _pods(client, selector) if pod.role == parts.NFD_MASTER) for selector in _MASTERS
        )
        pod = next((pod for pod in found if pod is not None), None)
        if pod is None:
            event = causes.event_of_replica_sets(client, "nfd-master")
            return f"the cluster has no pod of nfd-master{': ' if event else ''}{event}", ""
        why, tail = _cause(client, pod)
        return f"nfd-master: {why}", tail
    except HwaccelError as error:
        return f"nfd-master could not be read: {error}", ""


def _pods(client: Client, selector: str, namespace: str = "") -> list[PodFacts]:
    return [
        reduce_pod(item) for item in client.list(client.resource("v1", "Pod"), namespace, label_selector=selector).items
    ]


def _telling(pods: t.Iterable[PodFacts]) -> PodFacts | None:
    return max(pods, key=lambda pod: (not pod.deleting, not pod.ready, pod.created), default=None)


def _cause(client: Client, pod: PodFacts) -> tuple[str, str]:
    """(the problem of a pod, the tail of its log, "" if no container has run)."""
    found = trouble.of_pod(pod)
    why = found.reason if found else "it is running" if pod.ready else "it is not ready"
    ran = next(
        (
            item.name
            for item in (*pod.inits, *pod.containers)
            if item.restarts or item.state in ("running", "terminated")
        ),
        "",
    )
    explained = ran or pod.unschedulable or any(item.message for item in (*pod.inits, *pod.containers))
    event = "" if explained else causes.event_of_pod(client, pod)
    return f"{why}; {event}" if event else why, causes.log_tail(client, pod, ran)
