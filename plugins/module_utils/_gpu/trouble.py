# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the state of a container or pod means for a gate: nothing yet, a possible failure, or a failure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import types

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import ContainerFacts, PodFacts

#: Number of crashes of one container that count as a failure. (A driver's first build can fail on a slow mirror, and NVIDIA's validator steps crash
#: once or twice while the previous step is not finished.)
CRASHES = 3
#: Seconds after which a run no longer counts as one of several crashes in a row: the kubelet resets its back-off after twice the longest one
#: (pkg/kubelet/kubelet.go, MaxContainerBackOff; client-go's flowcontrol.Backoff).
STEADY = 600.0
#: Number of crashes before the last one, by the kubelet's back-off in seconds. The kubelet counts from its own start, resets after a long run, and
#: doubles from 10 s to 300 s (kuberuntime_manager.go, doBackOff). With another configuration the numbers differ, and nothing is derived.
_REMEMBERED = {10: 1, 20: 2, 40: 3, 80: 4, 160: 5, 300: 6}
#: Reasons of containers whose end was not observed, because the node or its container runtime went down: containerd's (internal/cri/server,
#: unknownExitReason) and the kubelet's.
LOST = ("Unknown", "ContainerStatusUnknown")
#: Answers of a registry that are permanent.
_FINAL_PULL = re.compile(
    r"not found|manifest unknown|does not exist|unauthorized|denied|forbidden|no match for platform|x509|invalid reference|repository name",
    re.IGNORECASE,
)
#: Answers of a registry that tell what to do (docs.docker.com/docker-hub/usage/pulls; Go's crypto/x509).
_NEXT_OF_PULL = (
    (
        re.compile(r"toomanyrequests|429 Too Many Requests"),
        "the registry limits pulls: set hwaccel_image_pull_secrets, or a mirror in hwaccel_image_registry",
    ),
    (re.compile(r"x509:"), "let the node's container runtime trust the certificate authority of the registry"),
)
_PULL = ("ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed")
_AT_ONCE = ("InvalidImageName", "ErrImageNeverPull")
_CREATE = (
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PreStartHookError",
    "PostStartHookError",
)


@dataclasses.dataclass(frozen=True)
class Trouble:
    """state: "failed", or "stuck" (a failure unless it recovers within a grace time). brief: a few words, for a line about many nodes.

    container: the one whose log shows more, "" for none.
    """

    state: str
    brief: str
    reason: str
    next_step: str
    container: str = ""


def crashes(container: ContainerFacts) -> int:
    """Number of runs that failed in a row, as far as known: restarts counts all runs of the pod after the first."""
    if not _down(container):
        return container.restarts
    return 1 if container.lasted >= STEADY else container.restarts + 1


def _in_a_row(container: ContainerFacts, excused: int) -> tuple[int, bool]:
    """(crashes in a row, whether this is a lower bound): reboots count as restarts too, and the kubelet only reports crashes since its own start."""
    count = crashes(container) - excused
    if container.state == "terminated":
        # The kubelet has not reported its back-off yet.
        return min(count, 1), count > 1
    remembered = _REMEMBERED.get(container.back_off, count)
    # If there were more restarts than it remembers, the first one may have been caused by a reboot.
    return (count, False) if count <= remembered + 1 else (remembered, True)


def tried_again(before: PodFacts, after: PodFacts) -> bool:
    """Whether a run of a container, or a pull of an image, began between two observations. One that only ended in between does not count."""
    earlier = {container.name: container for container in (*before.inits, *before.containers)}
    return any(
        _tried_again(earlier.get(container.name, container), container)
        for container in (*after.inits, *after.containers)
    )


def _tried_again(before: ContainerFacts, after: ContainerFacts) -> bool:
    # The kubelet reports ErrImagePull after an attempt and ImagePullBackOff until the next one.
    return after.restarts > before.restarts or (after.reason == "ErrImagePull" and before.reason != "ErrImagePull")


