# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored objects by their key, one counter of resource versions, and the history that watches read."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Event
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import IDENTITY, Obj, copied

#: Plural, namespace (can be ""), name: an object has one key for all API versions of its kind.
Place = tuple[str, str, str]


class Store:
    """Stored objects by key. A change that a test makes here directly is one that no client can make, and it creates no watch event."""

    def __init__(self, kinds: c.Iterable[Resource]) -> None:
        #: The resources of discovery, preferred versions first.
        self.kinds = list(kinds)
        self.objects: dict[Place, Obj] = {}
        self.version = 100
        self.history: list[tuple[int, Place, Event]] = []

    def put(self, obj: Obj) -> None:
        """Create or change an object like another client. The request is never denied, and not recorded."""
        resource = self.kind(obj["kind"])
        obj = {"apiVersion": resource.api_version, **copied(obj)}
        place = place_of(resource, obj)
        assert bool(place[1]) is resource.namespaced, f"{obj['kind']} {place[2]}: namespace {place[1]!r}"
        before = self.objects.get(place)
        obj["metadata"].setdefault("uid", before["metadata"]["uid"] if before else self.new_uid())
        self.keep(place, obj)

    def show(self, obj: Obj) -> None:
        """Put the object like a controller, but only if something differs."""
        place = place_of(self.kind(obj["kind"]), obj)
        known = self.objects.get(place)
        if known is None or not _has_all(known, obj):
            self.put(obj)

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """Remove the object like another client, and without delay."""
        self.drop(self.place(kind, name, namespace))

    def stored(self, kind: str, name: str, namespace: str = "") -> Obj:
        return self.objects[self.place(kind, name, namespace)]

    def all_of(self, kind: str, namespace: str = "") -> list[Obj]:
        """Objects of a namespace, or of all namespaces, in the order of their keys, like the server lists them."""
        plural = self.kind(kind).plural
        return [
            obj for place, obj in sorted(self.objects.items()) if place[0] == plural and namespace in ("", place[1])
        ]

    def place(self, kind: str, name: str, namespace: str = "") -> Place:
        """The key of the only object of that name. Raises ValueError if there is none, or more than one."""
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
        """The last event has the version of the deletion, like on the server."""
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
        """Raises SelectorError if one of the selectors cannot be read."""
        found = [
            obj
            for place, obj in sorted(self.objects.items())
            if place[0] == resource.plural and namespace in ("", place[1])
        ]
        if labels:
            parsed = selectors.parse(labels)
            found = [obj for obj in found if selectors.matches(parsed, obj["metadata"].get("labels") or {})]
        return [obj for obj in found if has_fields(obj, fields)] if fields else found


def place_of(resource: Resource, obj: Obj) -> Place:
    return resource.plural, obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def metadata_of(obj: Obj) -> Obj:
    """The object like the server returns it as PartialObjectMetadata."""
    return {key: obj[key] for key in (*IDENTITY, "metadata")}


def _has_all(known: Obj, obj: Obj) -> bool:
    """Whether an object has all fields of another one with the same values, except for the version."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return all(known["metadata"].get(key) == value for key, value in metadata.items()) and all(
        known.get(key) == value for key, value in obj.items() if key != "metadata"
    )


def has_fields(obj: Obj, selector: str) -> bool:
    for requirement in selector.split(","):
        path, _equals, value = requirement.replace("==", "=").partition("=")
        differs = path.endswith("!")
        found: t.Any = obj
        for key in path.removesuffix("!").split("."):
            found = (found or {}).get(key)
        if ((found or "") == value) is differs:
            return False
    return True
