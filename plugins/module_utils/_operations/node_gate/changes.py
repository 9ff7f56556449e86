# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a gate changes on nodes once it has judged them, or in check mode would change."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import DRIVER
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import switches
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.menders import Menders
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.seen import Seen


def soften(seen: Seen, *, check_mode: bool) -> list[str]:
    """Names of nodes whose mark of an earlier run keeps off the pods that have to mend them. From now on those may come, while the gate waits."""
    nodes = seen.fleet.nodes
    waiting = (
        sorted(name for name, verdict in seen.verdicts.items() if verdict.state != chain.PASSED)
        if seen.settings.marks
        else []
    )
    hard = [name for name in waiting if marks.effect_of(nodes[name]) == marks.HARD]
    if not hard:
        return []
    node, menders = seen.client.resource("v1", "Node"), Menders(seen.client)
    return [name for name in hard if marks.soften(seen.client, node, name, menders.effect, check_mode=check_mode)]


def mark(seen: Seen, plan: marks.Plan, *, check_mode: bool) -> tuple[list[str], list[str]]:
    """Names of nodes whose marks changed, or would change."""
    settings = seen.settings
    if not settings.marks or seen.broken:
        return [], []
    node, menders = seen.client.resource("v1", "Node"), Menders(seen.client)
    reasons = {
        name: f"{settings.gate}: {seen.verdicts[name].link}: {seen.verdicts[name].reason}" for name in plan.quarantine
    }
    marked = [
        name
        for name in plan.quarantine
        if marks.quarantine(
            seen.client, node, name, settings.gate, reasons[name], menders.effect, check_mode=check_mode
        )
    ]
    return marked, [name for name in plan.release if check_mode or marks.release(seen.client, node, name)]


def switch(seen: Seen, *, check_mode: bool) -> list[str]:
    """Names of nodes with a driver of ours that got the switches of its clients, or would get them."""
    if seen.settings.gate != "driver" or seen.broken:
        return []
    lacking = sorted(
        name
        for name in seen.verdicts
        if not seen.fleet.nodes[name].switched and _has_our_driver(seen, name, check_mode)
    )
    return [name for name in lacking if check_mode or switches.provide(seen.client, name)]


def _has_our_driver(seen: Seen, name: str, check_mode: bool) -> bool:
    """It works, or in check mode will, as far as is known: of a node that waits and has no driver its pool and its labels tell who brings it."""
    node, state, pod = seen.fleet.nodes[name], seen.verdicts[name].state, seen.fleet.pods_of(name).get(DRIVER)
    if state == chain.PASSED:
        return pod is not None and bool(pod.driver_version)
    if (
        pod is not None
        and pod.driver_version
        and any(one.state and not one.succeeded and one.last_exit is not None for one in pod.inits)
    ):
        # The manager has failed before. On a node that has joined after the last run it waits for clients which nobody makes leave, for ever.
        return True
    if not check_mode or state != chain.WAITING or node.quarantined or not node.uid:
        return False
    return (
        bool(pod.driver_version) if pod is not None else seen.provider(name) in ("", "hwaccel") and not node.host_driver
    )
