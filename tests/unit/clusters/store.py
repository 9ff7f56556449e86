# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is stored: objects by their place, one counter of resource versions, and the history that watches read."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Event
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import IDENTITY, Obj, copied

#: plural, namespace ("" where there is none), name: an object has one place, in whichever version of its kind it is written.
Place = tuple[str, str, str]


class Store:
    """Objects by place, as they are stored: a test that changes one here does what no client can do, and no watch hears of it."""

    def __init__(self, kinds: c.Iterable[Resource]) -> None:
        #: The resources that discovery tells, those that are preferred first.
        self.kinds = list(kinds)
        self.objects: dict[Place, Obj] = {}
        self.version = 100
        self.history: list[tuple[int, Place, Event]] = []

    def put(self, obj: Obj) -> None:
        """Create or change, as another client would: nothing is refused, and nothing of it is logged."""
        resource = self.kind(obj["kind"])
        obj = {"apiVersion": resource.api_version, **copied(obj)}
        place = place_of(resource, obj)
        assert bool(place[1]) is resource.namespaced, f"{obj['kind']} {place[2]}: namespace {place[1]!r}"
        before = self.objects.get(place)
        obj["metadata"].setdefault("uid", before["metadata"]["uid"] if before else self.new_uid())
        self.keep(place, obj)

    def show(self, obj: Obj) -> None:
        """Put where something differs from what is there, as a controller does."""
        place = place_of(self.kind(obj["kind"]), obj)
        known = self.objects.get(place)
        if known is None or not _has_all(known, obj):
            self.put(obj)

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """As another client would, and without any delay."""
        self.drop(self.place(kind, name, namespace))

    def stored(self, kind: str, name: str, namespace: str = "") -> Obj:
        return self.objects[self.place(kind, name, namespace)]

    def all_of(self, kind: str, namespace: str = "") -> list[Obj]:
        """Of all namespaces where none is named, in the order of their keys, as the server lists them."""
        plural = self.kind(kind).plural
        return [
            obj for place, obj in sorted(self.objects.items()) if place[0] == plural and namespace in ("", place[1])
        ]

    def place(self, kind: str, name: str, namespace: str = "") -> Place:
        """Of the one object of that name. Raises ValueError where there is none, or more than one."""
        plural = self.kind(kind).plural
        (found,) = (
            place for place in self.objects if (place[0], place[2]) == (plural, name) and namespace in ("", place[1])
        )
        return found

    def kind(self, kind: str) -> Resource:
        return next(resource for resource in self.kinds if resource.kind == kind)

    def new_uid(self) -> str:
        self.version += 1
        return f"uid-{self.version}"

    def keep(self, place: Place, obj: Obj) -> None:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        event = Event("MODIFIED" if place in self.objects else "ADDED", obj)
        self.objects[place] = obj
        self.history.append((self.version, place, event))

    def drop(self, place: Place) -> None:
        """Its last event bears the version of its deletion, as the server's does."""
        self.version += 1
        obj = self.objects.pop(place)
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, place, Event("DELETED", obj)))

    def find(self, resource: Resource, name: str, namespace: str) -> Obj:
        try:
            return self.objects[resource.plural, namespace, name]
        except KeyError:
            raise NotFound(f"{resource.plural} {namespace}/{name} not found") from None

    def select(self, resource: Resource, namespace: str, labels: str, fields: str) -> list[Obj]:
        """Raises SelectorError where one of the selectors cannot be read."""
        found = [
            obj
            for place, obj in sorted(self.objects.items())
            if place[0] == resource.plural and namespace in ("", place[1])
        ]
        if labels:
            parsed = selectors.parse(labels)
            found = [obj for obj in found if selectors.matches(parsed, obj["metadata"].get("labels") or {})]
        return [obj for obj in found if _has_fields(obj, fields)] if fields else found


def place_of(resource: Resource, obj: Obj) -> Place:
    return resource.plural, obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def metadata_of(obj: Obj) -> Obj:
    """As the server answers who asks for a PartialObjectMetadata."""
    return {key: obj[key] for key in (*IDENTITY, "metadata")}


def _has_all(known: Obj, obj: Obj) -> bool:
    """Whether an object has all fields of another one with the same values, but for its version."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return all(known["metadata"].get(key) == value for key, value in metadata.items()) and all(
        known.get(key) == value for key, value in obj.items() if key != "metadata"
    )


def _has_fields(obj: Obj, selector: str) -> bool:
    for requirement in selector.split(","):
        path, _equals, value = requirement.replace("==", "=").partition("=")
        differs = path.endswith("!")
        found: t.Any = obj
        for key in path.removesuffix("!").split("."):
            found = (found or {}).get(key)
        if ((found or "") == value) is differs:
            return False
    return True
