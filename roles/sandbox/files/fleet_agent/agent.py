# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet: machines from the fleet file, watches on the API server, and one loop."""

from __future__ import annotations

import concurrent.futures
import functools
import json
import os
import sys
import time
import uuid
from typing import Any

from fleet_agent.clock import Clock
from fleet_agent.cluster.api import AGENT, Api, ApiError, Informer, Unreachable
from fleet_agent.kubelet import writers
from fleet_agent.kubelet.joined import JoinedKubelet
from fleet_agent.kubelet.node import SIMULATED, Kubelet
from fleet_agent.kubelet.volumes import Store
from fleet_agent.loop import Call, Loop, Process
from fleet_agent.machine.control import ControlFile
from fleet_agent.machine.faults import Faults
from fleet_agent.machine.fleet import Fleet, FleetFile, NodeSpec

METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Agent:
    """State that all nodes share. joined: the nodes have joined by themselves."""

    def __init__(self, kubeconfig: str, fleet_path: str, state: str, port: int, joined: bool = False) -> None:
        self._kubelet = JoinedKubelet if joined else Kubelet
        self.api = Api(kubeconfig)
        self.fleet_file = FleetFile(fleet_path)
        self.state, self.port = state, port
        self.incarnation = uuid.uuid4().hex  # A new agent treats machines as just powered on.
        self.clock = Clock()
        self.loop = Loop(self.clock, concurrent.futures.ThreadPoolExecutor(12, "request"))
        self.store = Store()
        self.statuses = writers.StatusWriter(self)
        self.events = writers.EventWriter(self)
        self.faults = Faults()
        self.images: frozenset[str] = frozenset()
        self.nodes: dict[str, Kubelet] = {}
        self.pods: dict[str, str] = {}  # uid -> node
        self.runtime_classes: dict[str, str] = {}
        self.version = "v1.36.4"
        self.control = ControlFile(self, os.path.join(state, "control.jsonl"))
        self._numbers = 0
        self._waiting: dict[str, dict[str, Any]] = {}
        self._synced: set[str] = set()
        self._ready_written = (False, -1, 0)

    METADATA = METADATA
    #: Seconds in which a worker does not check its object: 20 idle nodes at a time scale of 0.01 would read it up to 40 times a second.
    quiet = 5.0

    def polite(self, proc: Any) -> float:
        """Minimum pause between the cycles of a worker on each node, in simulated seconds, which limits the load of the API server by a large fleet."""
        return len(self.nodes) / 20 / max(self.clock.scale, 1e-6)

    def start(self) -> None:
        self.loop.in_thread(lambda: self.api.request("GET", "/version", tries=60), self._take_version)
        for path, handler in (
            ("/apis/node.k8s.io/v1/runtimeclasses", self._runtime_class),
            ("/api/v1/configmaps", self._config_map),
            ("/api/v1/secrets", self._secret),
        ):
            self._watch(path, handler)
        self._watch("/api/v1/nodes", self._node, accept=METADATA)
        self._watch("/api/v1/pods", self._pod, {"fieldSelector": "spec.nodeName!="})
        self._look()

    def _take_version(self, answer: Any, error: BaseException | None) -> None:
        if error is None:
            self.version = answer.get("gitVersion", self.version)

    def _watch(
        self, path: str, handler: Any, query: dict[str, Any] | None = None, accept: str = "application/json"
    ) -> None:
        def on_event(kind: str, item: dict[str, Any]) -> None:
            if kind == "SYNCED":
                self.loop.post(self._synced.add, path)
            else:
                item.get("metadata", {}).pop("managedFields", None)
                self.loop.post(handler, kind, item)

        def on_error(error: Exception | None) -> None:
            if error:
                print(f"watch {path}: {error}", file=sys.stderr, flush=True)

        Informer(self.api, path, on_event, query=query, accept=accept, on_error=on_error).start()

    # -- the fleet file

    def _look(self) -> None:
        fleet = self.fleet_file.changed()
        if fleet:
            self._take_fleet(fleet)
        self.control.look()
        self._write_status()
        self.loop.later(0.3, self._look)

    def _take_fleet(self, fleet: Fleet) -> None:
        self.clock.scale, self.images = fleet.time_scale, fleet.images
        if not self.nodes:
            self.clock.reseed(fleet.seed)
        for name in [n for n in self.nodes if n not in fleet.nodes]:
            self.loop.spawn(self._remove(self.nodes.pop(name)))
        for name, spec in fleet.nodes.items():
            if name not in self.nodes:
                self._numbers += 1
                kubelet = self.nodes[name] = self._kubelet(self, spec, self._numbers)
                self.loop.spawn(kubelet.register())
            else:
                self._change(self.nodes[name], spec)

    def _change(self, kubelet: Kubelet, spec: NodeSpec) -> None:
        before = kubelet.desired
        if spec == before:
            return
        kubelet.desired = spec
        if (
            spec.boot != before.boot
            or spec.kernel != before.kernel
            or spec.os_image != before.os_image
            or spec.gpu != before.gpu
        ):
            self.loop.spawn(kubelet.reboot())
        else:
            kubelet.change(spec)
        if spec.labels != before.labels:
            self.loop.spawn(kubelet.administer(before.labels))
        if spec.taints != before.taints:
            self.loop.spawn(kubelet.set_taints())

    def _remove(self, kubelet: Kubelet) -> Process:
        """Removes the machine."""
        kubelet.up = False
        for pod in kubelet.pods.values():
            pod.stopping = True
            pod.power_cut()
        if kubelet.owns_node:
            pods = [f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}" for pod in kubelet.pods.values()]
            yield from self._delete_node(kubelet.name, pods)

    def _remove_left(self, name: str) -> Process:
        """Removes a machine that was deleted while no agent was running."""
        query = {"fieldSelector": f"spec.nodeName={name}"}
        found = yield Call(functools.partial(self.api.request, "GET", "/api/v1/pods", query=query))
        pods = [pod["metadata"] for pod in found["items"]]
        yield from self._delete_node(
            name, [f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}" for pod in pods]
        )

    def _delete_node(self, name: str, pods: list[str]) -> Process:
        """Deletes the Node of a removed machine and its pods, as an administrator would."""
        for path in (f"/api/v1/nodes/{name}", *pods):
            try:
                yield Call(functools.partial(self.api.request, "DELETE", path, {"gracePeriodSeconds": 0}, AGENT))
            except (ApiError, Unreachable) as error:
                print(f"removing {path}: {error}", file=sys.stderr, flush=True)

    def node_ready(self, kubelet: Kubelet) -> None:
        for item in [i for i in self._waiting.values() if i["spec"]["nodeName"] == kubelet.name]:
            del self._waiting[item["metadata"]["uid"]]
            kubelet.take_pod("ADDED", item)

    def _write_status(self) -> None:
        up = sum(node.up for node in self.nodes.values())
        ready = bool(self.nodes or self.fleet_file.stamp_read) and up == len(self.nodes) and len(self._synced) == 5
        fleet = self.fleet_file.stamp_read[0] if self.fleet_file.stamp_read else 0
        if (ready, up, fleet) == self._ready_written and int(time.monotonic()) % 10:
            return
        self._ready_written = (ready, up, fleet)
        path = os.path.join(self.state, "agent-status.json")
        with open(path + ".new", "w", encoding="utf-8") as stream:
            json.dump(
                {
                    "ready": ready,
                    "nodes": up,
                    "at": time.time(),
                    "fleet_mtime_ns": fleet,
                    "status_writes": self.statuses.written,
                },
                stream,
            )
        os.replace(path + ".new", path)

    # -- events of watches

    def _runtime_class(self, kind: str, item: dict[str, Any]) -> None:
        name = item["metadata"]["name"]
        if kind == "DELETED":
            self.runtime_classes.pop(name, None)
        else:
            self.runtime_classes[name] = item["handler"]

    def _config_map(self, kind: str, item: dict[str, Any]) -> None:
        if item["metadata"]["name"] != "kube-root-ca.crt":
            self._object("configmap", kind, item, dict(item.get("data") or {}))

    def _secret(self, kind: str, item: dict[str, Any]) -> None:
        # Values of Secrets are not read, because simulated programs do not need them and could only log them.
        self._object("secret", kind, item, dict.fromkeys(item.get("data") or {}, "simulated"))

    def _object(self, what: str, kind: str, item: dict[str, Any], data: dict[str, str]) -> None:
        namespace, name = item["metadata"]["namespace"], item["metadata"]["name"]
        key = (what, namespace, name)
        if kind == "DELETED":
            self.store.data.pop(key, None)
            return
        old, self.store.data[key] = self.store.data.get(key), data
        if old is not None and old != data:
            self.loop.later(self.clock.real(self.clock.jitter(30.0, 0.9)), self._refresh, what, namespace, name)

    def _refresh(self, what: str, namespace: str, name: str) -> None:
        """kubelet renews mounted files within about a minute."""
        data = self.store.get(what, namespace, name)
        for kubelet in self.nodes.values():
            for pod in kubelet.pods.values():
                if pod.namespace == namespace and data is not None:
                    pod.volumes.refresh(what, name, data)
            kubelet.host.changed()

    def _node(self, kind: str, item: dict[str, Any]) -> None:
        kubelet = self.nodes.get(item["metadata"]["name"])
        if kubelet and kind != "DELETED":
            kubelet.take_node(item)
        # Only Nodes that an agent created are removed, because a real machine may have joined.
        elif (
            kind == "ADDED"
            and self.fleet_file.stamp_read
            and (item["metadata"].get("annotations") or {}).items() >= SIMULATED.items()
        ):
            self.loop.spawn(self._remove_left(item["metadata"]["name"]))

    def _pod(self, kind: str, item: dict[str, Any]) -> None:
        uid = item["metadata"].get("uid")
        if uid is None:  # The object was missing after a lost watch.
            return self._lost(item["metadata"]["namespace"], item["metadata"]["name"])
        kubelet = self.nodes.get(item["spec"]["nodeName"])
        heard = kubelet is not None and (kind == "DELETED" or not kubelet.readiness.silent)
        if kubelet and heard and (kubelet.up or uid in kubelet.pods):
            kubelet.take_pod(kind, item)
        elif kind == "DELETED":
            self._waiting.pop(uid, None)
        else:
            self._waiting[uid] = item

    def _lost(self, namespace: str, name: str) -> None:
        for kubelet in self.nodes.values():
            for pod in list(kubelet.pods.values()):
                if (pod.namespace, pod.name) == (namespace, name):
                    kubelet.forget(pod)
