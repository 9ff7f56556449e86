# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod that computes on every GPU node, by the scheduler's hand, and the proof of it on the node. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._engine import runs
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.options import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.runs import RunOptions, Workload
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain, names, proofs, resources
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Assigner, Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.proofs import Proof
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import validation_report as report
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate_fleet import is_candidate
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.validation_report import FAILED, PASSED, UNPROVEN, Finding


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options of the module, under its names. definition: the Pod; node, name and GPU are filled in for each run."""

    definition: c.Mapping[str, t.Any]
    pools: tuple[Pool, ...] = ()
    exclude: frozenset[str] = frozenset()
    always: bool = False
    max_failed: str = "0"
    sample: int = 20
    options: RunOptions = dataclasses.field(default_factory=RunOptions)

    @property
    def image(self) -> str:
        """What the pod runs, for a proof to name."""
        containers = (self.definition.get("spec") or {}).get("containers") or [{}]
        return str(containers[0].get("image") or "")


@dataclasses.dataclass(frozen=True)
class Fleet:
    """The GPU nodes that are to be judged, with their pools."""

    nodes: dict[str, NodeFacts]
    pools: dict[str, Pool]


def read(client: Client, settings: Settings) -> Fleet:
    """Every GPU node that is not excluded, and those that pools name and nobody has. Raises ManyFaults where the declared pools overlap."""
    found, met = Fleet({}, {}), set()
    for _node, facts, pool in fleet.nodes(client, Assigner(settings.pools)):
        met.add(facts.name)
        if is_candidate(facts, pool):
            found.nodes[facts.name], found.pools[facts.name] = facts, pool
    for pool in settings.pools:
        for name in pool.nodes - met:
            found.nodes[name], found.pools[name] = NodeFacts(name), pool
    for name, pool in list(found.pools.items()):
        if name in settings.exclude or pool.driver.provider == "none":
            del found.nodes[name], found.pools[name]
    return found


def run(
    settings: Settings, client: Client, clock: Clock, *, check_mode: bool = False, resume: dict[str, t.Any] | None = None,
) -> Outcome:
    """resume: the `pending` of the slice before. In check mode it is told which nodes would run a pod, and whether the run might."""
    marks.limit_of(settings.max_failed, 0)
    resume = resume or {}
    began = resume.get("began") or clock.now()
    targets = read(client, settings)
    findings = {name: found for name, node in targets.nodes.items() if (found := _before(node, settings)) is not None}
    # What an earlier slice has begun goes on, whatever has become of the node since.
    wanted = resume.get("wanted") or sorted(set(targets.nodes) - set(findings))
    workloads = [_workload(name, targets.nodes.get(name), settings) for name in wanted]
    options = dataclasses.replace(settings.options, fail_on=frozenset())
    outcome = runs.run(client, workloads, options, clock, check_mode=check_mode, resume=resume.get("run")) if wanted else Outcome()
    if outcome.pending is not None:
        return Outcome(changed=True, pending={"wanted": wanted, "began": began, "run": outcome.pending}, progress=outcome.progress)
    if not check_mode:
        for row in outcome.values.get("workloads", ()):
            name = row["name"]
            findings[name] = _found(row, targets.nodes.get(name) or NodeFacts(name), targets.pools.get(name) or Pool("default", declared=False))
            _keep(client, targets.nodes.get(name), findings[name], settings)
    return _outcome(outcome, report.Report(settings.max_failed, settings.sample, targets.nodes, targets.pools, findings, began), wanted, check_mode)


def forget(client: Client, *, check_mode: bool = False) -> list[str]:
    """Takes the proofs off all nodes; names of the nodes whose proof went, or would go."""
    proven = sorted(
        node["metadata"]["name"] for page in client.pages(fleet.NODE, metadata_only=True) for node in page.items
        if names.PROOF in (node["metadata"].get("annotations") or {})
    )
    if not check_mode:
        for name in proven:
            _annotate(client, name, None)
    return proven


def _before(node: NodeFacts, settings: Settings) -> Finding | None:
    """What is known without a pod; None where one has to run."""
    if not node.uid:
        return Finding(FAILED, chain.HARDWARE, "the cluster has no such node", "let the node join, or take it from the pool's nodes")
    if not node.ready:
        return Finding(FAILED, chain.HARDWARE, f"the node is not Ready: {node.not_ready}", "repair the kubelet of this node")
    if node.quarantined:
        why = f"it is quarantined at gate {marks.gate_of(node) or 'unknown'}"
        return Finding(FAILED, chain.SCHEDULABLE, why, f"see its annotation {names.QUARANTINE_REASON}, and run hwaccel.gpu.site once it is mended")
    if not resources.total(resources.observed(node)):
        return Finding(FAILED, chain.PLUGIN, "it offers no GPU to the scheduler", "run hwaccel.gpu.site, whose gates tell which link of the chain is broken")
    kept = proofs.parse(node.proof)
    valid = kept.subject == proofs.subject(node, settings.image)
    if node.unschedulable:
        return Finding(PASSED if valid else UNPROVEN, chain.SCHEDULABLE, f"it is cordoned; {_last(kept)}", "uncordon it, and validate again", proof=kept)
    return Finding(PASSED, chain.SCHEDULABLE, _last(kept), proof=kept) if valid and not settings.always else None


def _last(proof: Proof) -> str:
    return f"last proof of {proof.at}" if proof.at else "never proven"


def _workload(name: str, node: NodeFacts | None, settings: Settings) -> Workload:
    pod = copy.deepcopy(dict(settings.definition))
    spec = pod.setdefault("spec", {})
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    spec["affinity"] = (spec.get("affinity") or {}) | affinity
    resource = next((key for key, count in sorted(resources.observed(node).items()) if count), resources.WHOLE) if node is not None else resources.WHOLE
    for container in spec.get("containers", [])[:1]:
        limits = (container.get("resources") or {}).get("limits") or {}
        container["resources"] = (container.get("resources") or {}) | {"limits": limits | {resource: 1}}
    return Workload(name, pod)


def _found(row: c.Mapping[str, t.Any], node: NodeFacts, pool: Pool) -> Finding:
    log, kept = row["log"], proofs.parse(node.proof)
    if row["state"] == runs.UNSCHEDULABLE and "Insufficient" in row["reason"]:
        return Finding(UNPROVEN, chain.SCHEDULABLE, f"busy, {_last(kept)}: {row['reason']}", "validate again when a GPU is free", proof=kept)
    if row["state"] == runs.UNSCHEDULABLE:
        return Finding(FAILED, chain.SCHEDULABLE, row["reason"], "let the pod tolerate the node's taints, or take the taint away", row["pod"])
    if row["state"] != runs.SUCCEEDED:
        return Finding(FAILED, chain.CUDA, row["reason"], "see the pod's log, and the validator's on this node", row["pod"], log)
    if wrong := proofs.deviations(log, node, pool):
        return Finding(FAILED, chain.CUDA, "; ".join(wrong), "correct the pool's declaration, or see what is wrong on the node", row["pod"], log)
    gpu = next(iter(proofs.seen(log)), None)
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    proof = Proof("", at, gpu.name if gpu else "", gpu.driver if gpu else "")
    return Finding(PASSED, chain.SCHEDULABLE, f"proven {at}", pod=row["pod"], log=log, proof=proof)


def _keep(client: Client, node: NodeFacts | None, found: Finding, settings: Settings) -> None:
    """A proof is written down, and that of a node which has failed is no longer one."""
    if node is None or found.state == UNPROVEN or (found.state == FAILED and not node.proof):
        return
    subject = proofs.subject(node, settings.image)
    _annotate(client, node.name, dataclasses.replace(found.proof, subject=subject).text() if found.state == PASSED else None)


def _annotate(client: Client, name: str, text: str | None) -> None:
    def annotated(node: dict[str, t.Any]) -> dict[str, t.Any] | None:
        if (node["metadata"].get("annotations") or {}).get(names.PROOF) == text:
            return None
        return {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {names.PROOF: text}}}

    marks.rewrite(client, fleet.NODE, name, annotated)


def _outcome(ran: Outcome, found: report.Report, wanted: list[str], check_mode: bool) -> Outcome:
    values = found.values() | {"validated": wanted, "missing_rights": ran.values.get("missing_rights", [])}
    outcome = Outcome(changed=ran.changed, values=values, warnings=ran.warnings, progress=ran.progress, failure=ran.failure)
    if check_mode:
        return outcome
    outcome.progress.append(found.line())
    failure: HwaccelError | None = found.failure()
    outcome.failure = failure
    if not found.nodes:
        outcome.warnings.append("no node to validate: none shows a GPU, and no declared pool with GPUs has one")
    return outcome
