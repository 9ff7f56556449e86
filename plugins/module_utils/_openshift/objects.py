# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of an OpenShift cluster, reduced to what an install depends on. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import Node, Operator, Version
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import objects
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.verdicts import condition, message

Obj = c.Mapping[str, t.Any]

#: Set by cluster-etcd-operator (pkg/operator/bootstrapteardown) once the member of the bootstrap machine has left etcd.
MEMBER_REMOVED = "EtcdBootstrapMemberRemoved"
#: Characters of what an operator says: it has a line of each of its controllers, and the cause may be in the last one.
_LONGEST = 1000
#: Masters have one of them, or both.
_CONTROL_PLANE = ("node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane")


def member_removed(etcd: Obj) -> tuple[bool, str]:
    """Whether etcd has a quorum without the bootstrap machine, and the evidence. etcd: {} if there is none, or no such kind."""
    found = condition(etcd, MEMBER_REMOVED)
    if not found:
        return True, f"bootstrap is complete, and Etcd cluster has no condition {MEMBER_REMOVED}, as in older releases"
    if found.get("status") == "True":
        return True, f"bootstrap is complete, and {MEMBER_REMOVED} of Etcd cluster is True"
    return False, f"{MEMBER_REMOVED} of Etcd cluster is not True: {message(found, 'it has no reason')}"


def version(obj: Obj) -> Version:
    """Of the ClusterVersion."""
    failing, progressing = condition(obj, "Failing"), condition(obj, "Progressing")
    told = failing if _is(failing) else progressing
    history = (obj.get("status") or {}).get("history") or ()
    return Version(
        completed=any(entry.get("state") == "Completed" for entry in history),
        available=_is(condition(obj, "Available")),
        failing=_is(failing),
        progressing=_is(progressing),
        text=" ".join(str(told.get("message") or "").split())[:300],
    )


def operator(obj: Obj) -> Operator:
    """Of a ClusterOperator. One that has not reported yet is not available."""
    available, degraded, progressing = (condition(obj, kind) for kind in ("Available", "Degraded", "Progressing"))
    reason = ""
    if _is(degraded):
        reason = message(degraded, "", _LONGEST)
    elif not _is(available):
        reason = message(available, "it has not reported yet", _LONGEST)
    elif _is(progressing):
        reason = message(progressing, "", _LONGEST)
    name = str(obj["metadata"]["name"])
    return Operator(name, _is(available), _is(degraded), _is(progressing), reason)


def node(obj: Obj) -> Node:
    verdict = objects.node(obj)
    labels = obj["metadata"].get("labels") or {}
    waiting = "" if verdict.ready else verdict.reason
    return Node(str(obj["metadata"]["name"]), waiting, any(label in labels for label in _CONTROL_PLANE))


def _is(found: Obj) -> bool:
    return found.get("status") == "True"
