# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with pods, for tests of draining: evictions with budgets, and fields that know their owner."""

from __future__ import annotations

import collections.abc as c
import copy
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Answer, Page
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    ApiError,
    BudgetRefused,
    Conflict,
    NotFound,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.fake_cluster import FakeCluster, Obj
from ansible_collections.hwaccel.gpu.tests.unit.state.test_draining import DAEMONS, pod

NODE = "gpu-1"


def on_node(made: Obj, node: str = NODE) -> Obj:
    made["spec"]["nodeName"] = node
    return made | {"apiVersion": "v1", "kind": "Pod"}


class DrainCluster(FakeCluster):
    """held: what is said against the eviction of a pod, by its name. ends: whether pods that were told to end are gone at once."""

    def __init__(self, *pods: Obj, ready: bool = True) -> None:
        super().__init__([s.node(NODE, ready=ready)], [on_node(pod("agent", DAEMONS)), *(on_node(one) for one in pods)])
        self.held: dict[str, ApiError] = {}
        self.ends = True
        self.evicted: list[str] = []
        self.tried: list[str] = []
        self.now = 1000.0
        self.on_sleep: c.Callable[[], None] = lambda: None

    @property
    def node(self) -> Obj:
        return self.objects["Node"][NODE]

    @property
    def unschedulable(self) -> bool:
        return bool(self.node["spec"].get("unschedulable"))

    def clock(self, slice_seconds: float | None = None) -> Clock:
        return Clock(
            None if slice_seconds is None else self.now + slice_seconds, lambda: self.now, lambda: self.now, self._sleep
        )

    def set_cordon(self, value: bool | None, manager: str = "kubectl") -> None:
        """As another client does."""
        self._patched({"spec": {"unschedulable": value}}, manager)

    def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> Page:
        assert (resource.kind, field_selector) == ("Pod", f"spec.nodeName={NODE}")
        return Page(
            [copy.deepcopy(one) for one in self.objects["Pod"].values() if one["spec"]["nodeName"] == NODE],
            str(self._version),
        )

    def evict(self, name: str, namespace: str, *, uid: str, dry_run: bool = False) -> None:
        self.tried.append(name)
        if name not in self.objects["Pod"]:
            raise NotFound(f"evicting Pod {namespace}/{name}")
        if self.objects["Pod"][name]["metadata"]["uid"] != uid:
            raise Conflict(f"evicting Pod {namespace}/{name}")
        if name in self.held:
            raise self.held[name]
        if dry_run:
            return
        self.evicted.append(name)
        if self.ends:
            self.remove("Pod", name)
        else:
            self.objects["Pod"][name]["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z"

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: t.Any,
        *,
        patch_type: str = "application/merge-patch+json",
        field_manager: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Answer:
        if error := self.held.get(f"patch {name}"):
            raise error
        if dry_run:
            return Answer(self.node)
        answer = super().patch(resource, name, namespace, patch, patch_type=patch_type, field_manager=field_manager)
        self._own(patch, field_manager)
        return answer

    def _patched(self, patch: Obj, manager: str) -> None:
        guarded = {"metadata": {"resourceVersion": self.node["metadata"]["resourceVersion"]}, **patch}
        super().patch(self.resource("v1", "Node"), NODE, "", guarded)
        self.writes.pop()
        self._own(patch, manager)

    def _own(self, patch: Obj, manager: str) -> None:
        """A field that a patch changes is its manager's and nobody else's."""
        if "unschedulable" not in patch.get("spec", {}):
            return
        fields = {"f:spec": {"f:unschedulable": {}}}
        entries = [{"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}]
        self.node["metadata"]["managedFields"] = entries if self.unschedulable else []

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()


def refused(name: str = "train") -> BudgetRefused:
    return BudgetRefused(
        "evicting a pod", "", f"The disruption budget {name} needs 2 healthy pods and has 2 currently", "wait"
    )
