# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests by method and path, like those of the fleet agent's components, on a cluster in memory."""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj, copied

_REASONS = {403: "Forbidden", 404: "NotFound", 409: "Conflict", 422: "Invalid"}


class RestApi:
    """`requests`: (user, method, path, body). `forbidden`: regular expressions of `METHOD path` that RBAC denies.

    `refusal`: the class of the exception that is raised then, with code, reason and message.
    """

    def __init__(self, cluster: Cluster, refusal: c.Callable[[int, str, str], Exception]) -> None:
        self.cluster = cluster
        self.requests: list[tuple[str, str, str, t.Any]] = []
        self.forbidden: list[str] = []
        self._refusal = refusal

    def at(self, path: str) -> Obj:
        """The stored object. A later write replaces it."""
        resource, namespace, name, _subresource = self._parsed(path)
        return self.cluster.find(resource, name, namespace)

    def has(self, path: str) -> bool:
        resource, namespace, name, _subresource = self._parsed(path)
        return (resource.plural, namespace, name) in self.cluster.objects

    def request(
        self,
        method: str,
        path: str,
        body: t.Any = None,
        identity: t.Any = None,
        content_type: str = "",
        query: Obj | None = None,
        tries: int = 1,
        accept: str = "",
    ) -> Obj:
        user = identity.user if identity else ""
        self.requests.append((user, method, path, copied(body)))
        if any(re.fullmatch(pattern, f"{method} {path}") for pattern in self.forbidden):
            what = f'{path.rsplit("/", 1)[-1]} is forbidden: User "{user}" cannot {method.lower()} resource'
            raise self._refusal(403, _REASONS[403], what)
        try:
            return self._answer(method, path, body, query or {})
        except ApiError as error:
            reason = error.body.get("reason") or _REASONS.get(error.status, "InternalError")
            raise self._refusal(error.status, reason, str(error)) from error

    def _answer(self, method: str, path: str, body: t.Any, query: Obj) -> Obj:
        resource, namespace, name, subresource = self._parsed(path)
        if method == "GET" and name:
            return self.cluster.get(resource, name, namespace)
        if method == "GET":
            labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
            page = self.cluster.list(resource, namespace, label_selector=labels, field_selector=fields)
            return {"items": page.items}
        if method == "POST" and subresource == "eviction":
            self.cluster.evict(name, namespace, uid=self.cluster.find(resource, name, namespace)["metadata"]["uid"])
            return {}
        if method == "POST":
            return self.cluster.create(self._named(resource, namespace, body), resource).object
        if method == "DELETE":
            uid = ((body or {}).get("preconditions") or {}).get("uid", "")
            self.cluster.delete(resource, name, namespace, uid=uid)
            return {}
        if method == "PUT":
            status = {key: value for key, value in self.at(path).items() if key == "status"}
            result = self._named(resource, namespace, _part(body, ""))
            return self.cluster.replace(result | status, resource).object
        assert method == "PATCH" and isinstance(body, dict), "JSON patches are only supported in live tests"
        return self.cluster.patch(resource, name, namespace, _part(body, subresource)).object

    def _named(self, resource: Resource, namespace: str, body: Obj) -> Obj:
        """The object with the name that the server generates from `generateName`, and in the namespace of the path."""
        result = {"apiVersion": resource.api_version, "kind": resource.kind, **copied(body)}
        result["metadata"].setdefault("name", f"{result['metadata'].get('generateName', '')}x")
        return result | {"metadata": result["metadata"] | ({"namespace": namespace} if namespace else {})}

    def _parsed(self, path: str) -> tuple[Resource, str, str, str]:
        """Resource, namespace, name and subresource. Raises NotFound for an unknown resource."""
        parts = path.strip("/").split("/")
        version, rest = (parts[1], parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = (*rest, "", "")[:3]
        for resource in self.cluster.kinds:
            if (resource.api_version, resource.plural) == (version, plural):
                return resource, namespace, name, subresource
        raise NotFound(f"the server could not find the requested resource {path}")


def _part(patch: Obj, subresource: str) -> Obj:
    """Of a patch of /status only the status is used, and of a patch of the object everything else.

    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#status-subresource has the same rule for all kinds.
    """
    if subresource == "status":
        preconditions = {key: patch[key] for key in ("metadata",) if key in patch}
        return {**preconditions, "status": patch.get("status")}
    assert not subresource, subresource
    return {key: value for key, value in patch.items() if key != "status"}
