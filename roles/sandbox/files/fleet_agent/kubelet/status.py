# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pod status in kubelet's format, from the state of the containers. Pure."""

from __future__ import annotations

from typing import Any


def container_status(container: Any) -> dict[str, Any]:
    """container: see containers.Container; only its public state is read."""
    status: dict[str, Any] = {
        "name": container.name,
        "state": container.state,
        "lastState": container.last_state,
        "ready": container.ready,
        "restartCount": container.restarts,
        "image": container.image_name,
        "imageID": container.image_id if container.container_id else "",
        "started": container.started,
    }
    if container.container_id:
        status["containerID"] = f"{container.runtime}://{container.container_id}"
    return status


def _condition(
    kind: str, value: bool, reason: str, message: str, previous: dict[str, dict[str, Any]], now: str, generation: int
) -> dict[str, Any]:
    old = previous.get(kind)
    word = "True" if value else "False"
    since = old["lastTransitionTime"] if old and old["status"] == word else now
    condition: dict[str, Any] = {"type": kind, "status": word, "lastProbeTime": None, "lastTransitionTime": since}
    if generation:
        condition["observedGeneration"] = generation
    if not value and reason:
        condition["reason"] = reason
        if message:
            condition["message"] = message
    elif value and reason == "PodCompleted":
        condition["reason"] = reason
    return condition


def phase(init: list[Any], main: list[Any], policy: str) -> str:
    """Phase by kubelet's rules (getPhase): pending until initialized, running while something runs or will run again."""
    if any(
        "terminated" in c.state and c.state["terminated"]["exitCode"] != 0 and not _again(c, policy)
        for c in init
        if not c.sidecar
    ):
        return "Failed"
    ended = [c for c in main if "terminated" in c.state and not _again(c, policy)]
    if len(ended) == len(main) and main:
        return "Failed" if any(c.state["terminated"]["exitCode"] != 0 for c in ended) else "Succeeded"
    if any("waiting" in c.state and not c.last_state and c.restarts == 0 for c in main):
        return "Pending"
    return "Running"


def _again(container: Any, policy: str) -> bool:
    code = container.state["terminated"]["exitCode"]
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _initialized(init: list[Any], main: list[Any]) -> bool:
    if any("running" in c.state or "terminated" in c.state for c in main):
        return True  # A pod that once started its containers counts as initialized, even if it starts again after a reboot.
    return all(c.started if c.sidecar else c.finished for c in init)


def build(pod: Any, now: str) -> dict[str, Any]:
    """The status document; `pod` is a pods.Pod."""
    init, main = pod.init, pod.main
    state = pod.forced_phase or phase(init, main, pod.restart_policy)
    previous, generation = pod.conditions, pod.generation
    done = state in ("Succeeded", "Failed")
    unready = [c.name for c in main if not c.ready]
    incomplete = [c.name for c in init if not (c.started if c.sidecar else c.finished)]
    text = f"containers with unready status: [{' '.join(unready)}]"
    why = ("PodCompleted" if state == "Succeeded" else "PodFailed") if done else "ContainersNotReady"
    ready = not unready and not done and bool(main) and pod.sandbox_ready
    initialized = _initialized(init, main) or state == "Succeeded"
    message = "" if done else text
    conditions = [
        _condition("PodReadyToStartContainers", pod.sandbox_ready and not done, "", "", previous, now, generation),
        _condition(
            "Initialized",
            initialized,
            "PodCompleted" if state == "Succeeded" else "ContainersNotInitialized",
            f"containers with incomplete status: [{' '.join(incomplete)}]",
            previous,
            now,
            generation,
        ),
        _condition("Ready", ready, why, message, previous, now, generation),
        _condition("ContainersReady", ready, why, message, previous, now, generation),
        _condition("PodScheduled", True, "", "", previous, now, generation),
    ]
    status: dict[str, Any] = {
        "phase": state,
        "conditions": conditions,
        "hostIP": pod.host_ip,
        "hostIPs": [{"ip": pod.host_ip}],
        "startTime": pod.start_time,
        "qosClass": pod.qos,
    }
    if generation:
        status["observedGeneration"] = generation
    if pod.sandbox_ready and pod.pod_ip:
        status.update({"podIP": pod.pod_ip, "podIPs": [{"ip": pod.pod_ip}]})
    if pod.status_reason:
        status.update({"reason": pod.status_reason, "message": pod.status_message})
    else:
        if main:
            status["containerStatuses"] = [container_status(c) for c in main]
        if init:
            status["initContainerStatuses"] = [container_status(c) for c in init]
    return status


def qos_class(spec: dict[str, Any]) -> str:
    """Only used if the server has not set one, which it does at creation."""
    resources = [c.get("resources") or {} for c in spec["containers"]]
    if not any(r.get("requests") or r.get("limits") for r in resources):
        return "BestEffort"
    full = all(
        {"cpu", "memory"} <= set(r.get("limits") or {}) and (r.get("requests") or r["limits"]) == r["limits"]
        for r in resources
    )
    return "Guaranteed" if full else "Burstable"
