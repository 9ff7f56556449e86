# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be seen of nodes through the API, as it changes: labels, taints, conditions, resources, and how far each pod is.

Two nodes that are treated alike are compared by it: each thing that can be seen goes through the same states in the same order.
"""

from __future__ import annotations

import collections.abc as c
import threading
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.jobs import RUN_LABEL
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD

#: Labels of the stack; others are the administrator's. What they say is another matter: two machines are not the same.
_PREFIXES = ("feature.node.kubernetes.io/", "nvidia.com/", "hwaccel.gpu/")
#: Says when, not what.
_TIMES = ("nvidia.com/gfd.timestamp",)
#: Seconds between two looks.
_PERIOD = 0.1

Key = tuple[str, ...]


def within(part: c.Iterable[str], whole: c.Iterable[str]) -> bool:
    """Whether the states of one are among those of the other, in the same order."""
    rest = iter(whole)
    return all(state in rest for state in part)


def states_of_node(node: dict[str, t.Any] | None) -> dict[Key, str]:
    """What a Node shows; {} of one that is not there."""
    if node is None:
        return {}
    metadata, status = node["metadata"], node.get("status", {})
    found: dict[Key, str] = {}
    for key in metadata.get("labels") or ():
        if key.startswith(_PREFIXES) and key not in _TIMES:
            found["label", key] = "there"
    for taint in node["spec"].get("taints") or ():
        found["taint", taint["key"]] = taint["effect"]
    for condition in status.get("conditions") or ():
        found["condition", condition["type"]] = condition["status"]
    for kind in ("capacity", "allocatable"):
        found |= {(kind, name): amount for name, amount in (status.get(kind) or {}).items() if "/" in name}
    return found


def state_of_pod(pod: dict[str, t.Any]) -> str:
    """How far a pod is: the init container that it is at, or its phase and whether it is ready."""
    status = pod.get("status", {})
    if pod["metadata"].get("deletionTimestamp"):
        return "leaving"
    for one in status.get("initContainerStatuses") or ():
        ended = one.get("state", {}).get("terminated")
        if not ended or ended["exitCode"]:
            return f"at {one['name']}"
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions") or ()
    )
    return f"{status.get('phase', 'Pending')}{', ready' if ready else ''}"


def _called(metadata: dict[str, t.Any]) -> str:
    """The same on each node: pods of runs, such as validation's, have names of their own."""
    labels = metadata.get("labels") or {}
    return str(labels.get("app") or ("of a run" if RUN_LABEL in labels else metadata["name"]))


class Observer:
    """Looks at some nodes until it is stopped: `with Observer(kubeconfig, names) as seen`."""

    def __init__(self, kubeconfig: str, names: c.Sequence[str]) -> None:
        self._client: Client = connect({"kubeconfig": kubeconfig})
        self._names = tuple(names)
        self._now: dict[str, dict[Key, str]] = {name: {} for name in names}
        #: By node and thing, "" where it is not there.
        self._seen: dict[str, dict[Key, list[str]]] = {name: {} for name in names}
        self._changed = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Observer:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def now(self, name: str) -> dict[Key, str]:
        return dict(self._now[name])

    def quiet(self) -> float:
        """Seconds since anything has changed."""
        return time.monotonic() - self._changed

    def forget(self) -> None:
        """Begin anew from what is there now."""
        for name in self._names:
            self._seen[name] = {key: [value] for key, value in self._now[name].items()}

    def sequences(self, name: str) -> dict[Key, list[str]]:
        """States of each thing in their order since `forget`."""
        return {key: list(states) for key, states in self._seen[name].items()}

    def _look(self) -> None:
        while not self._stop.wait(_PERIOD):
            nodes = {item["metadata"]["name"]: item for item in self._client.list(NODE).items}
            for name in self._names:
                self._take(name, states_of_node(nodes.get(name)) | self._pods(name))

    def _pods(self, name: str) -> dict[Key, str]:
        """Of several pods of one application, as while one replaces another, the youngest counts."""
        pods = self._client.list(POD, field_selector=f"spec.nodeName={name}").items
        pods.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
        return {("pod", _called(pod["metadata"])): state_of_pod(pod) for pod in pods}

    def _take(self, name: str, states: dict[Key, str]) -> None:
        before = self._now[name]
        for key in before.keys() | states.keys():
            value = states.get(key, "")
            if before.get(key, "") != value:
                self._seen[name].setdefault(key, [before.get(key, "")]).append(value)
                self._changed = time.monotonic()
        self._now[name] = states
