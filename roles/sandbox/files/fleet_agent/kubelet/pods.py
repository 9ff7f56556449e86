# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pod on one simulated node, from its admission to its deletion."""

from __future__ import annotations

import json
from typing import Any

from fleet_agent.clock import timestamp
from fleet_agent.cluster.api import AGENT, ApiError, Unreachable, node_identity
from fleet_agent.kubelet import claims, process, runtime, status
from fleet_agent.kubelet.containers import Container
from fleet_agent.kubelet.volumes import MountFailure, Volumes
from fleet_agent.loop import Call, Killed, Park, Process, Sleep, Task, Terminated

_SPECS: dict[str, dict[str, Any]] = {}


def shared_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """One dictionary for all pods that differ only in what the scheduler and the server filled in: to save memory with 1,000 nodes."""
    token = next((v["name"] for v in spec.get("volumes") or [] if v["name"].startswith("kube-api-access-")), "")
    dropped = (
        "nodeName",
        "affinity",
        "tolerations",
        "schedulerName",
        "priority",
        "preemptionPolicy",
        "enableServiceLinks",
    )
    text = json.dumps({k: v for k, v in spec.items() if k not in dropped}, sort_keys=True)
    if token:
        text = text.replace(token, "kube-api-access")
    return _SPECS.setdefault(text, json.loads(text))


