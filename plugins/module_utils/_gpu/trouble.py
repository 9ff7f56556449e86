# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one container's or pod's state means for a gate: nothing yet, a suspicion, or a failure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import types

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import ContainerFacts, PodFacts

#: So many runs of one container have crashed: no accident any more. (A driver's first build can fail on a slow mirror, and NVIDIA's validator steps crash
#: once or twice while the step before is not finished.)
CRASHES = 3
#: Seconds after which a run is no part of a row of crashes any more: the kubelet forgets its back-off after twice the longest one
#: (pkg/kubelet/kubelet.go, MaxContainerBackOff; client-go's flowcontrol.Backoff).
STEADY = 600.0
#: How many runs before the last one a kubelet remembers, by the seconds that it backs off for. It counts from its own start, forgets after a steady run, and
#: doubles from 10 s to 300 s (kuberuntime_manager.go, doBackOff). What was configured otherwise tells other numbers, and nothing.
_REMEMBERED = {10: 1, 20: 2, 40: 3, 80: 4, 160: 5, 300: 6}
#: Ends that nobody saw, because the node or its container runtime went down: containerd's (internal/cri/server, unknownExitReason) and the kubelet's.
LOST = ("Unknown", "ContainerStatusUnknown")
#: A registry's answers that no waiting mends.
_FINAL_PULL = re.compile(
    r"not found|manifest unknown|does not exist|unauthorized|denied|forbidden|no match for platform|x509|invalid reference|repository name",
    re.IGNORECASE,
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
    """state: "failed", or "stuck" (a failure unless it goes away within a grace time). brief: a few words, for a line about many nodes.

    container: whose log tells more, "" for none.
    """

    state: str
    brief: str
    reason: str
    next_step: str
    container: str = ""


def crashes(container: ContainerFacts) -> int:
    """How many runs have ended badly in a row, as far as can be seen: restarts counts the runs after the first, of the pod's whole life."""
    if not _down(container):
        return container.restarts
    return 1 if container.lasted >= STEADY else container.restarts + 1


def _in_a_row(container: ContainerFacts, excused: int) -> tuple[int, bool]:
    """(crashes in a row, whether these are only those that are sure): reboots count as restarts too, and the kubelet tells what it has seen since."""
    count = crashes(container) - excused
    if container.state == "terminated":
        # The kubelet has not said yet how long it backs off.
        return min(count, 1), count > 1
    remembered = _REMEMBERED.get(container.back_off, count)
    # Where there were more restarts than it remembers, the first that it does can have been a reboot's.
    return (count, False) if count <= remembered + 1 else (remembered, True)


def tried_again(before: PodFacts, after: PodFacts) -> bool:
    """Whether a run of a container, or a pull of an image, began between two looks. One that ends in between says nothing of the time since `before`."""
    earlier = {container.name: container for container in (*before.inits, *before.containers)}
    return any(
        _tried_again(earlier.get(container.name, container), container)
        for container in (*after.inits, *after.containers)
    )


def _tried_again(before: ContainerFacts, after: ContainerFacts) -> bool:
    # The kubelet says ErrImagePull after a try and ImagePullBackOff until the next one.
    return after.restarts > before.restarts or (after.reason == "ErrImagePull" and before.reason != "ErrImagePull")


def _down(container: ContainerFacts) -> bool:
    """Crashed and not running again: this run may be the one that works."""
    if container.state == "waiting":
        return container.reason == "CrashLoopBackOff" and container.last_reason not in LOST
    return container.state == "terminated" and container.exit_code != 0 and container.reason not in LOST


def of_pod(pod: PodFacts, excused: c.Mapping[str, int] = types.MappingProxyType({})) -> Trouble | None:
    """The first thing wrong with a pod, in the order in which the kubelet works. excused: crashes by container that do not count."""
    if pod.unschedulable:
        next_step = "let the DaemonSet tolerate the node's taints, or free the resource that it names"
        return Trouble("stuck", "no place for the pod", f"pod {pod.name} has no place: {pod.unschedulable}", next_step)
    if pod.phase == "Failed" and not pod.deleting:
        why = ": ".join(part for part in (pod.reason, pod.message) if part) or "it ended"
        next_step = "see the kubelet's reason; the DaemonSet makes a new pod"
        return Trouble("stuck", f"pod failed ({pod.reason})", f"pod {pod.name} failed: {why}", next_step, _loudest(pod))
    for container in (*pod.inits, *pod.containers):
        if found := of_container(container, pod, excused.get(container.name, 0)):
            return found
    if _creating(pod) and not pod.sandbox:
        next_step = "see the pod's events: mostly a RuntimeClass whose handler the container runtime does not know yet"
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
            next_step = "check the image's name, the pull secret and that the node reaches the registry"
            # In the back-off the kubelet puts its own words before the registry's.
            why = container.message.rpartition("ErrImagePull: ")[2] or reason
            return Trouble(state, "the image cannot be pulled", f"{what}: the image cannot be pulled: {why}", next_step)
        if reason in _CREATE:
            return Trouble(
                "stuck",
                reason,
                f"{what}: {reason}{message}",
                "create what the message names (ConfigMap, Secret, path, runtime handler)",
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
    # Ended without an error, to be started again: as NVIDIA's toolkit does where it signals containerd (objects/platforms.py says why).
    verb = "ended" if code == 0 else "crashed"
    state = "failed" if count >= CRASHES and code != 0 else "stuck"
    times = f"at least {_times(count)}" if at_least else _times(count)
    return Trouble(
        state,
        f"{container.name} {verb} {times}",
        f"{what} {verb} {times}, last with {ended}{detail}",
        "read its log",
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
