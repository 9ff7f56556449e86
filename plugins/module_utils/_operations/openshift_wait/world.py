# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an API server says of an install: each list is read once, and then only watched, so that a wait in which nothing happens asks little."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Gone, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import objects
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import (
    Answers,
    Node,
    Operator,
    Request,
    Version,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import bootstrap
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import reads

Obj = dict[str, t.Any]

INFRASTRUCTURE, BOOTSTRAP, ETCD, VERSION, OPERATORS, NODES, CLIENT, SERVING = (
    "infrastructure",
    "bootstrap",
    "etcd",
    "version",
    "operators",
    "nodes",
    "client",
    "serving",
)
#: Seconds after which a kind that did not exist is asked for again: the bootstrap machine creates those of OpenShift one after the other.
_ABSENT = 120.0


@dataclasses.dataclass(frozen=True)
class _Source:
    """A list. reduce: of an object what an install depends on, in JSON, so that what does not matter is no change. name: of the only object that is read."""

    resource: Resource
    reduce: c.Callable[[Obj], t.Any]
    namespace: str = ""
    selector: str = ""
    name: str = ""
    watched: bool = True

    @property
    def field_selector(self) -> str:
        return f"metadata.name={self.name}" if self.name else self.selector


def _request(obj: Obj) -> list[str]:
    """Whether a request is decided or issued. A new one under its name has another uid."""
    status = obj.get("status") or {}
    kinds = sorted(str(one.get("type")) for one in status.get("conditions") or ())
    return [str(obj["metadata"].get("uid")), *kinds, *(["issued"] if status.get("certificate") else [])]


_CLUSTER_OPERATOR = Resource("config.openshift.io", "v1", "ClusterOperator", "clusteroperators", False)
_INFRASTRUCTURE = Resource("config.openshift.io", "v1", "Infrastructure", "infrastructures", False)
_SOURCES = {
    INFRASTRUCTURE: _Source(
        _INFRASTRUCTURE,
        lambda obj: str((obj.get("status") or {}).get("infrastructureName") or ""),
        watched=False,
    ),
    BOOTSTRAP: _Source(
        bootstrap.CONFIG_MAP,
        lambda obj: str((obj.get("data") or {}).get("status") or ""),
        "kube-system",
        name="bootstrap",
    ),
    ETCD: _Source(bootstrap.ETCD, lambda obj: list(objects.member_removed(obj))),
    VERSION: _Source(bootstrap.VERSION, lambda obj: dataclasses.asdict(objects.version(obj))),
    OPERATORS: _Source(_CLUSTER_OPERATOR, lambda obj: dataclasses.asdict(objects.operator(obj))),
    NODES: _Source(reads.NODE, lambda obj: dataclasses.asdict(objects.node(obj))),
    CLIENT: _Source(reads.CSR, _request, selector=reads.selector(CLIENT)),
    SERVING: _Source(reads.CSR, _request, selector=reads.selector(SERVING)),
}


@dataclasses.dataclass
class World:
    """State between slices, in JSON. versions: resourceVersions, by source. found: reduced objects, by source and name.

    absent: when kinds that do not exist were asked for, by source, as time.time().
    """

    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    found: dict[str, dict[str, t.Any]] = dataclasses.field(default_factory=dict)
    absent: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def known(self) -> set[str]:
        """Lists that were asked for, whether they exist or not."""
        return {*self.versions, *self.absent}

    def unread(self, names: c.Iterable[str], now: float) -> list[str]:
        """Those that were never asked for, and one of those that did not exist and may be there now."""
        left = [name for name in names if name not in self.versions]
        absent = [name for name in left if name in self.absent]
        again = [name for name in absent if now - self.absent[name] >= _ABSENT]
        return [name for name in left if name not in absent] + again[:1]

    def read(self, client: Client, names: c.Iterable[str], now: float) -> list[str]:
        """Reads lists. The result has the names of those that are there."""
        asked = list(names)
        for name in asked:
            self._list(client, name, now)
        return [name for name in asked if name in self.versions]

    def forget(self) -> None:
        """All lists are read again, also those of kinds that did not exist."""
        self.versions, self.absent = {}, {}

    def _list(self, client: Client, name: str, now: float) -> None:
        source = _SOURCES[name]
        found: dict[str, t.Any] = {}
        try:
            for page in client.pages(source.resource, source.namespace, field_selector=source.field_selector):
                version = page.resource_version
                found |= {str(obj["metadata"]["name"]): source.reduce(obj) for obj in page.items}
        except NotFound:
            self.absent[name] = now
            return
        self.found[name] = found
        # Its name is in its status, which can be later than the object.
        if name == INFRASTRUCTURE and not self.infrastructure:
            self.absent[name] = now
        else:
            self.versions[name] = version

    def watch(self, client: Client, name: str, deadline: float) -> bool:
        """Whether something of a list has changed before the deadline (time.monotonic()). Returns at the first change."""
        source = _SOURCES[name]
        events = client.watch(
            source.resource,
            source.namespace,
            resource_version=self.versions[name],
            field_selector=source.field_selector,
            deadline=deadline,
        )
        try:
            for event in events:
                self.versions[name] = (event.object.get("metadata") or {}).get("resourceVersion") or self.versions[name]
                if event.type != "BOOKMARK" and self._changes(name, source, event.type == "DELETED", event.object):
                    return True
        except (Gone, NotFound):
            del self.versions[name]
            return True
        return False

    def _changes(self, name: str, source: _Source, deleted: bool, obj: Obj) -> bool:
        known = self.found.setdefault(name, {})
        key = str(obj["metadata"]["name"])
        if deleted:
            return known.pop(key, None) is not None
        reduced = source.reduce(obj)
        changed = known.get(key) != reduced
        known[key] = reduced
        return changed

    @property
    def infrastructure(self) -> str:
        return str(self.found.get(INFRASTRUCTURE, {}).get("cluster", ""))

    @property
    def version(self) -> Version | None:
        found = self.found.get(VERSION, {}).get("version")
        return Version(**found) if found else None

    @property
    def bootstrapped(self) -> tuple[bool, str]:
        """As module bootstrap_info tells it: the ConfigMap can be removed once a cluster is installed."""
        status = str(self.found.get(BOOTSTRAP, {}).get("bootstrap", ""))
        if status == "complete":
            return True, "the status in ConfigMap kube-system/bootstrap is complete"
        if self.version is not None and self.version.completed:
            return True, "ClusterVersion has a completed installation"
        if status:
            return False, f"the status in ConfigMap kube-system/bootstrap is {status}"
        return False, "there is no ConfigMap kube-system/bootstrap"

    def answers(self, requests: c.Iterable[Request], serving: frozenset[str] | None) -> Answers:
        complete, why = self.bootstrapped
        removable = False
        # Without the kind, as in older releases, a complete bootstrap is enough; until it was asked for, nothing is known.
        if complete and (ETCD in self.versions or ETCD in self.absent):
            told = self.found.get(ETCD, {}).get("cluster")
            removable, why = told if told else objects.member_removed({})
        return Answers(
            infrastructure=self.infrastructure,
            bootstrapped=complete,
            removable=removable,
            evidence=why,
            version=self.version,
            operators=tuple(Operator(**one) for one in self.found.get(OPERATORS, {}).values()),
            nodes=tuple(Node(**one) for one in self.found.get(NODES, {}).values()),
            requests=tuple(requests),
            serving=serving,
        )


class Needed(t.NamedTuple):
    """A permission. namespace: "" for the cluster; name: of the only object, "" for all."""

    verb: str
    resource: Resource
    namespace: str
    name: str


def needed() -> list[Needed]:
    """What is read and watched."""
    found = (
        Needed(verb, source.resource, source.namespace, source.name)
        for source in _SOURCES.values()
        for verb in (("list", "watch") if source.watched else ("list",))
    )
    return list(dict.fromkeys(found))