class Pod:
    """State of a pod; `status.build` converts it to the API's status."""

    def __init__(self, kubelet: Any, item: dict[str, Any]) -> None:
        self.kubelet = kubelet
        metadata = item["metadata"]
        self.name, self.namespace, self.uid = metadata["name"], metadata["namespace"], metadata["uid"]
        self.spec = shared_spec(item["spec"])
        self.account = self.spec.get("serviceAccountName") or "default"
        self.restart_policy = self.spec.get("restartPolicy") or "Always"
        self.owners = metadata.get("ownerReferences") or []
        self.take(item)
        old = item.get("status") or {}
        self.qos = old.get("qosClass") or status.qos_class(self.spec)
        self.conditions: dict[str, dict[str, Any]] = {c["type"]: c for c in old.get("conditions") or []}
        self.start_time = old.get("startTime") or timestamp()
        self.host_ip = "127.0.0.1"
        self.pod_ip = ""
        self.forced_phase = self.status_reason = self.status_message = ""
        self.sandbox_ready = self.stopping = False
        self.handler = ""
        self.volumes = Volumes(self, kubelet.host, kubelet.store)
        self.init = [Container(self, c, True) for c in self.spec.get("initContainers") or []]
        self.main = [Container(self, c, False) for c in self.spec["containers"]]
        self.sent: dict[str, Any] | None = None
        self.dirty = self.in_flight = False
        self.reported: set[tuple[str, str]] = set()
        self.task: Task | None = None
        self._take_over(old)

    def take(self, item: dict[str, Any]) -> None:
        """Applies fields that may change while it runs."""
        metadata = item["metadata"]
        self.labels, self.annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        self.generation = int(metadata.get("generation") or 0)
        self.deletion = metadata.get("deletionTimestamp")
        self.grace = metadata.get("deletionGracePeriodSeconds")
        self.claims = claims.names(item)

    def disowned(self, item: dict[str, Any]) -> bool:
        """Whether the node lifecycle controller marked it not ready, without a reason of kubelet (pkg/controller/util/node, MarkPodsNotReady)."""
        reported: dict[str, Any] = next(
            (c for c in (item.get("status") or {}).get("conditions") or [] if c["type"] == "Ready"), {}
        )
        return reported.get("status") == "False" and not reported.get("reason") and self.sent is not None

    def _take_over(self, old: dict[str, Any]) -> None:
        """A pod that already ran when this agent started: its machine was off in the meantime."""
        by_name = {
            s["name"]: s for s in (old.get("containerStatuses") or []) + (old.get("initContainerStatuses") or [])
        }
        for container in self.init + self.main:
            before = by_name.get(container.name)
            if before and before.get("containerID"):
                container.container_id = before["containerID"].partition("//")[2]
                container.restarts = int(before.get("restartCount", 0))
                container.state = before["state"]
                container.power_cut()

    @property
    def containers(self) -> list[Container]:
        return self.init + self.main

    @property
    def finished(self) -> bool:
        return self.forced_phase in ("Failed", "Succeeded")

    def changed(self) -> None:
        self.kubelet.pod_changed(self)

    def wants(self) -> dict[str, int]:
        """Extended resources of the pod: the larger of all main containers together and each init container."""

        def limits(container: Container) -> dict[str, int]:
            found = (container.spec.get("resources") or {}).get("limits") or {}
            return {k: int(v) for k, v in found.items() if "/" in k and str(v).isdigit()}

        total: dict[str, int] = {}
        for container in self.main:
            for key, count in limits(container).items():
                total[key] = total.get(key, 0) + count
        for container in self.init:
            for key, count in limits(container).items():
                total[key] = max(total.get(key, 0), count)
        return {key: count for key, count in total.items() if count}

    # -- life

    def run(self) -> Process:
        """From the binding to the end of the last container."""
        refusal = self.kubelet.devices.allocate(self)
        if refusal:
            self.forced_phase, self.status_reason, self.status_message = "Failed", "UnexpectedAdmissionError", refusal
            self.kubelet.event(self, "UnexpectedAdmissionError", refusal)
            return self.changed()
        self.changed()
        yield from self._sandbox()
        yield from self._containers()

    def _sandbox(self) -> Process:
        kubelet = self.kubelet
        yield Sleep(kubelet.clock.delay("sandbox"))
        while True:
            try:
                self.volumes.set_up()
                break
            except MountFailure as failure:
                kubelet.event(self, "FailedMount", str(failure))
            yield Sleep(kubelet.clock.delay("volume_retry"))
        while fault := (yield from claims.unprepared(kubelet, self.namespace, self.claims)):
            kubelet.event(self, "FailedPrepareDynamicResources", f"Failed to prepare dynamic resources: {fault}")
            yield Sleep(kubelet.clock.delay("sandbox_retry"))
        name = self.spec.get("runtimeClassName")
        while True:
            handler = kubelet.runtime_handler(name) if name else ""
            fault = (
                f'RuntimeClass "{name}" not found'
                if handler is None
                else runtime.sandbox_fault(kubelet, handler, kubelet.clock.hexadecimal(64))
            )
            if not fault:
                self.handler = handler
                break
            kubelet.event(self, "FailedCreatePodSandBox", fault)
            yield Sleep(kubelet.clock.delay("sandbox_retry"))
        self.sandbox_ready = True
        self.pod_ip = self.host_ip if self.spec.get("hostNetwork") else kubelet.next_pod_ip()
        self.changed()

    def _containers(self) -> Process:
        kubelet = self.kubelet
        for container in self.init:
            done = kubelet.loop.spawn(container.supervise(), lambda _code: self.task.wake() if self.task else None)
            container.task = done
            if container.sidecar:
                while not container.started:
                    yield Sleep(0.5)
                continue
            if not done.done:
                yield Park()
            if not container.finished:
                return self._end("Failed")
            yield Sleep(kubelet.clock.delay("next_init"))
        for container in self.main:
            if "waiting" in container.state:
                container.state = {"waiting": {"reason": "ContainerCreating"}}
        remaining = {c.name for c in self.main}

        def gone(name: str) -> None:
            remaining.discard(name)
            if not remaining and self.task:
                self.task.wake()

        for container in self.main:
            container.task = kubelet.loop.spawn(container.supervise(), lambda _code, name=container.name: gone(name))
        while remaining:
            yield Park()
        failed = any(c.state.get("terminated", {}).get("exitCode") for c in self.main)
        return self._end("Failed" if failed else "Succeeded")

    def _end(self, phase: str) -> None:
        if self.stopping:
            return
        for container in self.init:
            if container.sidecar:
                container.signal(Terminated())
        self.forced_phase = phase
        self.kubelet.devices.free(self)
        self.changed()

    # -- the end

    def terminate(self) -> Process:
        """preStop hooks, SIGTERM, SIGKILL after the grace period, last status, deletion by the node."""
        kubelet = self.kubelet
        self.stopping = True
        if self.task:
            self.task.cancel()
        running = [c for c in self.containers if "running" in c.state]
        for container in self.containers:
            if container not in running and container.task:
                container.task.cancel()
        grace = float(self.grace if self.grace is not None else self.spec.get("terminationGracePeriodSeconds", 30))
        deadline = kubelet.loop.spawn(self._deadline(grace, running)) if running else None
        hooks = [kubelet.loop.spawn(self._stop(c)) for c in running]
        while any("running" in c.state for c in running):
            yield Sleep(0.25)
        for task in [*hooks, *([deadline] if deadline else [])]:
            task.cancel()
        kubelet.devices.free(self)
        self.sandbox_ready = False
        if not self.finished:
            self.forced_phase = (
                "Failed" if any(c.state.get("terminated", {}).get("exitCode", 0) for c in self.main) else "Succeeded"
            )
        yield from self._delete()

    @staticmethod
    def _stop(container: Container) -> Process:
        hook = (container.spec.get("lifecycle") or {}).get("preStop") or {}
        if "exec" in hook:
            yield from process.run_probe(container, list(hook["exec"].get("command") or []), lambda _text: None)
        elif "sleep" in hook:
            yield Sleep(float(hook["sleep"].get("seconds", 0)))
        yield Sleep(0.01)
        container.signal(Terminated())

    @staticmethod
    def _deadline(grace: float, running: list[Container]) -> Process:
        yield Sleep(max(grace, 0.2))
        for container in running:
            if "running" in container.state:
                container.signal(Killed())

    def _delete(self) -> Process:
        kubelet = self.kubelet
        path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        identity = node_identity(kubelet.name)
        last = status.build(self, timestamp())
        patch = {"metadata": {"uid": self.uid}, "status": last}
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
        while True:
            try:
                if self.grace != 0:
                    yield Call(
                        lambda: kubelet.api.request(
                            "PATCH", path + "/status", patch, identity, "application/merge-patch+json"
                        )
                    )
                yield Call(lambda: kubelet.api.request("DELETE", path, options, identity))
                return
            except ApiError as error:
                if error.code in (404, 409):
                    return
                kubelet.complain(f"deleting pod {self.namespace}/{self.name}: {error.message}")
            except Unreachable:
                pass
            yield Sleep(5)

    def power_cut(self) -> None:
        """The machine is off. Containers are gone at the next start, and pods that may not restart have failed."""
        for task in [self.task, *(c.task for c in self.containers)]:
            if task:
                task.cancel()
        for container in self.containers:
            container.power_cut()
        self.sandbox_ready = False

    def after_boot(self) -> None:
        if self.finished or self.stopping:
            return
        if self.restart_policy == "Never" and any("terminated" in c.state for c in self.main):
            self.forced_phase = "Failed"
            self.kubelet.devices.free(self)
            return self.changed()
        for container in self.containers:
            if container.container_id:
                container.restarts += 1
            if "waiting" in container.state:
                container.state = {"waiting": {"reason": "PodInitializing" if self.init else "ContainerCreating"}}
        self.changed()
        self.task = self.kubelet.loop.spawn(self.run())


__all__ = ["AGENT", "Pod", "shared_spec"]
