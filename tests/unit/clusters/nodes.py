# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes and their pods, for gates and drains: watches that run a script, evictions, and time that passes while nothing happens."""

from __future__ import annotations

import collections.abc as c

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import DELETED_AT, Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time

Step = c.Callable[["NodeCluster"], object]


class NodeCluster(Cluster):
    """`script`: one step for each watch. After the last step, time passes (`on_idle`)."""

    def __init__(
        self,
        nodes: c.Iterable[Obj],
        pods: c.Iterable[Obj] = (),
        script: c.Iterable[Step] | None = None,
        on_idle: c.Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(*nodes, *pods)
        self.script = list(script or [])
        self.on_idle = on_idle
        self.on("watch", self._play)

    def _play(self, _request: Request) -> None:
        if self.script:
            self.script.pop(0)(self)
        else:
            self.on_idle()


class DrainCluster(Cluster):
    """One node that is drained. `held`: errors that evictions raise, by the name of the pod. `ends`: whether evicted pods end immediately."""

    def __init__(self, node: Obj, *pods: Obj) -> None:
        super().__init__(node, *pods)
        self.time: Time = Time()
        self.name: str = node["metadata"]["name"]
        self.held: dict[str, ApiError] = {}
        self.ends = True
        self.on("list", self._is_of_the_node)

    @property
    def node(self) -> Obj:
        return self.stored("Node", self.name)

    @property
    def unschedulable(self) -> bool:
        return bool(self.node["spec"].get("unschedulable"))

    @property
    def attempted(self) -> list[str]:
        """Pods of all evictions, including dry runs."""
        return [request.name for request in self.sent("evict")]

    @property
    def evicted(self) -> list[str]:
        return [write.rpartition(" ")[2] for write in self.writes if write.startswith("evict ")]

    def set_cordon(self, value: bool | None, manager: str = "kubectl") -> None:
        """Set or remove a cordon like another client."""
        self.patch_as(manager, "Node", self.name, {"spec": {"unschedulable": value}})

    def admit(self, request: Request) -> None:
        if request.name in self.held:
            raise self.held[request.name]

    def _is_of_the_node(self, request: Request) -> None:
        assert (request.kind, request.selector) == ("Pod", f"spec.nodeName={self.name}")

    def end(self, request: Request) -> None:
        """A pod exists until its containers have ended: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination"""
        if self.ends:
            super().end(request)
        else:
            self.objects[request.place]["metadata"]["deletionTimestamp"] = DELETED_AT
