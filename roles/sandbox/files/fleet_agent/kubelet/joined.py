# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that has joined by itself: another program keeps its Node object, the agent plays its pods and reports its devices."""

from __future__ import annotations

from typing import Any

from fleet_agent.cluster.api import ApiError, Unreachable, node_identity
from fleet_agent.kubelet.node import Kubelet
from fleet_agent.kubelet.readiness import Readiness
from fleet_agent.loop import Call, Process, Sleep

#: Seconds between two looks for a Node that has not joined yet.
_PAUSE = 2.0


class _Reported(Readiness):
    """Conditions that another program reports."""

    @property
    def ready(self) -> bool:
        return True

    def follow(self) -> None:
        pass


class JoinedKubelet(Kubelet):
    """Writes capacity and allocatable of its devices, and nothing else of the Node, which it neither creates nor deletes."""

    owns_node = False

    def __init__(self, agent: Any, spec: Any, number: int) -> None:
        super().__init__(agent, spec, number)
        self.readiness = _Reported(self)

    def _status(self) -> dict[str, Any]:
        devices = self.devices
        return {
            "capacity": {name: str(count) for name, count in devices.capacity.items()},
            "allocatable": {name: str(count) for name, count in devices.allocatable.items()},
        }

    def register(self) -> Process:
        """Waits for the Node."""
        path, identity = f"/api/v1/nodes/{self.name}", node_identity(self.name)
        while True:
            try:
                node = yield Call(lambda: self.api.request("GET", path, identity=identity))
                break
            except (ApiError, Unreachable):
                yield Sleep(_PAUSE)
        self.take_node(node)
        self._started = self.loop.now()
        self.up = True
        self.agent.node_ready(self)
