# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of a Job that runs once. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._state import workloads
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.verdicts import condition, message

Obj = c.Mapping[str, t.Any]

#: Reason of a Job that failed by its podFailurePolicy. Its message has the pod and the cause, which the exit code of a killed pod does not show.
_BY_POLICY = "PodFailurePolicy"

#: Stages: no pod; pod without a node; scheduled, but not started; started; succeeded; failed.
CREATED, PENDING, STARTING, RUNNING, SUCCEEDED, FAILED = (
    "created",
    "pending",
    "starting",
    "running",
    "succeeded",
    "failed",
)


@dataclasses.dataclass(frozen=True)
class Progress:
    """stage: one of the above. reason: what it waits for or why it failed. pod, node: "" if there is none. container: the one whose log shows the cause."""

    stage: str
    reason: str = ""
    pod: str = ""
    uid: str = ""
    node: str = ""
    container: str = ""
    exit_code: int | None = None


def progress(job: Obj, pods: c.Sequence[Obj], container: str = "") -> Progress:
    """Progress of a Job and its pods, of which the newest counts. container: the one whose log and exit code are needed, "" for the first."""
    verdict = workloads.job(job)
    if not pods:
        return (
            Progress(FAILED, verdict.reason)
            if verdict.failed
            else Progress(SUCCEEDED if verdict.ready else CREATED, "it has no pod yet")
        )
    pod = max(pods, key=lambda one: (str(one["metadata"].get("creationTimestamp") or ""), one["metadata"]["name"]))
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    name = container or str((spec.get("containers") or [{}])[0].get("name") or "")
    place = Progress(
        CREATED,
        pod=pod["metadata"]["name"],
        uid=str(pod["metadata"].get("uid") or ""),
        node=str(spec.get("nodeName") or ""),
        container=name,
        exit_code=_exit_code(status, name),
    )
    if verdict.ready:
        return dataclasses.replace(place, stage=SUCCEEDED)
    if verdict.failed:
        by_policy = verdict.reason.startswith(_BY_POLICY)
        return dataclasses.replace(
            place, stage=FAILED, reason=verdict.reason if by_policy else _failure(status) or verdict.reason
        )
    if not place.node:
        return dataclasses.replace(
            place, stage=PENDING, reason=message(condition(pod, "PodScheduled"), "it is not scheduled yet")
        )
    stage = RUNNING if _started(status) else STARTING
    return dataclasses.replace(place, stage=stage, reason=workloads.pod(pod).reason)


def owner(pod: Obj) -> str:
    """Name of the Job that created a pod."""
    owners = (pod.get("metadata") or {}).get("ownerReferences") or ()
    return next((str(entry.get("name")) for entry in owners if entry.get("kind") == "Job"), "")


def _containers(status: Obj) -> list[dict[str, t.Any]]:
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _started(status: Obj) -> bool:
    return any(
        {"running", "terminated"} & set(entry.get("state") or {}) for entry in status.get("containerStatuses") or ()
    )


def _exit_code(status: Obj, container: str) -> int | None:
    for entry in _containers(status):
        ended = (entry.get("state") or {}).get("terminated")
        if entry.get("name") == container and ended:
            return int(ended.get("exitCode") or 0)
    return None


def _failure(status: Obj) -> str:
    """The kubelet's reason for the whole pod (evicted, not admitted), or else the first failed container, because "BackoffLimitExceeded" is not specific."""
    if status.get("reason"):
        return message(status, "")
    for entry in _containers(status):
        ended = (entry.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            reason = ended.get("reason") if ended.get("reason") not in (None, "Error") else ""
            why = ": ".join(str(part) for part in (reason, ended.get("message")) if part)
            return f"container {entry.get('name')} ended with exit code {ended['exitCode']}" + (
                f" ({why})" if why else ""
            )
    return ""
