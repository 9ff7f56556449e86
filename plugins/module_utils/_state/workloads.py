# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Readiness of workloads."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._state.verdicts import (
    READY,
    Verdict,
    broken,
    condition,
    message,
    number,
    observed,
    waiting,
)

Obj = c.Mapping[str, t.Any]
#: Number of nodes that match a DaemonSet, and number of these that are not ready.
Nodes = c.Callable[[Obj], tuple[int, int]]
_NOT_OBSERVED = "its controller has not observed this version yet"


def deployment(obj: Obj) -> Verdict:
    if not observed(obj):
        return waiting(_NOT_OBSERVED)
    desired = number(obj, "spec", "replicas", default=1)
    progressing = condition(obj, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return broken(message(progressing, "its progress deadline is exceeded"))
    if condition(obj, "ReplicaFailure").get("status") == "True":
        return waiting(message(condition(obj, "ReplicaFailure"), "its pods cannot be created"))
    updated, total, available = (
        number(obj, "status", field) for field in ("updatedReplicas", "replicas", "availableReplicas")
    )
    if updated < desired:
        return waiting(f"{updated} of {desired} pods are of the new version")
    if total > updated:
        return waiting(f"{total - updated} old pods still exist")
    return READY if available >= desired else waiting(f"{available} of {desired} pods")


def replica_set(obj: Obj) -> Verdict:
    if not observed(obj):
        return waiting(_NOT_OBSERVED)
    desired = number(obj, "spec", "replicas", default=1)
    if condition(obj, "ReplicaFailure").get("status") == "True":
        return waiting(message(condition(obj, "ReplicaFailure"), "its pods cannot be created"))
    available = number(obj, "status", "availableReplicas")
    return READY if available >= desired else waiting(f"{available} of {desired} pods")


def stateful_set(obj: Obj) -> Verdict:
    if not observed(obj):
        return waiting(_NOT_OBSERVED)
    desired = number(obj, "spec", "replicas", default=1)
    status, strategy = obj.get("status") or {}, (obj.get("spec") or {}).get("updateStrategy") or {}
    ready = number(obj, "status", "readyReplicas")
    if ready < desired:
        return waiting(f"{ready} of {desired} pods")
    if strategy.get("type") == "OnDelete":
        return READY
    partition = number(strategy, "rollingUpdate", "partition")
    new = desired - partition
    updated = number(obj, "status", "updatedReplicas")
    if partition and updated < new:
        return waiting(f"{updated} of {new} pods are of the new version")
    if not partition and status.get("updateRevision") != status.get("currentRevision") and updated < desired:
        return waiting(f"{updated} of {desired} pods are of the new version")
    return READY


def daemon_set(obj: Obj, nodes: Nodes | None = None) -> Verdict:
    """nodes: only read if the desired number of pods is 0, or if pods are not ready, because pods do not become ready on a node that is not."""
    if not observed(obj):
        return waiting(_NOT_OBSERVED)
    desired = number(obj, "status", "desiredNumberScheduled")
    if desired == 0:
        if nodes is not None and nodes(obj)[0]:
            return waiting("0 of 0 pods, though nodes match its selector")
        return READY
    strategy = ((obj.get("spec") or {}).get("updateStrategy") or {}).get("type") or "RollingUpdate"
    available, ready, updated = (
        number(obj, "status", field) for field in ("numberAvailable", "numberReady", "updatedNumberScheduled")
    )
    # With OnDelete, pods of the old version stay until they are deleted, which is intended.
    lag = desired - min(available, desired if strategy == "OnDelete" else updated)
    if lag <= 0:
        return READY
    away = nodes(obj)[1] if nodes is not None else 0
    if lag <= away:
        return Verdict(True, reason=f"{desired - lag} of {desired} pods, nodes that are not ready: {away}")
    if strategy != "OnDelete" and updated < desired:
        return waiting(f"{updated} of {desired} pods are of the new version")
    return waiting(f"{min(available, ready)} of {desired} pods")


def desired_nowhere(obj: Obj) -> bool:
    """Whether no node has or should have a pod of this DaemonSet, according to its controller and for its latest version."""
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberMisscheduled")
    return observed(obj) and bool(obj.get("status")) and not any(number(obj, "status", count) for count in counts)


def pod(obj: Obj) -> Verdict:
    status = obj.get("status") or {}
    phase = status.get("phase")
    if phase == "Succeeded":
        return READY
    if phase == "Failed":
        return broken(message(status, "it failed"))
    if phase == "Running" and condition(obj, "Ready").get("status") == "True":
        return READY
    for entry in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        lag = (entry.get("state") or {}).get("waiting") or {}
        if lag.get("reason") and lag["reason"] not in ("PodInitializing", "ContainerCreating"):
            return waiting(f"container {entry.get('name')}: {message(lag, 'waits')}")
    unscheduled = condition(obj, "PodScheduled")
    if unscheduled.get("status") == "False":
        return waiting(message(unscheduled, "it cannot be scheduled"))
    return waiting(f"it is {phase or 'not started'}")


def job(obj: Obj) -> Verdict:
    if condition(obj, "Failed").get("status") == "True" or condition(obj, "FailureTarget").get("status") == "True":
        failed = condition(obj, "Failed") or condition(obj, "FailureTarget")
        return broken(message(failed, "it failed"))
    if condition(obj, "Complete").get("status") == "True":
        return READY
    if (obj.get("spec") or {}).get("suspend"):
        return waiting("it is suspended")
    desired = number(obj, "spec", "completions", default=1)
    return waiting(f"{number(obj, 'status', 'succeeded')} of {desired} pods have succeeded")
