# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds that the server has: two requests if it supports aggregated discovery, otherwise one for each group."""

from __future__ import annotations

import threading
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.retry import Repeat
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Request, Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import UnknownKind
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource

_ACCEPT = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


class Discovery:
    """Kinds by group and version. They are cached in the process only, because a cache file could be outdated when a CRD was just created."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = threading.RLock()
        self._clear()

    def _clear(self) -> None:
        #: Group -> versions, the preferred one first.
        self._versions: dict[str, list[str]] = {}
        #: (group, version) -> kind -> Resource; on old servers a group is filled when it is first used.
        self._kinds: dict[tuple[str, str], dict[str, Resource]] = {}
        self._roots: set[str] = set()

    def forget(self) -> None:
        with self._lock:
            self._clear()

    def resource(self, group: str, version: str, kind: str) -> Resource:
        with self._lock:
            self._load_root(group)
            found = self._version(group, version).get(kind) if version in self._versions.get(group, []) else None
            if found is None:
                raise self._unknown(group, version, kind)
            return found

    def preferred(self, group: str, kind: str) -> Resource:
        with self._lock:
            self._load_root(group)
            for version in self._versions.get(group, []):
                found = self._version(group, version).get(kind)
                if found is not None:
                    return found
            raise self._unknown(group, "", kind)

    def all(self) -> list[Resource]:
        """Every resource that the server has, each in its preferred version."""
        with self._lock:
            self._load_root("")
            self._load_root("-")
            found: dict[tuple[str, str], Resource] = {}
            for group, versions in self._versions.items():
                for version in versions:
                    for kind, resource in self._version(group, version).items():
                        found.setdefault((group, kind), resource)
            return list(found.values())

    def _load_root(self, group: str) -> None:
        root = "/apis" if group else "/api"
        if root in self._roots:
            return
        answer = self._get(root, _ACCEPT)
        if answer.get("kind") == "APIGroupDiscoveryList":
            for item in answer.get("items") or []:
                self._take_aggregated(item)
        elif root == "/api":
            self._versions[""] = list(answer.get("versions") or ["v1"])
        else:
            for item in answer.get("groups") or []:
                preferred = (item.get("preferredVersion") or {}).get("version", "")
                versions = [entry["version"] for entry in item.get("versions") or []]
                self._versions[item["name"]] = sorted(versions, key=lambda version: version != preferred)
        self._roots.add(root)

    def _take_aggregated(self, item: dict[str, t.Any]) -> None:
        group = (item.get("metadata") or {}).get("name", "")
        self._versions[group] = [entry["version"] for entry in item.get("versions") or []]
        for entry in item.get("versions") or []:
            kinds: dict[str, Resource] = {}
            for resource in entry.get("resources") or []:
                kind = (resource.get("responseKind") or {}).get("kind")
                if not kind:
                    continue
                kinds.setdefault(
                    kind,
                    Resource(
                        group,
                        entry["version"],
                        kind,
                        resource["resource"],
                        resource.get("scope") == "Namespaced",
                        frozenset(resource.get("verbs") or ()),
                    ),
                )
            self._kinds[(group, entry["version"])] = kinds

    def _version(self, group: str, version: str) -> dict[str, Resource]:
        key = (group, version)
        if key not in self._kinds:
            path = f"/apis/{group}/{version}" if group else f"/api/{version}"
            kinds: dict[str, Resource] = {}
            for entry in self._get(path, "application/json").get("resources") or []:
                if "/" not in entry["name"]:
                    verbs = frozenset(entry.get("verbs") or ())
                    kinds.setdefault(
                        entry["kind"],
                        Resource(group, version, entry["kind"], entry["name"], bool(entry.get("namespaced")), verbs),
                    )
            self._kinds[key] = kinds
        return self._kinds[key]

    def _get(self, path: str, accept: str) -> dict[str, t.Any]:
        request = Request("GET", path, "asking the API server which kinds it has", accept=accept, repeat=Repeat.ALWAYS)
        return self._transport.call(request).body

    def _unknown(self, group: str, version: str, kind: str) -> UnknownKind:
        name = "/".join(part for part in (group, version) if part) or group
        versions = self._versions.get(group)
        if versions is None:
            why = f"it has no API group {group!r}"
        elif version and version not in versions:
            why = f"it has {group or 'the core group'} in {', '.join(versions)} only"
        else:
            why = "its group has no such kind"
        step = "install the CRD or the operator that provides it, or correct apiVersion"
        return UnknownKind(f"the API server does not know {kind} of {name}", self._transport.where, why, step)
