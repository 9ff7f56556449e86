# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's conditions: those of its kubelet, or of the control plane if kubelet does not report."""

from __future__ import annotations

from typing import Any

from fleet_agent.clock import timestamp
from fleet_agent.cluster.api import AGENT, node_identity
from fleet_agent.loop import Process, Sleep, Task

_QUIET = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_READY = ("True", "KubeletReady", "kubelet is posting ready status")
# kubelet (pkg/kubelet/kubelet.go, updateRuntimeUp) with what containerd answers while no CNI plugin is configured.
_NOT_READY = (
    "False",
    "KubeletNotReady",
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized",
)
# pkg/controller/nodelifecycle/node_lifecycle_controller.go, tryUpdateNodeHealth.
_UNKNOWN = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")


class Readiness:
    """Conditions of one node. The sandbox's controller manager waits a day for a kubelet, because kwok renews all leases, so the agent sets `Unknown`."""

    def __init__(self, kubelet: Any) -> None:
        self._kubelet = kubelet
        self._away = False
        self._reported = ""
        self._since = timestamp()
        self._task: Task | None = None

    @property
    def silent(self) -> bool:
        """The kubelet's process is gone: it neither reports nor starts anything."""
        return bool(self._kubelet.agent.faults.kubelet_gone(self._kubelet.host.spec))

    @property
    def ready(self) -> bool:
        """The last reported state."""
        return self._reported == _READY[0]

    def _ready(self) -> tuple[str, str, str]:
        if self.silent:
            return _UNKNOWN
        return _NOT_READY if self._away or self._kubelet.agent.faults.not_ready(self._kubelet.host.spec) else _READY

    def conditions(self) -> list[dict[str, Any]]:
        """The current conditions, for the next write."""
        ready, now = self._ready(), timestamp()
        if ready[0] != self._reported:
            self._reported, self._since = ready[0], now
        rows = [
            (kind, *(ready if ready is _UNKNOWN else ("False", reason, message))) for kind, reason, message in _QUIET
        ] + [("Ready", *ready)]
        return [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": self._since if kind == "Ready" else now,
            }
            for kind, status, reason, message in rows
        ]

    def follow(self) -> None:
        """Reports changes, and continues while conditions change by themselves."""
        if self._task is None or self._task.done:
            self._task = self._kubelet.loop.spawn(self._follow())

    def _follow(self) -> Process:
        kubelet, faults = self._kubelet, self._kubelet.agent.faults
        while True:
            if self.silent and self._reported != _UNKNOWN[0]:
                yield Sleep(kubelet.clock.delay("node_monitor_grace"))
            if self._ready()[0] != self._reported:
                identity = AGENT if self.silent else node_identity(kubelet.name)
                yield from kubelet.patch_status({"conditions": self.conditions()}, identity)
                if self.ready:
                    kubelet.ready_again()
            elif faults.flapping(kubelet.host.spec):
                yield Sleep(kubelet.clock.delay("flap"))
                self._away = not self._away and faults.flapping(kubelet.host.spec)
            elif self._away:
                self._away = False
            else:
                return
