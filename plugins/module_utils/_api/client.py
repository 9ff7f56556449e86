# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client that the engine uses (`_model.client.Client`)."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import bodies, queries, watch
from ansible_collections.hwaccel.gpu.plugins.module_utils._api import credentials as credential_options
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.discovery import Discovery
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.retry import Repeat, lasting
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Reply, Request, Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Answer, Event, Page
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, Gone, HwaccelError, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.printable import printable
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource

PAGE_SIZE = 500
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_APPLY = "application/apply-patch+yaml"
#: A list that expires twice is not started a third time.
_LIST_STARTS = 3
#: Bytes of a line of a log: containerd splits a line into entries of 16 KiB (max_container_log_line_size, its default), conmon into smaller ones, so
#: a limit of as many for each requested entry drops nothing. The server drops what is over the limit at the end, where the most relevant lines are.
_LOG_LINE = 16 * 1024
#: Maximum bytes of a log: 2000 lines of a kilobyte. A run reads many logs, and a program can write without limit.
_LONGEST_LOG = 2 * 1024 * 1024
_REVIEW = Resource("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)
_POD = Resource("", "v1", "Pod", "pods", True)


def connect(
    options: c.Mapping[str, t.Any],
    *,
    check_mode: bool = False,
    met: bool = False,
    hide: c.Callable[[c.Iterable[str]], None] = lambda secrets: None,
) -> Client:
    """A client for module options. met: the server has answered an earlier slice. hide: called with every secret before the first request."""
    policy = None if options.get("retry_timeout") is None else lasting(options["retry_timeout"])
    return Client(Transport(credential_options.resolve(options), policy, met=met, hide=hide), read_only=check_mode)


class Client:
    """Requests by resource. Threads may share one.

    read_only: a write without dry run is a bug and is refused here before it is sent, so that check mode never writes.
    """

    def __init__(self, transport: Transport, *, read_only: bool = False) -> None:
        self._transport = transport
        self._discovery = Discovery(transport)
        self._read_only = read_only

    @property
    def requests(self) -> int:
        """Number of requests sent, including retries."""
        return self._transport.requests

    @property
    def where(self) -> str:
        return self._transport.where

    @property
    def source(self) -> str:
        """Source of the credentials, without the credentials themselves."""
        return self._transport.credentials.source

    def server_time(self) -> float | None:
        return self._transport.server_time()

    def before_repeats(self, look: c.Callable[[], None]) -> None:
        self._transport.before_repeat = look

    def resource(self, api_version: str, kind: str) -> Resource:
        group, separator, version = api_version.partition("/")
        return self._discovery.resource(group if separator else "", version if separator else group, kind)

    def resource_by_group(self, group: str, kind: str) -> Resource:
        return self._discovery.preferred(group, kind)

    def all_resources(self) -> list[Resource]:
        return self._discovery.all()

    def forget_discovery(self) -> None:
        self._discovery.forget()

    def server_version(self) -> dict[str, t.Any]:
        """The answer of /version: gitVersion, platform and so on."""
        return self._transport.call(
            Request("GET", "/version", "asking the API server for its version", repeat=Repeat.ALWAYS)
        ).body

    def get(
        self, resource: Resource, name: str, namespace: str = "", *, metadata_only: bool = False
    ) -> dict[str, t.Any]:
        accept = _METADATA if metadata_only else "application/json"
        what = f"reading {_name(resource, namespace, name)}"
        return self._transport.call(
            Request("GET", resource.path(namespace, name), what, accept=accept, repeat=Repeat.ALWAYS)
        ).body

    def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> c.Iterator[Page]:
        request = _list_request(resource, namespace, label_selector, field_selector, metadata_only)
        seen: set[tuple[str, str]] = set()
        version = ""
        for start in range(1, _LIST_STARTS + 1):
            try:
                for page in self._walk(request, resource):
                    # After a restart, the version of the first list is kept, so that a watch from there reports
                    # changes to the items that were returned before.
                    version = version or page.resource_version
                    items = (
                        page.items
                        if start == 1
                        else [item for item in page.items if _place(item.get("metadata") or {}) not in seen]
                    )
                    seen.update(_place(item.get("metadata") or {}) for item in items)
                    yield Page(items, version, page.remaining)
                return
            except Gone:
                if start == _LIST_STARTS:
                    raise

    def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> Page:
        request = _list_request(resource, namespace, label_selector, field_selector, metadata_only)
        for start in range(1, _LIST_STARTS + 1):
            try:
                pages = [*self._walk(request, resource)]
                return Page([item for page in pages for item in page.items], pages[-1].resource_version)
            except Gone:
                # The whole list is read again, because the items collected so far belong to a state that has expired.
                if start == _LIST_STARTS:
                    raise
        raise AssertionError("unreachable")

    def rows(self, resource: Resource, namespace: str = "") -> c.Iterator[dict[str, t.Any]]:
        request = dataclasses.replace(
            _list_request(resource, namespace, "", "", False), query=(("includeObject", "None"),), accept=_TABLE
        )
        names: list[str] = []
        for body in self._bodies(request):
            # Pages after the first one may have no header.
            names = [str(column.get("name")).lower() for column in body.get("columnDefinitions") or []] or names
            for row in body.get("rows") or []:
                yield dict(zip(names, row.get("cells") or [], strict=False))

    def apply(
        self,
        obj: dict[str, t.Any],
        resource: Resource,
        *,
        field_manager: str,
        force: bool = False,
        dry_run: bool = False,
    ) -> Answer:
        self._writable(dry_run, "apply")
        namespace, name = _place(obj["metadata"])
        query = [*queries.of_write(field_manager, dry_run), *([("force", "true")] if force else [])]
        what = f"applying {_name(resource, namespace, name)}"
        return _answer(
            self._transport.call(
                queries.write("PATCH", resource.path(namespace, name), what, query, obj, _APPLY, Repeat.ALWAYS)
            )
        )

    def create(
        self, obj: dict[str, t.Any], resource: Resource, *, field_manager: str = "", dry_run: bool = False
    ) -> Answer:
        self._writable(dry_run, "create")
        namespace, name = _place(obj["metadata"])
        what = f"creating {_name(resource, namespace, name or obj['metadata'].get('generateName', ''))}"
        # Retried only if a second request cannot create a second object.
        repeat = Repeat.ALWAYS if dry_run or name else Repeat.UNSENT
        request = queries.write(
            "POST",
            resource.path(namespace),
            what,
            queries.of_write(field_manager, dry_run),
            obj,
            "application/json",
            repeat,
        )
        reply = self._transport.send(request)
        if reply.status == 409 and reply.blind and name and not dry_run:
            return self._read_back(obj, resource, request, reply)
        return _answer(self._success(request, reply))

    def replace(
        self,
        obj: dict[str, t.Any],
        resource: Resource,
        *,
        field_manager: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Answer:
        self._writable(dry_run, "replace")
        namespace, name = _place(obj["metadata"])
        what = f"replacing {_name(resource, namespace, name)}{'/' + subresource if subresource else ''}"
        guarded = bool((obj.get("metadata") or {}).get("resourceVersion"))
        request = queries.write(
            "PUT",
            resource.path(namespace, name, subresource),
            what,
            queries.of_write(field_manager, dry_run),
            obj,
            "application/json",
            Repeat.ALWAYS if guarded or dry_run else Repeat.UNSENT,
        )
        reply = self._transport.send(request)
        if reply.status == 409 and reply.blind and guarded and not dry_run:
            # A subresource writes the status, which is ignored otherwise.
            return self._read_back(obj, resource, request, reply, ignored=() if subresource else ("status",))
        return _answer(self._success(request, reply))

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
        self._writable(dry_run, "patch")
        what = f"patching {_name(resource, namespace, name)}{'/' + subresource if subresource else ''}"
        repeat = Repeat.ALWAYS if dry_run or bodies.guarded(patch) else Repeat.UNSENT
        query = queries.of_write(field_manager, dry_run)
        return _answer(
            self._transport.call(
                queries.write(
                    "PATCH", resource.path(namespace, name, subresource), what, query, patch, patch_type, repeat
                )
            )
        )

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> None:
        self._writable(dry_run, "delete")
        body: dict[str, t.Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        preconditions = {key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
        if preconditions:
            body["preconditions"] = preconditions
        if dry_run:
            # If there is a body, the server ignores the options of the query: without this, a dry run would delete.
            body["dryRun"] = ["All"]
        what = f"deleting {_name(resource, namespace, name)}"
        repeat = Repeat.ALWAYS if uid or dry_run else Repeat.UNSENT
        request = queries.write(
            "DELETE",
            resource.path(namespace, name),
            what,
            queries.of_write("", dry_run),
            body,
            "application/json",
            repeat,
        )
        reply = self._transport.send(request)
        if reply.status == 404 and reply.blind:
            # The attempt without an answer deleted the object.
            return
        self._success(request, reply)

    def evict(self, name: str, namespace: str, *, uid: str, dry_run: bool = False) -> None:
        self._writable(dry_run, "evict")
        # A pod of the same name that was created since, perhaps on another node, must not be evicted.
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        what = f"evicting {_name(_POD, namespace, name)}"
        path = _POD.path(namespace, name, "eviction")
        self._transport.call(
            queries.write("POST", path, what, queries.of_write("", dry_run), body, "application/json", Repeat.ALWAYS)
        )

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
        accept = _METADATA if metadata_only else "application/json"
        query = queries.of_list(label_selector, field_selector)
        request = Request(
            "GET",
            resource.path(namespace),
            f"watching {_name(resource, namespace)}",
            tuple(query),
            accept=accept,
            repeat=Repeat.ALWAYS,
        )
        return watch.events(self._transport, request, resource_version, deadline)

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool = False, tail_lines: int = 20) -> str:
        size = min(tail_lines * _LOG_LINE, _LONGEST_LOG)
        query = [
            ("container", container),
            ("tailLines", str(tail_lines)),
            ("limitBytes", str(size)),
            *([("previous", "true")] if previous else []),
        ]
        what = f"reading the {'previous ' if previous else ''}log of container {container} of Pod {namespace}/{pod}"
        path = _POD.path(namespace, pod, "log")
        return printable(
            self._transport.call(Request("GET", path, what, tuple(query), accept="*/*", repeat=Repeat.ALWAYS)).text
        )

    def allowed(
        self, verb: str, resource: Resource, namespace: str = "", name: str = "", subresource: str = ""
    ) -> bool:
        attributes = {
            "verb": verb,
            "group": resource.group,
            "version": resource.version,
            "resource": resource.plural,
            "namespace": namespace,
            "name": name,
            "subresource": subresource,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
        }
        # The server stores nothing, so the review may be retried, and is sent in check mode too.
        what = f"asking whether we may {verb} {resource.plural}"
        request = queries.write("POST", _REVIEW.path(), what, [], body, "application/json", Repeat.ALWAYS)
        return bool((self._transport.call(request).body.get("status") or {}).get("allowed"))

    def _bodies(self, request: Request) -> c.Iterator[dict[str, t.Any]]:
        """The answers of a LIST, page by page."""
        token = ""
        while True:
            query = (*request.query, ("limit", str(PAGE_SIZE)), *((("continue", token),) if token else ()))
            body = self._transport.call(dataclasses.replace(request, query=query)).body
            yield body
            token = (body.get("metadata") or {}).get("continue") or ""
            if not token:
                return

    def _walk(self, request: Request, resource: Resource) -> c.Iterator[Page]:
        for body in self._bodies(request):
            metadata = body.get("metadata") or {}
            items = body.get("items") or []
            for item in items:
                # The server omits them in lists.
                item.setdefault("apiVersion", resource.api_version)
                item["kind"] = resource.kind if item.get("kind") in (None, "PartialObjectMetadata") else item["kind"]
                if item["apiVersion"] == "meta.k8s.io/v1":
                    item["apiVersion"] = resource.api_version
            yield Page(items, metadata.get("resourceVersion") or "", metadata.get("remainingItemCount"))

    def _read_back(
        self,
        obj: dict[str, t.Any],
        resource: Resource,
        request: Request,
        reply: Reply,
        ignored: c.Collection[str] = ("status",),
    ) -> Answer:
        """After an attempt without an answer, a conflict is a success if the observed object is the requested one."""
        namespace, name = _place(obj["metadata"])
        try:
            live = self.get(resource, name, namespace)
        except (NotFound, Forbidden):
            raise self._transport.error(request, reply) from None
        if bodies.within(bodies.asked(obj, ignored), live):
            return Answer(live, reply.warnings())
        raise self._transport.error(request, reply)

    def _success(self, request: Request, reply: Reply) -> Reply:
        if not reply.ok:
            raise self._transport.error(request, reply)
        return reply

    def _writable(self, dry_run: bool, what: str) -> None:
        if self._read_only and not dry_run:
            raise HwaccelError(
                f"a bug in hwaccel.gpu: {what} without a dry run in check mode",
                self.where,
                next_step="report it; nothing was changed",
            )


def _list_request(
    resource: Resource, namespace: str, label_selector: str, field_selector: str, metadata_only: bool
) -> Request:
    accept = _METADATA_LIST if metadata_only else "application/json"
    query = tuple(queries.of_list(label_selector, field_selector))
    return Request(
        "GET",
        resource.path(namespace),
        f"listing {_name(resource, namespace)}",
        query,
        accept=accept,
        repeat=Repeat.ALWAYS,
    )


def _answer(reply: Reply) -> Answer:
    return Answer(reply.body, reply.warnings())


def _name(resource: Resource, namespace: str, name: str = "") -> str:
    if not name:
        return resource.plural + (f" in namespace {namespace}" if namespace else "")
    return f"{resource.kind} {namespace}/{name}" if namespace else f"{resource.kind} {name}"


def _place(metadata: dict[str, t.Any]) -> tuple[str, str]:
    return metadata.get("namespace") or "", metadata.get("name") or ""
