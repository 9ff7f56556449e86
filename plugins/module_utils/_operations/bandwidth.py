# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs all-reduces over all GPUs of two nodes, pair by pair."""

from __future__ import annotations

import collections
import collections.abc as c
import copy
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import device_query, resources, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.bandwidth import LISTENING
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool, PoolInterconnect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import bandwidth_judgement as judgement
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import whole_nodes
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.bandwidth_judgement import Verdict
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.findings import FAILED, PASSED
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.whole_nodes_report import (
    BUSY,
    SKIPPED,
    SUSPECT,
    Finding,
    Report,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads import rendezvous
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.pairs import Pair
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions, Workload

Names = tuple[str, str]

_WHAT, _STATES = "bandwidth between nodes", (PASSED, BUSY, SKIPPED, SUSPECT, FAILED)
#: Shared memory of a pod's processes. The runtime's default is 64 MiB, and NCCL needs more (NVIDIA/nccl 5067397,
#: docs/userguide/source/troubleshooting/runtime_and_mpi_issues.rst).
_SHARED_MEMORY = {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options of the module, under its names. definition: the Pod; node, GPUs and role in the pair are set for each run."""

    definition: c.Mapping[str, t.Any]
    pools: tuple[Pool, ...] = ()
    exclude: frozenset[str] = frozenset()
    max_failed: str = "0"
    sample: int = 20
    options: RunOptions = dataclasses.field(default_factory=RunOptions)

    def interconnect(self, pool: str) -> PoolInterconnect:
        return next(
            (one.interconnect for one in self.pools if one.name == pool and one.interconnect), PoolInterconnect()
        )


@dataclasses.dataclass
class BandwidthPlan:
    """nodes: those that are tested. pairs: those that run now. verdicts: results of pairs that have run."""

    nodes: whole_nodes.WholeNodesPlan
    pairs: list[Names]
    verdicts: list[Verdict] = dataclasses.field(default_factory=list)

    def pack(self) -> dict[str, t.Any]:
        return {
            "nodes": self.nodes.pack(),
            "pairs": self.pairs,
            "verdicts": [dataclasses.asdict(one) for one in self.verdicts],
        }

    @classmethod
    def unpack(cls, packed: dict[str, t.Any]) -> BandwidthPlan:
        """Restores the plan from JSON, in which tuples are lists."""
        verdicts = [
            Verdict(**one | {"nodes": tuple(one["nodes"]), "networks": tuple(one["networks"])})
            for one in packed["verdicts"]
        ]
        return cls(
            whole_nodes.WholeNodesPlan.unpack(packed["nodes"]),
            [(pair[0], pair[1]) for pair in packed["pairs"]],
            verdicts,
        )


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
    nothing = Report(_WHAT, _STATES, "0", 0, {}, {}).values() | {"pairs": [], "tried": [], "missing_rights": []}
    if (lacking := whole_nodes.lacking(client, check_mode, nothing)) is not None:
        return lacking
    plan = BandwidthPlan.unpack(resume["plan"]) if resume else _plan(client, settings)
    going_on: dict[str, t.Any] | None = resume["run"] if resume else None
    progress: list[str] = []
    while True:
        outcome = _play(plan, settings, client, clock, check_mode, going_on)
        progress += outcome.progress
        outcome.progress = progress
        if outcome.pending is not None:
            return Outcome(changed=True, pending={"plan": plan.pack(), "run": outcome.pending}, progress=progress)
        if not plan.pairs or check_mode:
            return _outcome(outcome, plan, settings, check_mode)
        going_on = None


def _plan(client: Client, settings: Settings) -> BandwidthPlan:
    nodes = whole_nodes.plan(
        client, settings.pools, settings.exclude, lambda pool: pool.interconnect is not None, _unfit
    )
    by_pool: dict[str, list[str]] = collections.defaultdict(list)
    for name in sorted(nodes.requests):
        by_pool[nodes.pools[name]].append(name)
    pairs: list[Names] = []
    for names in by_pool.values():
        # The last one of an odd number is paired with the first one, as soon as that is free again.
        pairs += list(zip(names[::2], names[1::2], strict=False)) + (
            [(names[-1], names[0])] if len(names) % 2 and len(names) > 1 else []
        )
    return BandwidthPlan(nodes, pairs)


def _unfit(node: NodeFacts) -> Finding | None:
    if device_query.needed(node):
        return Finding(SKIPPED, "its GPU is integrated", "remove interconnect from its pool")
    if "-MIG-" in node.gpu.product or any(
        resource.startswith(resources.MIG_PREFIX) for resource in schedulable.observed(node)
    ):
        return Finding(
            SKIPPED,
            "its GPUs are partitioned: NCCL does not support slices",
            "none: test nodes whose GPUs are not partitioned",
        )
    return None


def _play(
    plan: BandwidthPlan,
    settings: Settings,
    client: Client,
    clock: Clock,
    check_mode: bool,
    resume: dict[str, t.Any] | None,
) -> Outcome:
    """Runs the pairs of the plan. Once they have ended, the plan has their verdicts, and the pairs that must run because of them."""
    if not plan.pairs:
        return Outcome()
    requests = plan.nodes.requests
    options = dataclasses.replace(settings.options, fail_on=frozenset())
    pairs = [_pair(names, plan, settings) for names in plan.pairs]
    outcome, results = rendezvous.run(client, pairs, options, clock, check_mode=check_mode, resume=resume)
    if outcome.pending is None and not check_mode:
        first_round = not plan.verdicts
        for names, result in zip(plan.pairs, results, strict=False):
            expected = settings.interconnect(plan.nodes.pools[names[0]])
            plan.verdicts.append(judgement.verdict(names, result, (requests[names[0]], requests[names[1]]), expected))
        plan.pairs = judgement.once_more(plan.nodes.pools, plan.verdicts) if first_round else []
    return outcome


def _pair(names: Names, plan: BandwidthPlan, settings: Settings) -> Pair:
    one, other = (plan.nodes.requests[name].devices for name in names)
    numbers = {"RANKS": one + other, "PATIENCE_SECONDS": int(settings.options.longest)}
    first = _workload(names, numbers | {"DEVICES": one, "FIRST_RANK": 0}, plan, settings)
    second = _workload(names[::-1], numbers | {"DEVICES": other, "FIRST_RANK": one}, plan, settings)
    return Pair(first, second, LISTENING, names)


def _workload(names: Names, numbers: c.Mapping[str, int], plan: BandwidthPlan, settings: Settings) -> Workload:
    """names: the pod's node, and the other node."""
    interconnect = settings.interconnect(plan.nodes.pools[names[0]])
    pod = copy.deepcopy(dict(settings.definition))
    metadata, spec = pod.setdefault("metadata", {}), pod.setdefault("spec", {})
    metadata["annotations"] = (metadata.get("annotations") or {}) | dict(interconnect.annotations)
    spec["volumes"] = [*(spec.get("volumes") or ()), _SHARED_MEMORY]
    for container in spec.get("containers", [])[:1]:
        container["volumeMounts"] = [
            *(container.get("volumeMounts") or ()),
            {"name": _SHARED_MEMORY["name"], "mountPath": "/dev/shm"},
        ]
        address = {"name": "POD_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        container["env"] = [*(container.get("env") or ()), address]
        if interconnect.resources:
            _lock_memory(container)
    limits = plan.nodes.requests[names[0]].request | dict(interconnect.resources)
    environment = (
        {"NCCL_DEBUG": "INFO"} | dict(interconnect.environment) | {key: str(value) for key, value in numbers.items()}
    )
    return whole_nodes.workload(f"{names[0]} with {names[1]}", names[0], limits, environment, pod)


def _lock_memory(container: dict[str, t.Any]) -> None:
    """RDMA pins memory beyond the limit that runtimes set. An added capability only has an effect for root (capabilities(7), execve)."""
    context = container.get("securityContext") or {}
    capabilities = context.get("capabilities") or {}
    added = {"capabilities": capabilities | {"add": [*(capabilities.get("add") or ()), "IPC_LOCK"]}}
    container["securityContext"] = context | {"runAsUser": 0, "runAsNonRoot": False} | added


def _outcome(ran: Outcome, plan: BandwidthPlan, settings: Settings, check_mode: bool) -> Outcome:
    found = dict(plan.nodes.findings)
    tried = sorted(
        {name for names in plan.pairs for name in names} | {name for one in plan.verdicts for name in one.nodes}
    )
    untried = [name for name in plan.nodes.requests if name not in tried]
    found |= judgement.findings(untried if check_mode else plan.nodes.requests, plan.verdicts)
    report = Report(_WHAT, _STATES, settings.max_failed, settings.sample, plan.nodes.pools, found)
    more = {"pairs": [one.row() for one in plan.verdicts], "tried": tried}
    nothing = "no pool declares an interconnect, or none of its nodes reports a GPU"
    return report.outcome(dataclasses.replace(ran, changed=bool(tried)), more, nothing, check_mode=check_mode)
