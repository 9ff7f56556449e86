# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One simulated node: its Node object, its pods, its devices."""

from __future__ import annotations

import re
import sys
import uuid
from typing import Any

from fleet_agent.clock import NodeClock
from fleet_agent.cluster.api import AGENT, MERGE, ApiError, Identity, Unreachable, node_identity
from fleet_agent.kubelet.pods import Pod
from fleet_agent.kubelet.readiness import Readiness
from fleet_agent.loop import Call, Killed, Process, Sleep
from fleet_agent.machine.devices import DeviceManager
from fleet_agent.machine.fleet import NodeSpec
from fleet_agent.machine.hostfs import Host

#: Annotation of nodes that an agent created, by which kwok recognizes them as well.
SIMULATED = {"kwok.x-k8s.io/node": "fake"}


class Kubelet:
    """Written as system:node:<name>; so that NodeRestriction applies."""

    #: Whether the agent creates its Node and deletes it.
    owns_node = True

    def __init__(self, agent: Any, spec: NodeSpec, number: int) -> None:
        self.agent, self.name, self.number = agent, spec.name, number
        self.api, self.loop, self.store = agent.api, agent.loop, agent.store
        self.desired = spec
        self.host = Host(spec, agent.incarnation)
        self.clock = NodeClock(agent.clock, lambda: agent.faults.slowness(self.host.spec))
        self.readiness = Readiness(self)
        self.devices = DeviceManager(self)
        self.pods: dict[str, Pod] = {}
        self.uid = ""
        self.labels: dict[str, str] = {}
        self.up = False
        self._addresses = 0
        self.kubelet_starts = 1
        self._started = self.loop.now()
        self._written: dict[str, Any] = {}

    # -- the Node object

    def _info(self) -> dict[str, Any]:
        spec = self.host.spec
        version = self.agent.version
        return {
            "machineID": uuid.uuid5(uuid.NAMESPACE_DNS, spec.name).hex,
            "systemUUID": str(uuid.uuid5(uuid.NAMESPACE_URL, spec.name)),
            "bootID": self.host.boot_id,
            "kernelVersion": spec.kernel,
            "osImage": spec.os_image,
            "containerRuntimeVersion": spec.container_runtime,
            "kubeletVersion": version,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": spec.image_arch,
        }

    def _status(self) -> dict[str, Any]:
        base = {
            "cpu": "64",
            "memory": "527954280Ki",
            "pods": "110",
            "ephemeral-storage": "1855263608Ki",
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "0",
        }
        devices = self.devices
        return {
            "capacity": {**base, **{r: str(n) for r, n in devices.capacity.items()}},
            "allocatable": {**base, **{r: str(n) for r, n in devices.allocatable.items()}},
            "conditions": self.readiness.conditions(),
            "nodeInfo": self._info(),
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": self.name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.agent.port}},
        }

    def _own_labels(self) -> dict[str, str]:
        """Labels of kubelet itself, and those of the fleet that a kubelet may set with --node-labels."""
        given = {
            k: v
            for k, v in self.host.spec.labels
            if not re.search(r"(^|\.)(kubernetes|k8s)\.io$", k.rpartition("/")[0])
        }
        arch = self.host.spec.image_arch
        return {
            **given,
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": arch,
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": arch,
        }

    def register(self) -> Process:
        """Creates the Node object, or takes over an existing one. Labels and taints of the fleet are written as an administrator."""
        spec = self.host.spec
        taints = [{"key": k, "effect": e, **({"value": v} if v else {})} for k, v, e in spec.taints]
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "status": self._status(),
            "spec": {"taints": taints} if taints else {},
            "metadata": {"name": self.name, "labels": self._own_labels(), "annotations": dict(SIMULATED)},
        }
        answer = yield from self._insist("POST", "/api/v1/nodes", node)
        if answer is None:
            answer = yield from self.patch_status(self._status())
        self._written = {"devices": (dict(self.devices.capacity), dict(self.devices.allocatable))}
        self.uid = answer["metadata"]["uid"] if answer else ""
        self.take_node(answer or {"metadata": {}})
        yield from self.administer()
        self._started = self.loop.now()
        self.up = True
        self.readiness.follow()
        if not self.readiness.silent:
            self.agent.node_ready(self)

    def administer(self, before: tuple[tuple[str, str], ...] = ()) -> Process:
        """Sets the fleet's labels on the Node as an administrator."""
        desired: dict[str, str | None] = {**dict.fromkeys(key for key, _value in before), **dict(self.desired.labels)}
        if any(self.labels.get(k) != v for k, v in desired.items()):
            yield from self._insist("PATCH", f"/api/v1/nodes/{self.name}", {"metadata": {"labels": desired}}, AGENT)

    def set_taints(self) -> Process:
        taints = [{"key": k, "effect": e, **({"value": v} if v else {})} for k, v, e in self.desired.taints]
        yield from self._insist("PATCH", f"/api/v1/nodes/{self.name}", {"spec": {"taints": taints}}, AGENT)

    def patch_status(self, status: dict[str, Any], identity: Identity | None = None) -> Process:
        return (yield from self._insist("PATCH", f"/api/v1/nodes/{self.name}/status", {"status": status}, identity))

    def change(self, spec: NodeSpec) -> None:
        """Changes the machine without a reboot."""
        self.host.spec = spec
        self.host.changed()
        self.readiness.follow()
        for container in [c for pod in self.pods.values() for c in pod.containers if c.starves]:
            container.signal(Killed())

    def ready_again(self) -> None:
        """Processes missed changes after a period without contact, and reports the state of pods, which the control plane has marked not ready."""
        self.agent.node_ready(self)
        for pod in self.pods.values():
            self.report_again(pod)
        self.write_devices()

    def report_again(self, pod: Pod) -> None:
        pod.sent = None
        self.pod_changed(pod)

    def _insist(self, method: str, path: str, body: Any, identity: Any = None) -> Process:
        """Retries until it succeeds; None if the object exists already (POST) or is gone (PATCH)."""
        who = identity if identity is not None else node_identity(self.name)
        kind = MERGE if method == "PATCH" else "application/json"
        while True:
            try:
                return (yield Call(lambda: self.api.request(method, path, body, who, kind)))
            except ApiError as error:
                if error.code in (404, 409):
                    return None
                self.complain(f"{method} {path}: {error.message}")
            except Unreachable:
                pass
            yield Sleep(5)

    def take_node(self, item: dict[str, Any]) -> None:
        """The Node's metadata from the watch."""
        metadata = item["metadata"]
        self.uid = metadata.get("uid", self.uid)
        labels = metadata.get("labels") or {}
        if labels != self.labels:
            self.labels = labels
            self.host.changed()

    def write_devices(self) -> None:
        if self.up and not self.readiness.silent:
            self.loop.spawn(self._write_devices())

    def _write_devices(self) -> Process:
        devices = self.devices
        figures = (dict(devices.capacity), dict(devices.allocatable))
        if self._written.get("devices") == figures:
            return
        self._written["devices"] = figures
        capacity, allocatable = ({r: str(n) for r, n in found.items()} for found in figures)
        yield from self.patch_status({"capacity": capacity, "allocatable": allocatable})

    # -- pods

    def take_pod(self, kind: str, item: dict[str, Any]) -> None:
        uid = item["metadata"]["uid"]
        pod = self.pods.get(uid)
        if kind == "DELETED":
            if pod:
                self.forget(pod)
            return
        if pod is None:
            self._new_pod(item)
            return
        pod.take(item)
        if self.readiness.ready and pod.disowned(item):
            self.report_again(pod)
        if pod.deletion and not pod.stopping and self.up:
            pod.stopping = True
            self.loop.spawn(pod.terminate())

    def _new_pod(self, item: dict[str, Any]) -> None:
        pod = Pod(self, item)
        if (item.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            pod.forced_phase = item["status"]["phase"]
        self.pods[pod.uid] = pod
        if self.up:
            self.start_pod(pod)

    def start_pod(self, pod: Pod) -> None:
        if pod.deletion:
            pod.stopping = True
            self.loop.spawn(pod.terminate())
        elif not pod.finished:
            if any(c.container_id for c in pod.containers):
                pod.after_boot()
            else:
                pod.task = self.loop.spawn(pod.run())

    def forget(self, pod: Pod) -> None:
        """Deleted from the API without kubelet (force deletion): remaining processes are killed."""
        del self.pods[pod.uid]
        pod.stopping = True
        for task in [pod.task, *(c.task for c in pod.containers)]:
            if task and not task.done:
                task.cancel()
        for container in pod.containers:
            if "running" in container.state:
                container.stopped_by_force()
        self.devices.free(pod)

    def pod_changed(self, pod: Pod) -> None:
        if not pod.stopping:
            self.agent.statuses.add(pod)

    def runtime_handler(self, name: str) -> str | None:
        return self.agent.runtime_classes.get(name)

    def next_pod_ip(self) -> str:
        self._addresses = self._addresses % 250 + 1
        return f"10.{128 + self.number // 250 % 64}.{self.number % 250}.{self._addresses}"

    def event(self, pod: Pod, reason: str, message: str) -> None:
        """Only warnings, each once for a pod whatever its numbers, because normal events would be the majority of writes."""
        key = (reason, re.sub(r"[0-9a-f]{16,}|\d+", "", message)[:300])
        if key not in pod.reported and not self.readiness.silent:
            pod.reported.add(key)
            self.agent.events.warn(self, pod, reason, message)

    def complain(self, text: str) -> None:
        print(f"node {self.name}: {text}", file=sys.stderr, flush=True)

    def probe_wait(self, period: float) -> float:
        """Seconds before the first probe: a random part of its period while the kubelet is younger (worker.run in pkg/kubelet/prober/worker.go)."""
        young = self.loop.now() - self._started < self.clock.real(period)
        return self.clock.portion(period) if young else 0.0

    # -- power

    def restarted(self) -> None:
        """Only kubelet restarts: plugins detect a new kubelet.sock and register again, pods keep running."""
        self.devices.kubelet_restarted()
        self.write_devices()
        self.kubelet_starts += 1
        self._started = self.loop.now()
        self.host.changed()

    def reboot(self) -> Process:
        """Powers off, and on again with the current fleet file."""
        self.up = False
        for pod in self.pods.values():
            pod.power_cut()
        self.devices.kubelet_restarted()
        yield Sleep(self.clock.delay("reboot"))
        self.host.spec = self.desired
        self.kubelet_starts += 1
        self.host.boot()
        yield Sleep(self.clock.delay("boot"))
        self._started = self.loop.now()
        self._written = {}
        yield from self.patch_status(self._status())
        self.up = True
        self.readiness.follow()
        for pod in list(self.pods.values()):
            if pod.deletion and not pod.stopping:
                self.start_pod(pod)
            elif pod.stopping:
                self.loop.spawn(pod.terminate())
            elif any(c.container_id for c in pod.containers):
                pod.after_boot()
            else:
                self.start_pod(pod)
