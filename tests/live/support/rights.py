# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rights that roles grant to our ServiceAccounts, and requests of these accounts in the audit log.

A right is one verb on one resource for one account. Wildcards and URLs outside the API are not expanded: no request uses "*" itself, so a
role that grants it has an unused right.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Page
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog, Request

_GROUP = "rbac.authorization.k8s.io/v1"
_KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_USER = "system:serviceaccount:"

Obj = dict[str, t.Any]


@dataclasses.dataclass(frozen=True, order=True)
class Right:
    """account: namespace/name. resource: with a subresource, as in pods/log. namespace and name are "" if the right is not limited to one."""

    account: str
    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.account}: {self.verb} {self.resource}{'.' + self.group if self.group else ''}{' ' + self.name if self.name else ''}{place}"

    def used_by(self, request: Request) -> bool:
        requested = (request.verb, request.group, f"{request.resource}/{request.subresource}".rstrip("/"))
        return (
            request.user == _USER + self.account.replace("/", ":")
            and requested == (self.verb, self.group, self.resource)
            and self.namespace in ("", request.namespace)
            and self.name in ("", request.name)
        )


class RoleBook:
    """Roles and bindings that exist at its creation, and later ones, also if they are deleted again (a teardown has its own)."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._observed: dict[tuple[str, str], Obj] = {}
        self._first = {kind: self._list(kind) for kind in _KINDS}

    def granted(self, namespaces: c.Collection[str]) -> frozenset[Right]:
        """Rights that ServiceAccounts of these namespaces have had up to now."""
        for kind, first in self._first.items():
            self._follow(kind, first)
        rights: set[Right] = set()
        for binding in self._observed.values():
            for subject in binding.get("subjects") or []:
                if subject["kind"] == "ServiceAccount" and subject["namespace"] in namespaces:
                    place = binding["metadata"].get("namespace", "")
                    for rule in self._rules(binding["roleRef"], place):
                        rights |= _expand(rule, f"{subject['namespace']}/{subject['name']}", place)
        return frozenset(rights)

    def _list(self, kind: str) -> Page:
        page = self._client.list(self._client.resource(_GROUP, kind))
        for item in page.items:
            self._note(kind, item)
        return page

    def _note(self, kind: str, item: Obj) -> None:
        """Keeps each version, because the rights of an earlier version of a role count as well."""
        self._observed[item["metadata"]["uid"], item["metadata"]["resourceVersion"]] = {**item, "kind": kind}

    def _follow(self, kind: str, first: Page) -> None:
        """Reads events until they result in the objects that exist now."""
        known, now = _uids(first), _uids(self._list(kind))
        if known == now:
            return
        resource = self._client.resource(_GROUP, kind)
        for event in self._client.watch(
            resource, resource_version=first.resource_version, deadline=time.monotonic() + 240
        ):
            if event.type != "BOOKMARK":
                uid = event.object["metadata"]["uid"]
                self._note(kind, event.object)
                (known.discard if event.type == "DELETED" else known.add)(uid)
            if known == now:
                return
        raise AssertionError(f"the events of {kind} do not result in the objects that exist now")

    def _rules(self, ref: Obj, namespace: str) -> list[Obj]:
        place = "" if ref["kind"] == "ClusterRole" else namespace
        return [
            rule
            for role in self._observed.values()
            for rule in role.get("rules") or []
            if (role["kind"], role["metadata"]["name"], role["metadata"].get("namespace", ""))
            == (ref["kind"], ref["name"], place)
        ]


def _uids(page: Page) -> set[str]:
    return {item["metadata"]["uid"] for item in page.items}


def _expand(rule: Obj, account: str, namespace: str) -> set[Right]:
    return {
        Right(account, verb, group, resource, namespace, name)
        for verb in rule["verbs"]
        for group in rule.get("apiGroups") or [""]
        for resource in rule.get("resources") or rule.get("nonResourceURLs", [])
        for name in rule.get("resourceNames") or [""]
    }


def requests_of(log: AuditLog, namespaces: c.Collection[str]) -> list[Request]:
    """Requests of ServiceAccounts of these namespaces, also refused ones."""
    prefixes = tuple(f"{_USER}{namespace}:" for namespace in namespaces)
    return [request for request in log.requests() if request.user.startswith(prefixes)]


def unused(granted: c.Iterable[Right], requests: c.Collection[Request]) -> list[Right]:
    allowed = [request for request in requests if request.status != 403]
    return sorted(right for right in granted if not any(right.used_by(request) for request in allowed))
