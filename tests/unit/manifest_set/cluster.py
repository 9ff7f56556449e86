# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory for the engine's unit tests: just enough of server-side apply to own, lose and contest fields.

Maps are owned leaf by leaf, lists as a whole. The real semantics are the live tests' matter.
"""

from __future__ import annotations

import collections.abc as c
import copy
import itertools
import threading
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Answer, Page
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Conflict, NotFound, UnknownKind
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource

Obj = dict[str, t.Any]
KINDS = (
    Resource("", "v1", "ConfigMap", "configmaps", True, frozenset(("list",))),
    Resource("", "v1", "Secret", "secrets", True, frozenset(("list",))),
    Resource("", "v1", "Namespace", "namespaces", False, frozenset(("list",))),
    Resource("", "v1", "Node", "nodes", False, frozenset(("list",))),
    Resource("apps", "v1", "DaemonSet", "daemonsets", True, frozenset(("list",))),
    Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False, frozenset(("list",))),
    Resource(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        False,
        frozenset(("list",)),
    ),
)
_IDENTITY = ("apiVersion", "kind")


class Cluster:
    """`_model.client.Client` over a dictionary. writes and requests are what a test counts; forbidden is {(verb, plural)}."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Obj] = {}
        self.writes: list[str] = []
        self.requests = 0
        self.forbidden: set[tuple[str, str]] = set()
        self._counter = itertools.count(1)
        self._lock = threading.RLock()
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, KINDS[2])
        self.writes.clear()

    def before_repeats(self, look: c.Callable[[], None]) -> None:
        """No answer gets lost here."""

    def resource(self, api_version: str, kind: str) -> Resource:
        for resource in KINDS:
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        raise UnknownKind(f"{api_version} {kind}")

    def resource_by_group(self, group: str, kind: str) -> Resource:
        return self.resource(f"{group}/v1" if group else "v1", kind)

    def all_resources(self) -> list[Resource]:
        return list(KINDS)

    def forget_discovery(self) -> None:
        return

    def get(self, resource: Resource, name: str, namespace: str = "", *, metadata_only: bool = False) -> Obj:
        with self._lock:
            self.requests += 1
            obj = self._find(resource, name, namespace)
            return copy.deepcopy(_metadata(obj) if metadata_only else obj)

    def pages(self, resource: Resource, namespace: str = "", **options: t.Any) -> c.Iterator[Page]:
        yield self.list(resource, namespace, **options)

    def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> Page:
        with self._lock:
            self.requests += 1
            key, _separator, value = label_selector.partition("=")
            found = [
                obj
                for place, obj in sorted(self.objects.items())
                if place[0] == resource.plural and namespace in ("", place[1])
            ]
            found = [obj for obj in found if not key or (obj["metadata"].get("labels") or {}).get(key) == value]
            return Page(
                [copy.deepcopy(_metadata(obj) if metadata_only else obj) for obj in found], str(next(self._counter))
            )

    def apply(
        self, obj: Obj, resource: Resource, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> Answer:
        with self._lock:
            self.requests += 1
            place = _place(resource, obj)
            self._namespace_exists(resource, place)
            before = self.objects.get(place)
            uid = obj["metadata"].get("uid")
            if uid and (before is None or before["metadata"]["uid"] != uid):
                raise Conflict("uid mismatch")
            after = self._applied(obj, before, field_manager, force)
            if before is not None and _without_version(after) == _without_version(before):
                return Answer(copy.deepcopy(before))
            if not dry_run:
                self._store("apply", place, after)
            return Answer(copy.deepcopy(after))

    def create(self, obj: Obj, resource: Resource, *, field_manager: str = "", dry_run: bool = False) -> Answer:
        with self._lock:
            self.requests += 1
            place = _place(resource, obj)
            self._namespace_exists(resource, place)
            if place in self.objects:
                raise Conflict("already exists", body={"reason": "AlreadyExists"})
            made = copy.deepcopy(obj)
            made["metadata"] |= {"uid": f"uid-{next(self._counter)}"}
            made["metadata"]["managedFields"] = [_entry(field_manager or "test", "Update", _leaves(obj))]
            if not dry_run:
                self._store("create", place, made)
            return Answer(copy.deepcopy(made))

    def replace(self, obj: Obj, resource: Resource, *, field_manager: str = "", dry_run: bool = False) -> Answer:
        with self._lock:
            self.requests += 1
            before = self._find(resource, obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
            if (
                obj["metadata"].get("resourceVersion", before["metadata"]["resourceVersion"])
                != before["metadata"]["resourceVersion"]
            ):
                raise Conflict("the object has been modified")
            return self._updated("replace", resource, obj, before, field_manager)

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: t.Any,
        *,
        field_manager: str = "test",
        **_options: t.Any,
    ) -> Answer:
        with self._lock:
            self.requests += 1
            before = self._find(resource, name, namespace)
            from ansible_collections.hwaccel.gpu.plugins.module_utils._model.patches import merge

            return self._updated("patch", resource, merge(before, patch), before, field_manager)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
        dry_run: bool = False,
    ) -> None:
        with self._lock:
            self.requests += 1
            obj = self._find(resource, name, namespace)
            if uid and obj["metadata"]["uid"] != uid:
                raise Conflict("the UID in the precondition does not match")
            if resource_version and obj["metadata"]["resourceVersion"] != resource_version:
                raise Conflict("the ResourceVersion in the precondition does not match")
            if not dry_run:
                self.writes.append(f"delete {resource.kind} {name}")
                del self.objects[_place(resource, obj)]

    def allowed(
        self, verb: str, resource: Resource, namespace: str = "", name: str = "", subresource: str = ""
    ) -> bool:
        return (verb, resource.plural) not in self.forbidden

    def _find(self, resource: Resource, name: str, namespace: str) -> Obj:
        try:
            return self.objects[resource.plural, namespace, name]
        except KeyError:
            raise NotFound(f"{resource.plural} {namespace}/{name} not found") from None

    def _namespace_exists(self, resource: Resource, place: tuple[str, str, str]) -> None:
        if resource.namespaced and ("namespaces", "", place[1]) not in self.objects:
            raise NotFound(f'namespaces "{place[1]}" not found')

    def _store(self, verb: str, place: tuple[str, str, str], obj: Obj) -> None:
        obj["metadata"]["resourceVersion"] = str(next(self._counter))
        self.objects[place] = obj
        self.writes.append(f"{verb} {obj['kind']} {place[2]}")

    def _updated(self, verb: str, resource: Resource, obj: Obj, before: Obj, manager: str) -> Answer:
        after = copy.deepcopy(obj)
        after["metadata"] |= {"uid": before["metadata"]["uid"]}
        old, new = _leaves(before), _leaves(after)
        touched = {path for path in new if old.get(path) != new[path]}
        entries = []
        for entry in before["metadata"]["managedFields"]:
            left = fieldsets.parse(entry["fieldsV1"]) - touched - (old.keys() - new.keys())
            entries += [entry | {"fieldsV1": fieldsets.unparse(left)}] if left else []
        entries += [_entry(manager or "test", "Update", touched)] if touched else []
        after["metadata"]["managedFields"] = entries
        self._store(verb, _place(resource, after), after)
        return Answer(copy.deepcopy(after))

    def _applied(self, ask: Obj, before: Obj | None, manager: str, force: bool) -> Obj:
        asked, old = _leaves(ask), _leaves(before or {})
        entries = list((before or {"metadata": {}})["metadata"].get("managedFields", ()))
        others = [entry for entry in entries if (entry["manager"], entry["operation"]) != (manager, "Apply")]
        mine = fieldsets.of_object(before or {}, manager)
        causes, kept = [], []
        for entry in others:
            owned = fieldsets.parse(entry["fieldsV1"])
            lost = {path for path in owned & asked.keys() if old.get(path) != asked[path]}
            message = f'conflict with "{entry["manager"]}" using v1'
            causes += [
                {"reason": "FieldManagerConflict", "field": f".{fieldsets.text(path)}", "message": message}
                for path in sorted(lost)
            ]
            kept += [entry | {"fieldsV1": fieldsets.unparse(owned - lost)}] if owned - lost else []
        if causes and not force:
            raise Conflict("conflict", body={"details": {"causes": causes}})
        held = fieldsets.union(fieldsets.parse(entry["fieldsV1"]) for entry in kept)
        after = (
            copy.deepcopy(before)
            if before
            else {
                "apiVersion": ask["apiVersion"],
                "kind": ask["kind"],
                "metadata": {"uid": f"uid-{next(self._counter)}"},
            }
        )
        for path in mine - asked.keys() - held:
            fieldsets.without_path(after, path)
        for path, value in asked.items():
            _set(after, path, value)
        for key in ("name", "namespace"):
            if key in ask["metadata"]:
                after["metadata"][key] = ask["metadata"][key]
        after["metadata"]["managedFields"] = [*kept, _entry(manager, "Apply", asked)]
        return after


