# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pod with all GPUs of a node, and one more that has to wait for it. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections
import collections.abc as c
import copy
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._engine import contests, rights, runs
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.contests import Contest, Result
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.options import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.runs import RunOptions, Workload
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import allocations, device_query
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.allocations import Ask
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Assigner, Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import allocation_judgement as judgement
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.allocation_report import BUSY, SKIPPED, Finding, Report
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate_fleet import is_candidate

_POD = Resource("", "v1", "Pod", "pods", True)
#: How long the pod that takes all stays after its last line: the run ends it before, unless it was killed.
HOLD = "HOLD_SECONDS"
#: Seconds beyond two schedule_timeouts, for the one that waits and for what an answer may take.
_HOLD_MARGIN = 60
#: A pod that was preempted, evicted or drained is gone soon; its Job stays and tells it by this rule.
_TELL_DISRUPTION = {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options of the module, under its names. definition, integrated_definition: the Pods; node, GPUs and how long it stays are filled in for each run."""

    definition: c.Mapping[str, t.Any]
    pools: tuple[Pool, ...] = ()
    exclude: frozenset[str] = frozenset()
    exclusivity: bool = False
    max_failed: str = "0"
    sample: int = 20
    options: RunOptions = dataclasses.field(default_factory=RunOptions)
    integrated_definition: c.Mapping[str, t.Any] | None = None


def run(
    settings: Settings, client: Client, clock: Clock, *, check_mode: bool = False, resume: dict[str, t.Any] | None = None,
) -> Outcome:
    """resume: the `pending` of the slice before. In check mode it is told which nodes would run pods, and whether the run might."""
    marks.limit_of(settings.max_failed, 0)
    if check_mode and (missing := rights.refused(client, [("list", _POD, "")], "")):
        return Outcome(values=_nothing() | {"missing_rights": rights.as_dicts(missing)}, failure=ManyFaults(rights.faults(missing)))
    plan = Plan.unpack(resume["plan"]) if resume else _plan(client, settings)
    outcome, results = _play(plan, settings, client, clock, check_mode, resume["run"] if resume else None)
    if outcome.pending is not None:
        return Outcome(changed=True, pending={"plan": plan.pack(), "run": outcome.pending}, progress=outcome.progress)
    for (name, ask), result in zip(plan.asked.items(), results, strict=False):
        plan.findings[name] = judgement.found(result, ask, exclusivity=settings.exclusivity)
    return _outcome(outcome, Report(settings.max_failed, settings.sample, plan.pools, plan.findings), list(plan.asked), check_mode)


@dataclasses.dataclass(frozen=True)
class Plan:
    """Made once for all slices. pools: name of each node's pool. asked: of nodes that run pods. findings: what is known of the others, and later of all."""

    pools: dict[str, str]
    asked: dict[str, Ask]
    findings: dict[str, Finding]

    def pack(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)

    @classmethod
    def unpack(cls, packed: dict[str, t.Any]) -> Plan:
        asked = {name: Ask(**fields) for name, fields in packed["asked"].items()}
        return cls(packed["pools"], asked, {name: Finding(**fields) for name, fields in packed["findings"].items()})


def _plan(client: Client, settings: Settings) -> Plan:
    """Raises ManyFaults where the declared pools overlap."""
    found, nodes, pools = Plan({}, {}, {}), dict[str, NodeFacts](), dict[str, Pool]()
    for _node, facts, pool in fleet.nodes(client, Assigner(settings.pools)):
        if facts.name in settings.exclude or pool.driver.provider == "none" or not is_candidate(facts, pool):
            continue
        found.pools[facts.name] = pool.name
        if (why := _unfit(facts, settings)) is not None:
            found.findings[facts.name] = why
        else:
            nodes[facts.name], pools[facts.name] = facts, pool
    held = _held(client, nodes)
    for name, node in sorted(nodes.items()):
        if name in held:
            found.findings[name] = Finding(BUSY, f"pods hold GPUs there: {some(held[name])}", "try again when they have ended")
        else:
            found.asked[name] = Ask(allocations.request(node), allocations.devices(node, pools[name]), device_query.needed(node))
    return found


def _unfit(node: NodeFacts, settings: Settings) -> Finding | None:
    """Why no pod could take all of its GPUs now; that of a node which should have some and offers none is for the gates to tell."""
    if not node.ready or node.quarantined or not allocations.request(node):
        return Finding(SKIPPED, "it is not Ready, quarantined, or offers no GPU", "see what hwaccel.gpu.validate says of it")
    if node.unschedulable:
        return Finding(SKIPPED, "it is cordoned", "uncordon it, and try again")
    if node.gpu.replicas > 1:
        return Finding(SKIPPED, f"each of its GPUs is shared by up to {node.gpu.replicas} pods", "nothing: shared GPUs are nobody's alone")
    if device_query.needed(node) and not settings.integrated_definition:
        return Finding(SKIPPED, "its GPU is integrated: nvidia-smi does not list it", "give integrated_definition, a pod with deviceQuery for it")
    return None


def _held(client: Client, nodes: c.Mapping[str, NodeFacts]) -> dict[str, list[str]]:
    """Pods that hold GPUs, by node."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for page in client.pages(_POD, field_selector="status.phase!=Succeeded,status.phase!=Failed") if nodes else ():
        for pod in page.items:
            node = nodes.get((pod.get("spec") or {}).get("nodeName") or "")
            if node is not None and allocations.holds(pod, node):
                found[node.name].append(f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}")
    return found


def _play(
    plan: Plan, settings: Settings, client: Client, clock: Clock, check_mode: bool, resume: dict[str, t.Any] | None,
) -> tuple[Outcome, list[Result]]:
    if not plan.asked:
        return Outcome(), []
    options = dataclasses.replace(settings.options, fail_on=frozenset())
    if settings.exclusivity:
        pairs = [_contest(name, ask, settings) for name, ask in plan.asked.items()]
        return contests.run(client, pairs, options, clock, check_mode=check_mode, resume=resume)
    workloads = [_workload(name, name, ask.request, 0, _definition(ask, settings)) for name, ask in plan.asked.items()]
    outcome = runs.run(client, workloads, options, clock, check_mode=check_mode, resume=resume)
    return outcome, [Result(row, None, "", False) for row in outcome.values.get("workloads", ())]


def _definition(ask: Ask, settings: Settings) -> c.Mapping[str, t.Any]:
    return (settings.integrated_definition if ask.integrated else None) or settings.definition


def _contest(node: str, ask: Ask, settings: Settings) -> Contest:
    definition = _definition(ask, settings)
    hold = int(2 * settings.options.schedule_timeout) + _HOLD_MARGIN
    first = _workload(node, node, ask.request, hold, definition)
    second = _workload(f"{node} (one more)", node, ask.one_more, 0, definition)
    return Contest(first, second, allocations.ALL_ASKED, allocations.insufficient(ask.one_more))


def _workload(name: str, node: str, wanted: c.Mapping[str, int], hold: int, definition: c.Mapping[str, t.Any]) -> Workload:
    """A Job, so that it says whether its pod had to make room for another."""
    pod = copy.deepcopy(dict(definition))
    spec = {"restartPolicy": "Never"} | (pod.get("spec") or {})
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    spec["affinity"] = (spec.get("affinity") or {}) | affinity
    for container in spec.get("containers", [])[:1]:
        limits = (container.get("resources") or {}).get("limits") or {}
        container["resources"] = (container.get("resources") or {}) | {"limits": limits | dict(wanted)}
        container["env"] = [*(container.get("env") or ()), {"name": HOLD, "value": str(hold)}]
    metadata = pod.get("metadata") or {}
    kept = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
    job_spec = {"backoffLimit": 0, "podFailurePolicy": _TELL_DISRUPTION, "template": {"metadata": kept, "spec": spec}}
    return Workload(name, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job_spec})


def _nothing() -> dict[str, t.Any]:
    return Report("0", 0, {}, {}).values() | {"tried": [], "missing_rights": []}


def _outcome(ran: Outcome, found: Report, tried: list[str], check_mode: bool) -> Outcome:
    values = found.values() | {"tried": tried, "missing_rights": ran.values.get("missing_rights", [])}
    outcome = Outcome(changed=ran.changed, values=values, warnings=ran.warnings, progress=ran.progress, failure=ran.failure)
    if not check_mode:
        outcome.progress.append(found.line())
        outcome.failure = found.failure()
    if not found.findings and not tried:
        outcome.warnings.append("no node to try: none shows a GPU, and no declared pool with GPUs has one")
    return outcome