def _down(container: ContainerFacts) -> bool:
    """Whether it crashed and is not running again. A container that is running may still succeed."""
    if container.state == "waiting":
        return container.reason == "CrashLoopBackOff" and container.last_reason not in LOST
    return container.state == "terminated" and container.exit_code != 0 and container.reason not in LOST


def of_pod(pod: PodFacts, excused: c.Mapping[str, int] = types.MappingProxyType({})) -> Trouble | None:
    """The first problem of a pod, in the kubelet's order. excused: crashes by container that do not count."""
    if pod.unschedulable:
        next_step = "let the DaemonSet tolerate the node's taints, or free the resource in the message"
        return Trouble(
            "stuck",
            "the pod cannot be scheduled",
            f"pod {pod.name} cannot be scheduled: {pod.unschedulable}",
            next_step,
        )
    if pod.phase == "Failed" and not pod.deleting:
        why = ": ".join(part for part in (pod.reason, pod.message) if part) or "it ended"
        next_step = "check the kubelet's reason; the DaemonSet creates a new pod"
        return Trouble("stuck", f"pod failed ({pod.reason})", f"pod {pod.name} failed: {why}", next_step, _loudest(pod))
    for container in (*pod.inits, *pod.containers):
        if found := of_container(container, pod, excused.get(container.name, 0)):
            return found
    if _creating(pod) and not pod.sandbox:
        next_step = (
            "check the pod's events: usually the container runtime does not have the handler of the RuntimeClass yet"
        )
        return Trouble(
            "stuck", "the pod's sandbox is not created", f"pod {pod.name}: its sandbox is not created", next_step
        )
    return None


def of_container(container: ContainerFacts, pod: PodFacts, excused: int = 0) -> Trouble | None:
    reason, what = container.reason, f"container {container.name} of pod {pod.name}"
    message = f": {container.message}" if container.message else ""
    if container.state == "waiting":
        if reason in _AT_ONCE:
            return Trouble("failed", reason, f"{what}: {reason}{message}", "correct the image's name")
        if reason in _PULL:
            state = "failed" if _FINAL_PULL.search(container.message) else "stuck"
            known = (step for pattern, step in _NEXT_OF_PULL if pattern.search(container.message))
            next_step = next(known, "check the image's name, the pull secret and that the node reaches the registry")
            # During a back-off the kubelet puts its own message before the registry's.
            why = container.message.rpartition("ErrImagePull: ")[2] or reason
            return Trouble(state, "the image cannot be pulled", f"{what}: the image cannot be pulled: {why}", next_step)
        if reason in _CREATE:
            return Trouble(
                "stuck",
                reason,
                f"{what}: {reason}{message}",
                "create the missing object in the message (ConfigMap, Secret, path, runtime handler)",
            )
    if _down(container) and crashes(container) > excused:
        return _crashing(container, what, *_in_a_row(container, excused))
    return None


def _crashing(container: ContainerFacts, what: str, count: int, at_least: bool) -> Trouble:
    code = container.exit_code if container.state == "terminated" else container.last_exit
    why = container.reason if container.state == "terminated" else container.last_reason
    detail = f" ({why})" if why and why != "Error" else ""
    if container.message and container.state != "running":
        detail += f": {container.message}"
    ended = f"exit code {code}" if code is not None else "it ended"
    # A container that ended without an error is restarted. NVIDIA's toolkit does this after it signals containerd (see objects/platforms.py).
    verb = "ended" if code == 0 else "crashed"
    state = "failed" if count >= CRASHES and code != 0 else "stuck"
    times = f"at least {_times(count)}" if at_least else _times(count)
    return Trouble(
        state,
        f"{container.name} {verb} {times}",
        f"{what} {verb} {times}, last with {ended}{detail}",
        "check its log",
        container.name,
    )


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _creating(pod: PodFacts) -> bool:
    return pod.phase == "Pending" and bool(pod.node)


def _loudest(pod: PodFacts) -> str:
    return next(
        (
            container.name
            for container in (*pod.inits, *pod.containers)
            if container.state == "terminated" and container.exit_code
        ),
        "",
    )
