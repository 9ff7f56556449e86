# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one pod with all GPUs of a node, and a second one that must wait for it."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import allocations, device_query
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.allocations import Ask
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import allocation_judgement as judgement
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import whole_nodes
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.findings import FAILED, PASSED
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.whole_nodes import WholeNodesPlan
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.whole_nodes_report import (
    BUSY,
    SKIPPED,
    Finding,
    Report,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads import contests, runs
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.contests import Contest, Result
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions

#: Seconds that the first pod keeps running after its last line. The run ends it earlier, unless it was killed.
HOLD = "HOLD_SECONDS"
#: Seconds in addition to two schedule_timeouts, for requests and for the second pod.
_HOLD_MARGIN = 60
_WHAT, _STATES = "allocation", (PASSED, BUSY, SKIPPED, FAILED)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options of the module, under its names. definition, integrated_definition: the Pods; node, GPUs and HOLD_SECONDS are set for each run."""

    definition: c.Mapping[str, t.Any]
    pools: tuple[Pool, ...] = ()
    exclude: frozenset[str] = frozenset()
    exclusivity: bool = False
    max_failed: str = "0"
    sample: int = 20
    options: RunOptions = dataclasses.field(default_factory=RunOptions)
    integrated_definition: c.Mapping[str, t.Any] | None = None


def run(
    settings: Settings,
    client: Client,
    clock: Clock,
    *,
    check_mode: bool = False,
    resume: dict[str, t.Any] | None = None,
) -> Outcome:
    """resume: the `pending` of the previous slice. In check mode it reports which nodes would run pods, and missing permissions."""
    marks.limit_of(settings.max_failed, 0)
    if (lacking := whole_nodes.lacking(client, check_mode, _nothing())) is not None:
        return lacking
    plan = WholeNodesPlan.unpack(resume["plan"]) if resume else _plan(client, settings)
    outcome, results = _play(plan, settings, client, clock, check_mode, resume["run"] if resume else None)
    if outcome.pending is not None:
        return Outcome(changed=True, pending={"plan": plan.pack(), "run": outcome.pending}, progress=outcome.progress)
    for (name, ask), result in zip(plan.requests.items(), results, strict=False):
        plan.findings[name] = judgement.found(result, ask, exclusivity=settings.exclusivity)
    report = Report(_WHAT, _STATES, settings.max_failed, settings.sample, plan.pools, plan.findings)
    nothing = "no node reports a GPU, and no declared pool with GPUs has a node"
    return report.outcome(outcome, {"tried": list(plan.requests)}, nothing, check_mode=check_mode)


def _plan(client: Client, settings: Settings) -> WholeNodesPlan:
    def unfit(node: NodeFacts) -> Finding | None:
        if device_query.needed(node) and not settings.integrated_definition:
            return Finding(
                SKIPPED,
                "its GPU is integrated: nvidia-smi does not list it",
                "set integrated_definition, a pod with deviceQuery for it",
            )
        return None

    return whole_nodes.plan(client, settings.pools, settings.exclude, lambda _pool: True, unfit)


def _play(
    plan: WholeNodesPlan,
    settings: Settings,
    client: Client,
    clock: Clock,
    check_mode: bool,
    resume: dict[str, t.Any] | None,
) -> tuple[Outcome, list[Result]]:
    if not plan.requests:
        return Outcome(), []
    options = dataclasses.replace(settings.options, fail_on=frozenset())
    if settings.exclusivity:
        pairs = [_contest(name, ask, settings) for name, ask in plan.requests.items()]
        return contests.run(client, pairs, options, clock, check_mode=check_mode, resume=resume)
    workloads = [
        whole_nodes.workload(name, name, ask.request, {HOLD: "0"}, _definition(ask, settings))
        for name, ask in plan.requests.items()
    ]
    outcome = runs.run(client, workloads, options, clock, check_mode=check_mode, resume=resume)
    return outcome, [Result(row, None, "", False) for row in outcome.values.get("workloads", ())]


def _definition(ask: Ask, settings: Settings) -> c.Mapping[str, t.Any]:
    return (settings.integrated_definition if ask.integrated else None) or settings.definition


def _contest(node: str, ask: Ask, settings: Settings) -> Contest:
    definition = _definition(ask, settings)
    hold = int(2 * settings.options.schedule_timeout) + _HOLD_MARGIN
    first = whole_nodes.workload(node, node, ask.request, {HOLD: str(hold)}, definition)
    second = whole_nodes.workload(f"{node} (second pod)", node, ask.one_more, {HOLD: "0"}, definition)
    return Contest(first, second, allocations.ALL_QUERIED, scarce=allocations.insufficient(ask.one_more))


def _nothing() -> dict[str, t.Any]:
    return Report(_WHAT, _STATES, "0", 0, {}, {}).values() | {"tried": [], "missing_rights": []}
