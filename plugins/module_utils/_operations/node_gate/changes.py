# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a gate on nodes once it has judged them, or their prediction in check mode."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import DRIVER
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import switches
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.menders import Menders
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.snapshot import GateSnapshot


def soften(snapshot: GateSnapshot, *, check_mode: bool) -> list[str]:
    """Names of nodes with a NoSchedule taint of an earlier run that blocks the pods needed for recovery. It is softened before the gate waits."""
    nodes = snapshot.fleet.nodes
    waiting = (
        sorted(name for name, verdict in snapshot.verdicts.items() if verdict.state != chain.PASSED)
        if snapshot.settings.marks
        else []
    )
    hard = [name for name in waiting if marks.effect_of(nodes[name]) == marks.HARD]
    if not hard:
        return []
    node, menders = snapshot.client.resource("v1", "Node"), Menders(snapshot.client)
    return [name for name in hard if marks.soften(snapshot.client, node, name, menders.effect, check_mode=check_mode)]


def mark(snapshot: GateSnapshot, plan: marks.QuarantinePlan, *, check_mode: bool) -> tuple[list[str], list[str]]:
    """Names of nodes whose quarantine changed, or would change."""
    settings = snapshot.settings
    if not settings.marks or snapshot.broken:
        return [], []
    node, menders = snapshot.client.resource("v1", "Node"), Menders(snapshot.client)
    reasons = {
        name: f"{settings.gate}: {snapshot.verdicts[name].link}: {snapshot.verdicts[name].reason}"
        for name in plan.quarantine
    }
    marked = [
        name
        for name in plan.quarantine
        if marks.quarantine(
            snapshot.client, node, name, settings.gate, reasons[name], menders.effect, check_mode=check_mode
        )
    ]
    return marked, [name for name in plan.release if check_mode or marks.release(snapshot.client, node, name)]


def switch(snapshot: GateSnapshot, *, check_mode: bool) -> list[str]:
    """Names of nodes with a driver of this collection that got the labels of its clients, or would get them."""
    if snapshot.settings.gate != "driver" or snapshot.broken:
        return []
    lacking = sorted(
        name
        for name in snapshot.verdicts
        if not snapshot.fleet.nodes[name].switched and _has_our_driver(snapshot, name, check_mode)
    )
    return [name for name in lacking if check_mode or switches.provide(snapshot.client, name)]


def _has_our_driver(snapshot: GateSnapshot, name: str, check_mode: bool) -> bool:
    """Whether the driver is one of this collection, or will be: for a waiting node without a driver, its pool and labels determine the provider."""
    node, state, pod = (
        snapshot.fleet.nodes[name],
        snapshot.verdicts[name].state,
        snapshot.fleet.pods_of(name).get(DRIVER),
    )
    if state == chain.PASSED:
        return pod is not None and bool(pod.driver_version)
    if (
        pod is not None
        and pod.driver_version
        and any(one.state and not one.succeeded and one.last_exit is not None for one in pod.inits)
    ):
        # The driver manager has failed before. On a node that joined after the last run it would wait for clients that are never evicted.
        return True
    if not check_mode or state != chain.WAITING or node.quarantined or not node.uid:
        return False
    return (
        bool(pod.driver_version)
        if pod is not None
        else snapshot.provider(name) in ("", "hwaccel") and not node.host_driver
    )
