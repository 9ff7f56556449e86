# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes changes of nodes in the API: labels, taints, conditions, resources, and the progress of each pod.

This serves to compare two nodes with the same actions: each property has to pass the same states in the same order.
"""

from __future__ import annotations

import collections.abc as c
import threading
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.jobs import RUN_LABEL
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD

#: Prefixes of the stack's labels, without those of the administrator. Only their presence is compared, because values differ between machines.
_PREFIXES = ("feature.node.kubernetes.io/", "nvidia.com/", "hwaccel.gpu/")
#: Labels that contain times.
_TIMES = ("nvidia.com/gfd.timestamp",)
#: Seconds between two observations.
_PERIOD = 0.1

Key = tuple[str, ...]


def within(part: c.Iterable[str], whole: c.Iterable[str]) -> bool:
    """Whether the states of one are among those of the other, in the same order."""
    rest = iter(whole)
    return all(state in rest for state in part)


def states_of_node(node: dict[str, t.Any] | None) -> dict[Key, str]:
    """States of a Node's properties; {} if it does not exist."""
    if node is None:
        return {}
    metadata, status = node["metadata"], node.get("status", {})
    states: dict[Key, str] = {}
    for key in metadata.get("labels") or ():
        if key.startswith(_PREFIXES) and key not in _TIMES:
            states["label", key] = "present"
    for taint in node["spec"].get("taints") or ():
        states["taint", taint["key"]] = taint["effect"]
    for condition in status.get("conditions") or ():
        states["condition", condition["type"]] = condition["status"]
    for kind in ("capacity", "allocatable"):
        states |= {(kind, name): amount for name, amount in (status.get(kind) or {}).items() if "/" in name}
    return states


def state_of_pod(pod: dict[str, t.Any]) -> str:
    """Progress of a pod: its present init container, or its phase and whether it is ready."""
    status = pod.get("status", {})
    if pod["metadata"].get("deletionTimestamp"):
        return "terminating"
    for one in status.get("initContainerStatuses") or ():
        ended = one.get("state", {}).get("terminated")
        if not ended or ended["exitCode"]:
            return f"at {one['name']}"
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions") or ()
    )
    return f"{status.get('phase', 'Pending')}{', ready' if ready else ''}"


def _name(metadata: dict[str, t.Any]) -> str:
    """A name that does not depend on the node, although pods of runs, such as those of validation, have unique names."""
    labels = metadata.get("labels") or {}
    return str(labels.get("app") or ("of a run" if RUN_LABEL in labels else metadata["name"]))


class Observer:
    """Observes nodes until the end of its context: `with Observer(kubeconfig, names) as observer`."""

    def __init__(self, kubeconfig: str, names: c.Sequence[str]) -> None:
        self._client: Client = connect({"kubeconfig": kubeconfig})
        self._names = tuple(names)
        self._now: dict[str, dict[Key, str]] = {name: {} for name in names}
        #: States by node and property, "" for a missing one.
        self._observed: dict[str, dict[Key, list[str]]] = {name: {} for name in names}
        self._changed = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._observe, daemon=True)

    def __enter__(self) -> Observer:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def now(self, name: str) -> dict[Key, str]:
        return dict(self._now[name])

    def quiet(self) -> float:
        """Seconds since the last change."""
        return time.monotonic() - self._changed

    def forget(self) -> None:
        """Starts new sequences with the present states."""
        for name in self._names:
            self._observed[name] = {key: [value] for key, value in self._now[name].items()}

    def sequences(self, name: str) -> dict[Key, list[str]]:
        """States of each property in their order since `forget`."""
        return {key: list(states) for key, states in self._observed[name].items()}

    def _observe(self) -> None:
        while not self._stop.wait(_PERIOD):
            nodes = {item["metadata"]["name"]: item for item in self._client.list(NODE).items}
            for name in self._names:
                self._record(name, states_of_node(nodes.get(name)) | self._pods(name))

    def _pods(self, name: str) -> dict[Key, str]:
        """States of pods. Of several pods of one app, for example during a replacement, the newest counts."""
        pods = self._client.list(POD, field_selector=f"spec.nodeName={name}").items
        pods.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
        return {("pod", _name(pod["metadata"])): state_of_pod(pod) for pod in pods}

    def _record(self, name: str, states: dict[Key, str]) -> None:
        before = self._now[name]
        for key in before.keys() | states.keys():
            value = states.get(key, "")
            if before.get(key, "") != value:
                self._observed[name].setdefault(key, [before.get(key, "")]).append(value)
                self._changed = time.monotonic()
        self._now[name] = states
