# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one gate over a fleet: judges every node, waits while some may still pass, then reports and quarantines those that failed."""

from __future__ import annotations

import functools
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain, exporters
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import changes, nfd, report, rights
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.fleet import Fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.gate import Gate
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings

#: Seconds of one interval in which events of pods and nodes are watched.
_CYCLE = 4.0
#: Seconds of an interval if only the state of DaemonSets and Deployments is waited for.
_SHORT_CYCLE = 1.0


def run(
    settings: Settings,
    client: Client,
    *,
    check_mode: bool = False,
    deadline: float | None = None,
    resume: dict[str, t.Any] | None = None,
) -> Outcome:
    """deadline: time.monotonic() at which a slice ends; resume: the `pending` of the previous slice.

    In check mode the gate reads once, does not wait and writes nothing. It fails only if the run would lack a permission.
    """
    marks.limit_of(settings.max_failed, 0)
    gate = begin(settings, client, resume or {})
    if check_mode:
        gate.judge()
        gate.softened = changes.soften(gate.snapshot(), check_mode=True)
        return _checked(gate)
    lines, broken = [], None
    try:
        gate.meet()
        gate.judge()
        lines += gate.progress()
        if not resume:
            gate.softened = changes.soften(gate.snapshot(), check_mode=False)
        while gate.left > 0 and (gate.waiting() or gate.rollouts.go_on()):
            now = time.monotonic()
            if deadline is not None and deadline - now < 0.1:
                return Outcome(pending=gate.pack(), progress=lines)
            nodes_wait = gate.waiting()
            seconds = min(
                _CYCLE if nodes_wait else _SHORT_CYCLE, gate.left, *([deadline - now] if deadline is not None else [])
            )
            gate.look(seconds, functools.partial(_judged, gate, nodes_wait))
            gate.judge()
            lines += gate.progress()
        if gate.left <= 0:
            if gate.waiting():
                gate.confirm()
            # They were not read while nodes were waiting.
            gate.rollouts.look_at_controllers()
    except ApiError as error:
        gate.judge_changed()
        broken = error
    result = _ended(gate, broken)
    result.progress = lines + [line for line in result.progress if line not in lines]
    return result


def begin(settings: Settings, client: Client, resume: dict[str, t.Any]) -> Gate:
    """The gate with its fleet, read again or restored from the previous slice ({}: there was none)."""
    renamed = {sharing.renamed for config in settings.plugin_configs.values() for sharing in config.sharing}
    besides = (settings.driver_namespace,) if settings.gate == exporters.GATE and settings.driver_namespace else ()
    fleet = Fleet(
        settings.gate,
        settings.pools,
        settings.namespace,
        settings.pod_selector,
        sorted(renamed),
        besides,
        settings.daemon_sets,
    )
    if resume:
        return Gate.unpacked(settings, client, fleet, resume)
    fleet.read_nodes(client)
    gate = Gate(settings, client, fleet, time.time())
    if not (fleet.read_resting_pods(client) and gate.all_passed()):
        fleet.read_all_pods(client)
    return gate


def _judged(gate: Gate, nodes_wait: bool) -> bool:
    """Checks after an event whether no node is waiting, so that the gate can end.

    If nothing was waiting before either, new pods are still observed, all of an interval and not one by one.
    """
    gate.judge_changed()
    return nodes_wait and not gate.waiting()


def _checked(gate: Gate) -> Outcome:
    """Changes that a run would make in the observed state, and permissions that it would lack."""
    result, _plan = _changed(gate, broken=False, check_mode=True)
    rights.of_run(gate.snapshot(), marks_due=result.changed).added_to(result)
    lacking = [name for name in gate.verdicts if not gate.fleet.nodes[name].uid]
    result.warnings += [f"the cluster has no node {some(lacking)}, and a pool names it"] if lacking else []
    result.warnings += _nothing_judged(gate)
    return result


def _ended(gate: Gate, broken: ApiError | None) -> Outcome:
    """The end: settles verdicts, quarantines failed nodes, releases passed ones, and reports. broken: the error that ended the observation."""
    if broken is not None:
        gate.settle(chain.UNKNOWN, "the gate could not observe it further: ")
    else:
        gate.settle(chain.FAILED, f"after {gate.timeout:.0f} s: ")
    result, plan = _changed(gate, broken=broken is not None, check_mode=False)
    result.warnings += gate.rollouts.left_behind() + _nothing_judged(gate)
    result.progress = [report.last_line(gate.settings.gate, gate.verdicts, plan, gate.held)]
    down = nfd.faults(gate.client, gate.rollouts.down) if broken is None else []
    result.failure = report.failure(gate.settings.gate, gate.verdicts, plan, result.values["faults"], broken, down)
    return result


def _changed(gate: Gate, *, broken: bool, check_mode: bool) -> tuple[Outcome, marks.QuarantinePlan]:
    """Quarantines and labels, written or predicted, with the report on all nodes."""
    snapshot, states = gate.snapshot(broken=broken), {name: verdict.state for name, verdict in gate.verdicts.items()}
    plan = marks.plan(gate.settings.gate, states, gate.fleet.nodes, gate.settings.max_failed)
    quarantined, released = changes.mark(snapshot, plan, check_mode=check_mode)
    quarantined = sorted({*quarantined, *gate.softened}.difference(released))
    switched = changes.switch(snapshot, check_mode=check_mode)
    reported = report.values(snapshot, plan, ask=not broken and not check_mode)
    values = reported | {"quarantined": quarantined, "released": released, "switched": switched, "missing_rights": []}
    return Outcome(changed=bool(quarantined or released or switched), values=values), plan


def _nothing_judged(gate: Gate) -> list[str]:
    only = gate.settings.nodes is not None
    if only or gate.verdicts or gate.held or gate.settings.gate not in chain.GATES:
        return []
    return [
        f"gate {gate.settings.gate}: no node to judge: no node reports a GPU, and no declared pool with GPUs has a node"
    ]
