# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nfd-master of node-feature-discovery v0.19.0 (pkg/nfd-master): NodeFeature objects and rules into labels of nodes."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from fleet_agent.clock import timestamp
from fleet_agent.cluster.api import JSON_PATCH, ApiError, Unreachable
from fleet_agent.loop import Park, Process, Sleep
from fleet_agent.programs import nfd, nfd_features

GROUP = "/apis/nfd.k8s-sigs.io/v1alpha1"
ANNOTATION_NS = "nfd.node.kubernetes.io"
LABELS, RESOURCES = "nfd.node.kubernetes.io/feature-labels", "nfd.node.kubernetes.io/extended-resources"
ANNOTATIONS, TAINTS = "nfd.node.kubernetes.io/feature-annotations", "nfd.node.kubernetes.io/taints"
KINDS = (
    ("NodeFeature", f"{GROUP}/nodefeatures"),
    ("NodeFeatureRule", f"{GROUP}/nodefeaturerules"),
    ("Namespace", "/api/v1/namespaces"),
)


class Master:
    """State of one master process."""

    def __init__(self, proc: Any) -> None:
        self.proc = proc
        self.features: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}  # node -> objects
        self.rules: dict[str, dict[str, Any]] = {}
        self.namespaces: dict[str, dict[str, str]] = {}  # name -> labels
        self.dirty: dict[str, None] = {}
        self.synced: set[str] = set()
        self.all_nodes = True
        self.sleeping: Any = None
        self.config: dict[str, Any] = {}

    def kinds(self) -> list[tuple[str, str]]:
        """What it lists and watches: namespaces only if it selects by them."""
        return [kind for kind in KINDS if kind[0] != "Namespace" or self.selector]

    @property
    def publishes(self) -> bool:
        return not nfd.setting(self.proc, self.config, "no-publish")

    @property
    def restrictions(self) -> dict[str, Any]:
        return self.config.get("restrictions") or {}

    @property
    def selector(self) -> dict[str, Any]:
        return self.restrictions.get("nodeFeatureNamespaceSelector") or {}

    def start(self) -> None:
        self.proc.container.healthy = False
        for kind, path in self.kinds():
            self.proc.watch(path, self._handler(kind), on_error=self._complain(kind))

    def _complain(self, kind: str) -> Any:
        def on_error(error: Exception | None) -> None:
            if error:
                self.proc.out(
                    f'E reflector.go] "Failed to watch" err="failed to list *v1alpha1.{kind}: {error}" type="*v1alpha1.{kind}"\n'
                )

        return on_error

    def _handler(self, kind: str) -> Any:
        def on_event(event: str, item: dict[str, Any]) -> None:
            self.proc.kubelet.loop.post(self._take, kind, event, item)

        return on_event

    def _take(self, kind: str, event: str, item: dict[str, Any]) -> None:
        if event == "SYNCED":
            self.synced.add(kind)
        elif kind == "NodeFeature":
            self._take_feature(event, item)
        elif kind == "Namespace":
            self.namespaces[item["metadata"]["name"]] = (
                {} if event == "DELETED" else item["metadata"].get("labels") or {}
            )
        elif kind == "NodeFeatureRule":
            self.all_nodes = True
            if event == "DELETED":
                self.rules.pop(item["metadata"]["name"], None)
            else:
                self.rules[item["metadata"]["name"]] = item
        if self.sleeping:
            self.sleeping.wake()

    def _take_feature(self, event: str, item: dict[str, Any]) -> None:
        metadata = item["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        node = (metadata.get("labels") or {}).get("nfd.node.kubernetes.io/node-name", "")
        if not node:  # Only its key is known, because it was missing after a lost watch.
            node = next((n for n, found in self.features.items() if key in found), "")
        if event == "DELETED":
            self.features.get(node, {}).pop(key, None)
        else:
            item["metadata"].pop("managedFields", None)
            self.features.setdefault(node, {})[key] = item
        if node:
            self.dirty[node] = None

    # -- one node

    def desired(self, node: str) -> dict[str, Any]:
        objects = {
            key: item
            for key, item in self.features.get(node, {}).items()
            if _selected(self.selector, self.namespaces.get(key[0], {}))
        }
        features, found = nfd_features.merge(list(objects.values()))
        labels = dict(found)
        resources: dict[str, str] = {}
        annotations: dict[str, str] = {}
        taints: list[dict[str, Any]] = []
        for name in sorted(self.rules):
            for rule in (self.rules[name].get("spec") or {}).get("rules") or []:
                output = nfd_features.rule_output(rule, features)
                if output is None:
                    continue
                labels.update(output["labels"])
                resources.update(output["extendedResources"])
                annotations.update(output["annotations"])
                taints += output["taints"]
                group = features["attributes"].setdefault("rule.matched", {"elements": {}})
                group["elements"].update({**output["labels"], **output["vars"]})
        pattern = list(nfd.setting(self.proc, self.config, "deny-label-ns"))
        allowed = re.compile(nfd.setting(self.proc, self.config, "label-whitelist"))
        kept = {
            k: v
            for k, v in nfd_features.qualified(labels).items()
            if not nfd_features.denied(k, pattern) and allowed.search(k.rpartition("/")[2])
        }
        own = nfd.setting(self.proc, self.config, "enable-taints")
        if self.restrictions.get("disableExtendedResources"):
            resources = {}
        return {
            "labels": kept,
            "resources": nfd_features.qualified(resources),
            "annotations": nfd_features.qualified(annotations),
            "taints": taints if own else [],
        }

    def update(self, node: str, desired: dict[str, Any]) -> Process:
        """Sets the desired labels of a node, and removes those of earlier updates that are no longer desired."""
        item = yield from self.proc.request("GET", f"/api/v1/nodes/{node}")
        metadata = item["metadata"]
        labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
        patch = _map_patch("/metadata/labels", labels, desired["labels"], _names(notes.get(LABELS)))
        marks = {
            LABELS: _join(desired["labels"]),
            RESOURCES: _join(desired["resources"]),
            ANNOTATIONS: _join(desired["annotations"]),
        }
        old_notes = [*(k for k in marks if k in notes), *_names(notes.get(ANNOTATIONS))]
        patch += _map_patch(
            "/metadata/annotations",
            notes,
            {**{k: v for k, v in marks.items() if v}, **desired["annotations"]},
            old_notes,
        )
        if patch:
            yield from self.proc.request("PATCH", f"/api/v1/nodes/{node}", patch, content_type=JSON_PATCH)
        capacity = item["status"].get("capacity") or {}
        old = _names(notes.get(RESOURCES))
        status = _map_patch("/status/capacity", capacity, desired["resources"], old) + _map_patch(
            "/status/allocatable", item["status"].get("allocatable") or {}, desired["resources"], old
        )
        if status:
            yield from self.proc.request("PATCH", f"/api/v1/nodes/{node}/status", status, content_type=JSON_PATCH)
        if desired["taints"] or notes.get(TAINTS):
            yield from self._taints(node, item, desired["taints"])

    def _taints(self, node: str, item: dict[str, Any], desired: list[dict[str, Any]]) -> Process:
        old = json.loads((item["metadata"].get("annotations") or {}).get(TAINTS, "[]"))
        taints = [t for t in item["spec"].get("taints") or [] if t not in old] + desired
        body = {"spec": {"taints": taints}, "metadata": {"annotations": {TAINTS: json.dumps(desired)}}}
        yield from self.proc.request(
            "PATCH", f"/api/v1/nodes/{node}", body, content_type="application/merge-patch+json"
        )


def _selected(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """A label selector, with the operators that compare values."""
    expressions = [
        {"key": key, "operator": "In", "values": [value]} for key, value in (selector.get("matchLabels") or {}).items()
    ]
    return all(
        (labels.get(one["key"]) in one["values"]) is (one["operator"] == "In")
        for one in [*expressions, *(selector.get("matchExpressions") or ())]
    )


def _names(text: str | None) -> list[str]:
    return [n if "/" in n else nfd_features.PREFIX + n for n in (text or "").split(",") if n]


def _join(found: dict[str, str]) -> str:
    return ",".join(sorted(k.removeprefix(nfd_features.PREFIX) for k in found))


def _map_patch(path: str, old: dict[str, str], desired: dict[str, str], owned: list[str]) -> list[dict[str, str]]:
    def pointer(key: str) -> str:
        return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"

    patch = [{"op": "remove", "path": pointer(k)} for k in owned if k in old and k not in desired]
    return patch + [
        {"op": "replace" if k in old else "add", "path": pointer(k), "value": v}
        for k, v in desired.items()
        if old.get(k) != v
    ]


def master(proc: Any) -> Process:
    state, settings = Master(proc), proc.settings
    node = settings.variable("NODE_NAME")
    proc.say(f'I nfd-master.go] "Node Feature Discovery Master" version="{proc.container.image.tag}" nodeName="{node}"')
    try:
        state.config = nfd.read_config(proc, "nfd-master.go")
        if settings["prune"]:
            return (yield from _prune(proc, state)) if state.publishes else 0
        state.start()
        nfd.serve(proc)
        while len(state.synced) < len(state.kinds()):
            yield Sleep(0.5)
        if state.publishes:
            if not node:
                raise nfd.Failed("failed to update master node: resource name may not be empty")
            yield from proc.request("GET", f"/api/v1/nodes/{node}")
        proc.container.healthy = True
        if settings["enable-leader-election"]:
            yield from _lead(proc)
        return (yield from _work(proc, state))
    except nfd.Failed as error:
        proc.say(f'E main.go] "error while running" err="{error}"')
    except (ApiError, Unreachable) as error:
        proc.say(f'E main.go] "error while running" err="failed to update master node: {error}"')
    return 1


def _lead(proc: Any) -> Process:
    """Acquires the lease. A second master waits here."""
    namespace, name = proc.pod.namespace, "nfd-master.nfd.kubernetes.io"
    base = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    now = timestamp().replace("Z", ".000000Z")
    spec = {
        "holderIdentity": proc.pod.name,
        "leaseDurationSeconds": 15,
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": 0,
    }
    while True:
        try:
            yield from proc.request(
                "POST",
                base,
                {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec},
            )
            return
        except ApiError as error:
            if error.code != 409:
                proc.say(f'E leaderelection.go] "error retrieving resource lock {namespace}/{name}: {error}"')
        try:
            old = yield from proc.request("GET", f"{base}/{name}")
            if old["spec"].get("holderIdentity") in ("", proc.pod.name) or not _alive(
                proc, old["spec"]["holderIdentity"]
            ):
                old["spec"] = {**spec, "leaseTransitions": int(old["spec"].get("leaseTransitions") or 0) + 1}
                yield from proc.request("PUT", f"{base}/{name}", old)
                return
        except ApiError as error:
            proc.say(f'E leaderelection.go] "error retrieving resource lock {namespace}/{name}: {error}"')
        yield Sleep(5)


def _alive(proc: Any, holder: str) -> bool:
    pods = (p for node in proc.kubelet.agent.nodes.values() for p in node.pods.values())
    return any(p.name == holder and p.namespace == proc.pod.namespace and not p.finished for p in pods)


def _work(proc: Any, state: Master) -> Process:
    """Ten updates at a time (nfdApiParallelism)."""
    loop, running = proc.kubelet.loop, list[Any]()
    proc.container.beside.append(lambda: [task.cancel() for task in running])
    while True:
        if state.all_nodes:
            state.all_nodes = False
            yield from _all(proc, state)
        if not state.dirty:
            state.sleeping = proc.container.task
            yield Park()
            state.sleeping = None
            yield Sleep(proc.clock.delay("nfd_master"))
            continue
        batch = [state.dirty.popitem()[0] for _n in range(min(10, len(state.dirty)))]
        waiting = {"count": len(batch)}
        done = functools.partial(_counted_down, proc.container, waiting)
        running[:] = [loop.spawn(_one(proc, state, node), done) for node in batch]
        while waiting["count"]:
            yield Park()


def _counted_down(container: Any, waiting: dict[str, int], _result: Any) -> None:
    """One of a batch is done. The last one wakes the waiting task."""
    waiting["count"] -= 1
    if not waiting["count"]:
        container.task.wake()


def _all(proc: Any, state: Master) -> Process:
    """Every node of the cluster, including those without a NodeFeature object (their labels are removed)."""
    try:
        for item in (yield from proc.request("GET", "/api/v1/nodes")).get("items") or []:
            known = (item["metadata"].get("annotations") or {}).get(LABELS)
            if known or item["metadata"]["name"] in state.features:
                state.dirty[item["metadata"]["name"]] = None
    except (ApiError, Unreachable) as error:
        proc.say(f'E nfd-master.go] "failed to list nodes" err="{error}"')
        state.all_nodes = True
        yield Sleep(5)


def _one(proc: Any, state: Master, node: str) -> Process:
    if not state.publishes:
        return
    try:
        yield from state.update(node, state.desired(node))
    except ApiError as error:
        if error.code == 404:
            return
        proc.say(f'E nfd-master.go] "failed to process node" nodeName="{node}" err="failed to patch node: {error}"')
        yield Sleep(5)
        state.dirty[node] = None
    except Unreachable:
        state.dirty[node] = None


def _prune(proc: Any, state: Master) -> Process:
    """Labels and extended resources by patches, then annotations by an update of the whole node; for every node, including those without any."""
    nothing: dict[str, Any] = {"labels": {}, "resources": {}, "annotations": {}, "taints": []}
    try:
        for item in (yield from proc.request("GET", "/api/v1/nodes")).get("items") or []:
            name = item["metadata"]["name"]
            proc.say(f'I nfd-master.go] "pruning node..." nodeName="{name}"')
            yield from state.update(name, nothing)
            node = yield from proc.request("GET", f"/api/v1/nodes/{name}")
            notes = node["metadata"].get("annotations") or {}
            node["metadata"]["annotations"] = {
                key: value for key, value in notes.items() if not key.startswith(ANNOTATION_NS)
            }
            yield from proc.request("PUT", f"/api/v1/nodes/{name}", node)
        return 0
    except (ApiError, Unreachable) as error:
        proc.say(f'E main.go] "error while running" err="failed to prune node: {error}"')
        return 1
