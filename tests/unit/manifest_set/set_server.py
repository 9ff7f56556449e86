# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Desired sets of the runs in schedules.py, and their cluster in memory."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import DEFAULT_RECORD_NAMESPACE
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import PART_OF, Record, from_objects
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import DELETED_AT, Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import DAEMON_SET
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request

NAME, SPACE = "s", "n"


def config_map(name: str, value: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": SPACE},
        "data": {"v": value},
    }


def daemon_set(value: str) -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": SPACE},
        "spec": {"v": value},
    }


SECRETS = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": SPACE}, "data": {"v": "MQ=="}}
#: Desired objects of runs; None is state: absent.
ASKS: dict[str, list[Obj] | None] = {
    "first": [config_map("a", "1"), daemon_set("1")],
    "second": [config_map("a", "2"), config_map("b", "2")],
    "third": [config_map("a", "3"), daemon_set("3"), SECRETS],
    "absent": None,
}


class Server(Cluster):
    """A cluster where a DaemonSet still exists for a while after its deletion, and is ready a while after its creation."""

    def __init__(self, now: c.Callable[[], float]) -> None:
        super().__init__()
        self._now = now
        self.linger = self.ready_after = 0.0
        self.due: dict[tuple[str, str, str], float] = {}
        self.observed_at: dict[str, float] = {}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.put({"kind": "Namespace", "metadata": {"name": DEFAULT_RECORD_NAMESPACE}})
        self.put({"kind": "Node", "metadata": {"name": "node"}, "status": ready})

    def tick(self) -> None:
        for place, when in list(self.due.items()):
            if when <= self._now():
                del self.due[place]
                self.objects.pop(place, None)
        for (plural, _space, _name), obj in self.objects.items():
            if (
                plural == DAEMON_SET.plural
                and self.observed_at.setdefault(obj["metadata"]["uid"], self._now()) + self.ready_after <= self._now()
            ):
                obj["status"] = {
                    "desiredNumberScheduled": 1,
                    "numberAvailable": 1,
                    "numberReady": 1,
                    "updatedNumberScheduled": 1,
                }

    def end(self, request: Request) -> None:
        if request.resource != DAEMON_SET or not self.linger:
            super().end(request)
        elif "deletionTimestamp" not in (obj := self.objects[request.place])["metadata"]:
            self.keep(request.place, obj | {"metadata": obj["metadata"] | {"deletionTimestamp": DELETED_AT}})
            self.due[request.place] = self._now() + self.linger

    def records(self) -> list[Record]:
        found = [self.objects.get((plural, DEFAULT_RECORD_NAMESPACE, NAME)) for plural in ("secrets", "configmaps")]
        return [from_objects(obj, ()) for obj in found if obj is not None]

    def members(self) -> dict[ObjectKey, Obj]:
        """Objects of the set, without those that are being deleted."""
        return {
            ObjectKey.of(obj): obj
            for place, obj in self.objects.items()
            if PART_OF in (obj["metadata"].get("labels") or {}) and "deletionTimestamp" not in obj["metadata"]
        }


def _place_of(verb: str, args: tuple[t.Any, ...]) -> tuple[str, str, str]:
    """Plural, namespace and name of the object that a request writes."""
    if verb in ("delete", "patch"):
        resource, name, namespace = (*args, "")[:3]
        return resource.plural, namespace, name
    obj, resource = args
    return resource.plural, obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def is_record(verb: str, args: tuple[t.Any, ...]) -> bool:
    return _place_of(verb, args)[1:] == (DEFAULT_RECORD_NAMESPACE, NAME)


def is_member(verb: str, args: tuple[t.Any, ...]) -> bool:
    return _place_of(verb, args)[1] == SPACE
