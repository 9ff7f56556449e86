# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges the allocation of a node's GPUs from two pods. Pure."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import allocations, device_query
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.allocations import Ask
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.findings import FAILED, PASSED
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.whole_nodes import disrupted, taken
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.whole_nodes_report import BUSY, Finding
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.contests import Result
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import SUCCEEDED

_SEE_LOG = "check the pod's log, and the validator's on this node"
_SEE_PLUGIN = "check that only one device plugin serves this resource, its log, and sharing in its configuration"


def found(result: Result, ask: Ask, *, exclusivity: bool) -> Finding:
    """exclusivity: whether a second pod had to wait."""
    first = result.first
    if away := next((row for row in (first, result.second) if row is not None and disrupted(row)), None):
        return Finding(
            BUSY,
            f"its pod was preempted: {away['reason']}",
            "try again when no pod of higher priority requests these GPUs",
        )
    if taken(first, ask.request):
        return Finding(
            BUSY, f"other pods took GPUs there in the meantime: {first['reason']}", "try again when they have ended"
        )
    if first["state"] != SUCCEEDED:
        return Finding(FAILED, f"the pod with all GPUs: {first['reason']}", _SEE_LOG, log=first["log"])
    if wrong := allocations.deviations(first["log"], ask.devices, integrated=ask.integrated):
        return Finding(
            FAILED,
            "; ".join(wrong),
            "check the output of nvidia-smi -L on the node, and its kernel log",
            log=first["log"],
        )
    return (_fault(result, ask) if exclusivity else None) or Finding(PASSED)


def _fault(result: Result, ask: Ask) -> Finding | None:
    """Errors in the allocation of the second pod's GPU."""
    second = result.second
    if second is None:
        return Finding(
            FAILED,
            "the pod with all GPUs ended before the second pod was created",
            "keep the pod running for HOLD_SECONDS after its last line",
        )
    log = second["log"]
    if result.beside:
        got = allocations.listed(log) or [device.name for device in device_query.devices_in(log)]
        if both := sorted(set(got) & set(allocations.listed(result.first["log"]))):
            return Finding(FAILED, f"two pods got the same GPU at the same time: {some(both)}", _SEE_PLUGIN, log=log)
        what = f"it observed {some(got)}" if got else "its log names no GPU"
        return Finding(
            FAILED, f"the second pod was never Pending while the first one had all GPUs: {what}", _SEE_PLUGIN, log=log
        )
    if not result.refused:
        why = second["reason"] or "it ran after the first one had ended"
        return Finding(
            FAILED,
            f"the second pod was never Pending because of missing GPUs: {why}",
            "check its tolerations and its other requests",
            log=log,
        )
    if taken(second, ask.one_more):
        next_step = "check whether another pod has taken the GPUs; otherwise check the kubelet's log, and restart the device plugin there"
        return Finding(
            FAILED,
            f"the second pod did not start after the first one had ended: {second['reason']}",
            next_step,
            log=log,
        )
    if second["state"] != SUCCEEDED:
        return Finding(FAILED, f"the second pod, after the first one had ended: {second['reason']}", _SEE_LOG, log=log)
    if wrong := allocations.deviations(log, 1, integrated=ask.integrated):
        return Finding(FAILED, f"the second pod, after the first one had ended: {'; '.join(wrong)}", _SEE_LOG, log=log)
    return None
