# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server in memory for gates: nodes, pods and events, watches that play a script, and every write noted."""

from __future__ import annotations

import collections.abc as c
import copy
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Answer, Event, Page
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Conflict, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource

RESOURCES = {kind: Resource("", "v1", kind, kind.lower() + "s", kind != "Node") for kind in ("Node", "Pod", "Event")}
RESOURCES |= {kind: Resource("apps", "v1", kind, kind.lower() + "s", True) for kind in ("DaemonSet", "Deployment")}

Obj = dict[str, t.Any]
Step = c.Callable[["FakeCluster"], None]


class FakeCluster:
    """script: what happens at each look of a watch, one step a look; when it is used up, time passes (`on_idle`)."""

    def __init__(
        self,
        nodes: list[Obj],
        pods: list[Obj],
        script: list[Step] | None = None,
        on_idle: c.Callable[[], None] = lambda: None,
    ) -> None:
        self.objects: dict[str, dict[str, Obj]] = {kind: {} for kind in RESOURCES}
        self.script = list(script or [])
        self.on_idle = on_idle
        self.writes: list[tuple[str, Obj]] = []
        self.logged: list[tuple[str, str, bool]] = []
        #: Access reviews as (verb, resource with its subresource, namespace), and what they answer with no.
        self.asked: list[tuple[str, str, str]] = []
        self.denied: set[tuple[str, str]] = set()
        self.before_patch: c.Callable[[str], None] = lambda name: None
        self.page_size = 500
        #: The server's clock, None where it tells no time.
        self.now: c.Callable[[], float] | None = None
        self._version = 100
        self._history: list[tuple[int, str, Event]] = []
        for obj in (*nodes, *pods):
            self.put(obj)

    def put(self, obj: Obj) -> None:
        """Create or change, as another client would."""
        self._version += 1
        obj = copy.deepcopy(obj)
        obj["metadata"]["resourceVersion"] = str(self._version)
        held = self.objects[obj["kind"]]
        kind = "MODIFIED" if obj["metadata"]["name"] in held else "ADDED"
        held[obj["metadata"]["name"]] = obj
        self._history.append((self._version, obj["kind"], Event(kind, obj)))

    def remove(self, kind: str, name: str) -> None:
        self._version += 1
        obj = self.objects[kind].pop(name)
        obj["metadata"]["resourceVersion"] = str(self._version)
        self._history.append((self._version, kind, Event("DELETED", obj)))

    def server_time(self) -> float | None:
        return self.now() if self.now is not None else None

    def resource(self, api_version: str, kind: str) -> Resource:
        return RESOURCES[kind]

    def get(self, resource: Resource, name: str, namespace: str = "", *, metadata_only: bool = False) -> Obj:
        if name not in self.objects[resource.kind]:
            raise NotFound(f"{resource.kind} {name} not found")
        return copy.deepcopy(self.objects[resource.kind][name])

    def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> c.Iterator[Page]:
        items = [copy.deepcopy(obj) for obj in self.objects[resource.kind].values() if _in(namespace, obj)]
        version = str(self._version)
        for start in range(0, max(1, len(items)), self.page_size):
            yield Page(items[start : start + self.page_size], version)

    def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> Page:
        wanted = dict(part.split("=") for part in field_selector.split(",") if part)
        labels = selectors.parse(label_selector)
        items = [
            item
            for item in self.objects[resource.kind].values()
            if selectors.matches(labels, item["metadata"].get("labels") or {})
        ]
        if uid := wanted.get("involvedObject.uid"):
            items = [item for item in items if item["involvedObject"]["uid"] == uid]
        if kind := wanted.get("involvedObject.kind"):
            items = [item for item in items if item["involvedObject"]["kind"] == kind]
        return Page(items, str(self._version))

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
        assert patch_type == "application/merge-patch+json"
        self.before_patch(name)
        obj = self.get(resource, name)
        if patch["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            raise Conflict(f"{resource.kind} {name} has changed")
        changed = _merged(obj, patch)
        self.put(changed)
        self.writes.append((name, patch))
        return Answer(changed)

    def allowed(
        self, verb: str, resource: Resource, namespace: str = "", name: str = "", subresource: str = ""
    ) -> bool:
        full = f"{resource.plural}/{subresource}" if subresource else resource.plural
        self.asked.append((verb, full, namespace))
        return (verb, full) not in self.denied

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
        if self.script:
            self.script.pop(0)(self)
        else:
            self.on_idle()
        for version, kind, event in list(self._history):
            if kind == resource.kind and version > int(resource_version) and _in(namespace, event.object):
                yield copy.deepcopy(event)

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool = False, tail_lines: int = 20) -> str:
        self.logged.append((pod, container, previous))
        return f"{container}: could not load ({'previous' if previous else 'current'} run), via http://user:secret@proxy:3128\n"


def _in(namespace: str, obj: Obj) -> bool:
    """ "" is all namespaces."""
    return namespace in ("", obj["metadata"].get("namespace", namespace))


def _merged(obj: t.Any, patch: t.Any) -> t.Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
