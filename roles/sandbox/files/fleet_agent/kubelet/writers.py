# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of many nodes: coalesced pod status, and warning events."""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import time
from typing import Any

from fleet_agent.clock import timestamp
from fleet_agent.cluster.api import MERGE, METADATA, ApiError, node_identity
from fleet_agent.kubelet import status


class StatusWriter:
    """At most `width` patches at a time; a pod that changes again while it waits is written once, with its latest state."""

    def __init__(self, agent: Any, width: int = 8) -> None:
        self._agent, self._free = agent, width
        self._pool = concurrent.futures.ThreadPoolExecutor(
            width, "status"
        )  # A separate pool, so that requests of a thousand workers do not delay kubelets.
        self._queue: collections.deque[Any] = collections.deque()
        self.written = 0

    def add(self, pod: Any) -> None:
        if pod.dirty:
            return
        pod.dirty = True
        if not pod.in_flight:
            self._queue.append(pod)
            self._agent.loop.soon(self._pump)

    def _pump(self) -> None:
        while self._free > 0 and self._queue:
            pod = self._queue.popleft()
            pod.dirty = False
            if pod.stopping or pod.kubelet.readiness.silent:
                continue
            body = status.build(pod, timestamp())
            pod.conditions = {c["type"]: c for c in body["conditions"]}
            if body == pod.sent:
                continue
            self._send(pod, body)

    def _send(self, pod: Any, body: dict[str, Any]) -> None:
        self._free -= 1
        pod.in_flight = True
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        patch = {"metadata": {"uid": pod.uid}, "status": body}
        identity = node_identity(pod.kubelet.name)

        def done(_answer: Any, error: BaseException | None) -> None:
            self._free += 1
            pod.in_flight = False
            self.written += 1
            if error is None:
                pod.sent = body
            elif not (isinstance(error, ApiError) and error.code in (404, 409)):
                pod.kubelet.complain(f"status of pod {pod.namespace}/{pod.name}: {error}")
                self._agent.loop.later(1.0, self.add, pod)
            if pod.dirty:
                self._queue.append(pod)
            self._pump()

        self._agent.loop.in_thread(
            lambda: self._agent.api.request("PATCH", path, patch, identity, MERGE, accept=METADATA), done, self._pool
        )


class EventWriter:
    """Warnings of kubelets as Event objects; an event that cannot be written is dropped, as by kubelet."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._numbers = itertools.count(time.time_ns())

    def warn(self, kubelet: Any, pod: Any, reason: str, message: str) -> None:
        now = timestamp()
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "type": "Warning",
            "reason": reason,
            "message": message[:1000],
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": "kubelet", "host": kubelet.name},
            "reportingComponent": "kubelet",
            "reportingInstance": kubelet.name,
            "metadata": {"name": f"{pod.name}.{next(self._numbers):x}", "namespace": pod.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.name,
                "namespace": pod.namespace,
                "uid": pod.uid,
            },
        }
        path = f"/api/v1/namespaces/{pod.namespace}/events"
        self._agent.loop.in_thread(
            lambda: self._agent.api.request("POST", path, event, node_identity(kubelet.name), tries=2),
            lambda _answer, _error: None,
        )
