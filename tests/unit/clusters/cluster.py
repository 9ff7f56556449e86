# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory for unit tests of all code that sends requests to an API server through `_model.client.Client`.

Start reading at `Cluster`: it behaves like the real API server as far as tests need it; behavior that is not obvious cites the Kubernetes
documentation. `store.Store` has the objects: a test adds and changes them, like other clients and controllers do. A test in which a request
fails, or something else happens at the same time, uses `Cluster.fail` and `Cluster.on`. `times.Time` is the common clock.

Clusters with controllers are based on it: `workloads` (deletions that wait for pods), `jobs` (Jobs and their pods), `nodes` (watches that run a script,
evictions). A subclass for one area only is in the folder of its tests. `rest` accepts requests by path, like the fleet agent
sends them. Nothing here imports a test.
"""

from __future__ import annotations

import collections.abc as c
import threading
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import patches
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Answer, Event, Page
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Conflict,
    Forbidden,
    NotFound,
    UnknownKind,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.unit.clusters import ownership
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import KINDS, NAMESPACE, NODE, POD
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj, copied
from ansible_collections.hwaccel.gpu.tests.unit.clusters.printed import printed
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import WRITES, Hook, Request, failing
from ansible_collections.hwaccel.gpu.tests.unit.clusters.store import Place, Store, has_fields, metadata_of, place_of
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time

#: The deletionTimestamp of objects that still exist.
DELETED_AT = "2026-01-01T00:00:00Z"


class Cluster(Store):
    """`requests`: all requests, including dry runs. `writes`: `verb Kind name` of those that changed something.

    `forbidden`: {(verb, resource)} that RBAC denies. `reviews`: (verb, resource, namespace) of access reviews. `before` and `after`: hooks of each
    request; `on` and `fail` add to them. `time`: the server's clock, None if its responses have no date.
    """

    where, source = "https://api:6443", "here"

    def __init__(self, *objects: Obj, kinds: c.Iterable[Resource] = KINDS, time: Time | None = None) -> None:
        super().__init__(kinds)
        self.requests: list[Request] = []
        self.writes: list[str] = []
        #: Name and patch of each applied patch.
        self.patched: list[tuple[str, t.Any]] = []
        self.forbidden: set[tuple[str, str]] = set()
        self.reviews: list[tuple[str, str, str]] = []
        self.before: list[c.Callable[[Request], object]] = []
        self.after: list[c.Callable[[Request], object]] = []
        #: Patches of these must have a resourceVersion, because the taints of a Node are a list, which other clients write too.
        self.guarded: tuple[Resource, ...] = (NODE,)
        self.git_version = "v1.36.4"
        self.page_size = 500
        self.time = time
        self._lock = threading.RLock()
        for obj in ({"kind": "Namespace", "metadata": {"name": "n"}}, *objects):
            self.put(obj)

    def on(self, verb: str, call: c.Callable[[Request], object], *, after: bool = False, **which: t.Any) -> Hook:
        """Add a hook that is called for each request of a verb ("" is any, `write` any that writes), before or after it. `which`: fields of `Hook`."""
        verbs = WRITES if verb == "write" else (verb,) if verb else ()
        hook = Hook(call, verbs, **which)
        (self.after if after else self.before).append(hook)
        return hook

    def fail(self, error: BaseException, verb: str = "", *, after: bool = False, **which: t.Any) -> Hook:
        """Requests raise the error. With `after` they are executed, and only the response is lost."""
        return self.on(verb, failing(error), after=after, **which)

    def patch_as(self, manager: str, kind: str, name: str, patch: Obj, namespace: str = "") -> None:
        """A merge patch of another client, which then owns the fields that it changes."""
        place = self.place(kind, name, namespace)
        after = copied(patches.merge(self.objects[place], patch))
        ownership.updated(after, self.objects[place], manager)
        self.keep(place, after)

    def sent(self, verb: str, kind: str = "") -> list[Request]:
        """Requests including dry runs."""
        return [request for request in self.requests if request.verb == verb and kind in ("", request.kind)]

    def mend(self) -> None:
        """Remove all hooks, so that requests succeed again."""
        self.before.clear()
        self.after.clear()

    def clock(self, slice_of: float | None = None) -> Clock:
        assert self.time is not None
        return self.time.clock(slice_of)

    # Discovery and properties of the server.

    def before_repeats(self, hook: c.Callable[[], None]) -> None:
        """Requests are never repeated here."""

    def resource(self, api_version: str, kind: str) -> Resource:
        for resource in self.kinds:
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        raise UnknownKind(f"{api_version} {kind}")

    def resource_by_group(self, group: str, kind: str) -> Resource:
        for resource in self.kinds:
            if resource.group_kind == (group, kind):
                return resource
        raise UnknownKind(f"{group} {kind}")

    def all_resources(self) -> list[Resource]:
        return list(self.kinds)

    def forget_discovery(self) -> None:
        """Discovery is not cached here."""

    def server_version(self) -> dict[str, t.Any]:
        return {"gitVersion": self.git_version}

    def server_time(self) -> float | None:
        return self.time.now if self.time is not None else None

    def allowed(
        self, verb: str, resource: Resource, namespace: str = "", name: str = "", subresource: str = ""
    ) -> bool:
        full = f"{resource.plural}/{subresource}" if subresource else resource.plural
        self.reviews.append((verb, full, namespace))
        return (verb, full) not in self.forbidden

    # Reads.

    def get(self, resource: Resource, name: str, namespace: str = "", *, metadata_only: bool = False) -> Obj:
        request = self._begin("get", resource, namespace, name, metadata_only=metadata_only)
        with self._lock:
            obj = self.find(resource, name, namespace)
            answer: Obj = copied(metadata_of(obj) if metadata_only else obj)
        self._end(request)
        return answer

    def pages(self, resource: Resource, namespace: str = "", **options: t.Any) -> c.Iterator[Page]:
        page = self._listed(resource, namespace, paged=True, **options)
        for start in range(0, max(1, len(page.items)), self.page_size):
            yield Page(page.items[start : start + self.page_size], page.resource_version)

    def list(self, resource: Resource, namespace: str = "", **options: t.Any) -> Page:
        return self._listed(resource, namespace, paged=False, **options)

    def _listed(
        self,
        resource: Resource,
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        paged: bool,
    ) -> Page:
        selector = label_selector or field_selector
        more = {"selector": selector, "paged": paged, "metadata_only": metadata_only}
        request = self._begin("list", resource, namespace, **more)
        with self._lock:
            self.settle(resource)
            found = self.select(resource, namespace, label_selector, field_selector)
            page = Page([copied(metadata_of(obj) if metadata_only else obj) for obj in found], str(self.version))
        self._end(request)
        return page

    def rows(self, resource: Resource, namespace: str = "") -> list[Obj]:
        """Pods only."""
        request = self._begin("list", resource, namespace, printed=True)
        with self._lock:
            found = [printed(pod) for pod in self.select(resource, namespace, "", "")]
        self._end(request)
        return found

    def settle(self, resource: Resource) -> None:
        """Called before each list, to apply what controllers have done. This cluster has no controllers."""

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        deadline: float,
    ) -> c.Iterator[Event]:
        """Events since the resource version; then the watch ends, as if no other event arrived until the deadline."""
        # A signer or a name never changes. Objects that no longer match another selector would need an event DELETED.
        assert not label_selector and field_selector.partition("=")[0] in ("", "spec.signerName", "metadata.name")
        request = self._begin("watch", resource, namespace, body={"deadline": deadline}, selector=field_selector)
        for version, place, event in list(self.history):
            if (
                version > int(resource_version)
                and place[0] == resource.plural
                and namespace in ("", place[1])
                and (not field_selector or has_fields(event.object, field_selector))
            ):
                yield Event(event.type, copied(metadata_of(event.object) if metadata_only else event.object))
        self._end(request)

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool = False, tail_lines: int = 20) -> str:
        self._end(self._begin("logs", POD, namespace, pod, body={"container": container, "previous": previous}))
        return self.log_of(pod, container, previous)

    def log_of(self, pod: str, container: str, previous: bool) -> str:
        """Raises NotFound where the kubelet has no such container."""
        run = "previous" if previous else "current"
        return f"{container}: could not load ({run} run), via http://user:secret@proxy:3128\n"

    # Writes.

    def apply(
        self, obj: Obj, resource: Resource, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> Answer:
        place = place_of(resource, obj)
        request = self._begin("apply", resource, *place[1:], dry_run=dry_run, body=obj)
        with self._lock:
            self._namespace_exists(resource, place)
            before = self.objects.get(place)
            uid = obj["metadata"].get("uid")
            if uid and (before is None or before["metadata"]["uid"] != uid):
                raise Conflict("uid mismatch")
            after = ownership.applied(obj, before, field_manager, force=force)
            if before is None:
                after["metadata"]["uid"] = self.new_uid()
            answer = self._written(request, before, after)
        self._end(request)
        return answer

    def create(self, obj: Obj, resource: Resource, *, field_manager: str = "", dry_run: bool = False) -> Answer:
        place = place_of(resource, obj)
        request = self._begin("create", resource, *place[1:], dry_run=dry_run, body=obj)
        with self._lock:
            self._namespace_exists(resource, place)
            if place in self.objects:
                raise Conflict("already exists", body={"reason": "AlreadyExists"})
            after = ownership.created(copied(obj), field_manager or "test")
            after["metadata"]["uid"] = self.new_uid()
            answer = self._written(request, None, after)
        self._end(request)
        return answer

    def replace(
        self,
        obj: Obj,
        resource: Resource,
        *,
        field_manager: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Answer:
        place = place_of(resource, obj)
        request = self._begin("replace", resource, *place[1:], dry_run=dry_run, body=obj, subresource=subresource)
        with self._lock:
            before = self.find(resource, request.name, request.namespace)
            desired = {**before, "metadata": obj["metadata"], "status": obj["status"]} if subresource else obj
            answer = self._updated(request, before, desired, field_manager)
        self._end(request)
        return answer

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
        assert (patch_type, subresource) == ("application/merge-patch+json", "")
        assert resource not in self.guarded or "resourceVersion" in patch["metadata"], "other clients write it too"
        request = self._begin("patch", resource, namespace, name, dry_run=dry_run, body=patch)
        with self._lock:
            before = self.find(resource, name, namespace)
            answer = self._updated(request, before, patches.merge(before, patch), field_manager)
            if not dry_run:
                self.patched.append((name, patch))
        self._end(request)
        return answer

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
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options = {"propagationPolicy": propagation, "preconditions": preconditions}
        request = self._begin("delete", resource, namespace, name, dry_run=dry_run, body=options)
        with self._lock:
            metadata = self.find(resource, name, namespace)["metadata"]
            if uid and metadata["uid"] != uid:
                raise Conflict("the UID in the precondition does not match")
            if resource_version and metadata["resourceVersion"] != resource_version:
                raise Conflict("the ResourceVersion in the precondition does not match")
            if not dry_run:
                self.writes.append(f"delete {resource.kind} {name}")
                self.end(request)
        self._end(request)

    def end(self, request: Request) -> None:
        """Complete a deletion. An object with finalizers stays until they are removed, and its deletion is not requested twice:

        https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/
        """
        obj = self.objects[request.place]
        if not obj["metadata"].get("finalizers"):
            self.drop(request.place)
        elif "deletionTimestamp" not in obj["metadata"]:
            self.keep(request.place, obj | {"metadata": obj["metadata"] | {"deletionTimestamp": DELETED_AT}})

    def evict(self, name: str, namespace: str, *, uid: str, dry_run: bool = False) -> None:
        request = self._begin("evict", POD, namespace, name, dry_run=dry_run)
        with self._lock:
            if self.find(POD, name, namespace)["metadata"]["uid"] != uid:
                raise Conflict(f"evicting Pod {namespace}/{name}")
            self.admit(request)
            if not dry_run:
                self.writes.append(f"evict Pod {name}")
                self.end(request)
        self._end(request)

    def admit(self, request: Request) -> None:
        """Whether a pod may be evicted: raises BudgetRefused, or the error of an admission controller. This cluster admits all evictions."""

    def _begin(self, verb: str, resource: Resource, namespace: str = "", name: str = "", **more: t.Any) -> Request:
        """Runs without the lock, because a hook may wait for another request."""
        request = Request(verb, resource, namespace, name, **more)
        self.requests.append(request)
        for hook in list(self.before):
            hook(request)
        if request.right in self.forbidden:
            raise Forbidden(f"{request.right[0]} {request.right[1]}")
        return request

    def _end(self, request: Request) -> None:
        for hook in list(self.after):
            hook(request)

    def _namespace_exists(self, resource: Resource, place: Place) -> None:
        if resource.namespaced and (NAMESPACE.plural, "", place[1]) not in self.objects:
            raise NotFound(f'namespaces "{place[1]}" not found')

    def _updated(self, request: Request, before: Obj, desired: Obj, manager: str) -> Answer:
        """A resourceVersion in a patch or a replacement is a precondition: optimistic locking.

        https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
        """
        metadata = before["metadata"]
        for precondition in ("resourceVersion", "uid"):
            if desired["metadata"].get(precondition, metadata[precondition]) != metadata[precondition]:
                raise Conflict(f"{request.kind} {request.name}: the object has been modified")
        after: Obj = copied(desired)
        for kept in ("uid", "creationTimestamp", "deletionTimestamp"):
            if kept in metadata:
                after["metadata"][kept] = metadata[kept]
        ownership.updated(after, before, manager or "test")
        return self._written(request, before, after)

    def _written(self, request: Request, before: Obj | None, after: Obj) -> Answer:
        """A write that changes nothing keeps the resourceVersion, and no watch has an event of it.

        An object with a deletionTimestamp is removed with its last finalizer.
        """
        if before is not None and _without_version(after) == _without_version(before):
            return Answer(copied(before))
        if not request.dry_run:
            self.keep(request.place, after)
            self.writes.append(f"{request.verb} {request.kind} {request.name}")
            if (
                before is not None
                and before["metadata"].get("finalizers")
                and not after["metadata"].get("finalizers")
                and "deletionTimestamp" in after["metadata"]
            ):
                self.drop(request.place)
        return Answer(copied(after))


def _without_version(obj: Obj) -> Obj:
    return obj | {"metadata": {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}}


def warning(namespace: str, name: str, involved: Obj, reason: str, message: str, **more: t.Any) -> Obj:
    """An Event of type Warning about an object."""
    metadata = {"name": name, "namespace": namespace}
    details = {"type": "Warning", "reason": reason, "message": message, **more}
    return {"kind": "Event", "metadata": metadata, "involvedObject": involved, **details}