def _place(resource: Resource, obj: Obj) -> tuple[str, str, str]:
    return resource.plural, obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def _metadata(obj: Obj) -> Obj:
    return {key: obj[key] for key in (*_IDENTITY, "metadata")}


def _without_version(obj: Obj) -> Obj:
    return obj | {"metadata": {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}}


def _entry(manager: str, operation: str, paths: c.Iterable[fieldsets.Path]) -> Obj:
    return {"manager": manager, "operation": operation, "fieldsV1": fieldsets.unparse(frozenset(paths))}


def _leaves(obj: Obj, path: fieldsets.Path = ()) -> dict[fieldsets.Path, t.Any]:
    found: dict[fieldsets.Path, t.Any] = {}
    for key, value in obj.items():
        if not path and key in _IDENTITY:
            continue
        if path == ("f:metadata",) and key not in ("labels", "annotations", "finalizers"):
            continue
        if isinstance(value, dict) and value:
            found |= _leaves(value, (*path, f"f:{key}"))
        else:
            found[(*path, f"f:{key}")] = value
    return found


def _set(obj: Obj, path: fieldsets.Path, value: t.Any) -> None:
    for element in path[:-1]:
        obj = obj.setdefault(element[2:], {})
    obj[path[-1][2:]] = copy.deepcopy(value)
