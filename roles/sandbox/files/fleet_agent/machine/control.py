# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events on a machine outside of the cluster's API, such as a killed process. One JSON object for each line in DIR/control.jsonl.

{"kill": {"node": "training-0", "container": "nvidia-driver-ctr", "pod_selector": {"app": "driver"}, "signal": "KILL"}}
{"kubelet_restart": {"node": "training-0"}}
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from fleet_agent.loop import Killed, Terminated


class ControlFile:
    """Reads appended lines. Lines that exist at the start are skipped."""

    def __init__(self, agent: Any, path: str) -> None:
        self._agent, self._path = agent, path
        self._offset = os.path.getsize(path) if os.path.exists(path) else 0

    def look(self) -> None:
        try:
            size = os.path.getsize(self._path)
        except OSError:
            self._offset = 0
            return
        if size < self._offset:
            self._offset = 0
        if size == self._offset:
            return
        with open(self._path, "rb") as stream:
            stream.seek(self._offset)
            data = stream.read()
        complete = data.rfind(b"\n") + 1
        self._offset += complete
        for line in data[:complete].splitlines():
            if line.strip():
                self._carry_out(line)

    def _carry_out(self, line: bytes) -> None:
        try:
            order = json.loads(line)
            for action, parameters in order.items():
                {"kill": self._kill, "kubelet_restart": self._kubelet_restart}[action](parameters)
        except (ValueError, KeyError, AttributeError) as error:
            print(f"control: cannot carry out {line!r}: {error!r}", file=sys.stderr, flush=True)

    def _kill(self, request: dict[str, Any]) -> None:
        kubelet = self._agent.nodes[request["node"]]
        signal = Terminated if str(request.get("signal", "KILL")).upper() in ("TERM", "SIGTERM") else Killed
        selector = request.get("pod_selector") or {}
        if isinstance(selector, str):
            selector = dict(part.split("=", 1) for part in selector.split(","))
        hit = 0
        for pod in list(kubelet.pods.values()):
            if any(pod.labels.get(k) != v for k, v in selector.items()) or request.get("pod", pod.name) != pod.name:
                continue
            for container in pod.containers:
                if request.get("container", container.name) == container.name and "running" in container.state:
                    container.signal(signal())
                    hit += 1
        print(f"control: {signal.__name__} to {hit} container(s) on {request['node']}", file=sys.stderr, flush=True)

    def _kubelet_restart(self, request: dict[str, Any]) -> None:
        kubelet = self._agent.nodes[request["node"]]
        self._agent.loop.later(kubelet.clock.real(kubelet.clock.delay("kubelet_restart")), kubelet.restarted)
