# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a pod on every GPU node through the scheduler, and records the proof on the node."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import (
    chain,
    device_query,
    hints,
    names,
    proofs,
    resources,
    schedulable,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts, reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Assigner, Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.proofs import Proof
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import PluginConfig
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import parallel, rights
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import validation_report as report
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.findings import FAILED, PASSED, tail
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.fleet import Fleet, is_candidate
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings as GateSettings
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.validation_chain import Chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.validation_report import UNPROVEN, Finding
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import placement
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads import runs
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions, Workload

#: A proof is written under the condition that the node has not changed since it was read.
_PROVING: tuple[rights.Question, ...] = (("get", fleet.NODE, ""), ("patch", fleet.NODE, ""))
#: Number of proofs that are written in parallel.
_THREADS = 8
#: The kubelet's reason if the scheduler counted a GPU that the device plugin does not provide (kubernetes, pkg/kubelet/cm/admission/errors.go).
_NO_DEVICE = "UnexpectedAdmissionError"
_KEEPS_OFF = ("NoSchedule", "NoExecute")
#: Prefix of taints that Kubernetes sets and removes itself.
_CONDITION = "node.kubernetes.io/"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options of the module, under its names. definition, integrated_definition: the Pods; node, name and GPU are set for each run."""

    definition: c.Mapping[str, t.Any]
    pools: tuple[Pool, ...] = ()
    exclude: frozenset[str] = frozenset()
    plugin_configs: c.Mapping[str, PluginConfig] = dataclasses.field(default_factory=dict)
    always: bool = False
    max_failed: str = "0"
    sample: int = 20
    options: RunOptions = dataclasses.field(default_factory=RunOptions)
    integrated_definition: c.Mapping[str, t.Any] | None = None

    def asks_cuda(self, node: NodeFacts) -> bool:
        """Whether its GPU is integrated and validated by integrated_definition."""
        return bool(self.integrated_definition) and device_query.needed(node)

    def definition_of(self, node: NodeFacts) -> c.Mapping[str, t.Any]:
        return (self.integrated_definition if self.asks_cuda(node) else None) or self.definition

    def image(self, node: NodeFacts) -> str:
        """Image and command of this node's pod, which the proof depends on."""
        containers = (self.definition_of(node).get("spec") or {}).get("containers") or [{}]
        return str(containers[0].get("image") or "")

    @property
    def renamed(self) -> list[str]:
        """Names of resources from plugin configurations."""
        return sorted({sharing.renamed for config in self.plugin_configs.values() for sharing in config.sharing})

    @property
    def gate(self) -> GateSettings:
        """Settings of the last gate of the chain, which is judged before a pod runs."""
        return GateSettings(
            "devices",
            self.pools,
            self.options.namespace,
            exclude=self.exclude,
            sample=self.sample,
            plugin_configs=self.plugin_configs,
        )


class Validation:
    """One run over all its slices. Nodes are read in the first slice and restored in the last one for the report."""

    def __init__(self, settings: Settings, client: Client, clock: Clock, resume: dict[str, t.Any]) -> None:
        self.settings, self.client, self.clock = settings, client, clock
        self.began: float = resume.get("began") or clock.now()
        #: Findings that needed requests. All others are derived again from the nodes' facts.
        self.findings = {name: report.finding_of(row) for name, row in resume.get("findings", {}).items()}
        #: The resource that the pod requests, by the name of each node that runs one.
        self.resource_by_node: dict[str, str] = resume.get("resource_by_node", {})
        #: Names of nodes whose GPU is integrated.
        self.integrated: list[str] = resume.get("integrated", [])
        self._run: dict[str, t.Any] | None = resume.get("run")
        self._fleet = Fleet("devices", settings.pools, settings.options.namespace, "", settings.renamed)
        self._packed: str = resume.get("fleet", "")
        self._assigner = Assigner(settings.pools)
        #: Whether this slice has written or removed a proof. Pods that were created and deleted, and nodes that fail as before, are not changes.
        self.changed = False

    def choose(self, *, check_mode: bool) -> None:
        """Reads the fleet, and determines which nodes need a pod. Raises ManyFaults if the declared pools overlap.

        In check mode a node without its GPUs has not failed, because earlier stages were not applied either.
        """
        self._fleet.read_nodes(self.client)
        targets, links = self._targets(), Chain(self.client, self._fleet, self.settings.gate)
        suspect = [name for name in targets if self._fleet.nodes[name].quarantined or not links.offers(name)]
        broken = UNPROVEN if check_mode else FAILED
        for name, row in links.broken(suspect).items():
            self.findings[name] = Finding(
                broken, *(row[key] for key in ("link", "reason", "next_step", "pod", "log_tail"))
            )
        for name in targets:
            node = self._fleet.nodes[name]
            if name not in self.findings and (kept_off := self._kept_off(node)) is not None:
                self.findings[name] = kept_off
            if name not in self.findings and _before(node, self._fleet.pool(name), self.settings) is None:
                offered = (resource for resource, count in sorted(schedulable.observed(node).items()) if count)
                self.resource_by_node[name] = next(offered, resources.WHOLE)
                self.integrated += [name] if self.settings.asks_cuda(node) else []

    def go_on(self, *, check_mode: bool) -> Outcome:
        """Runs the pods, and records their proofs as soon as they have ended."""
        if not self.resource_by_node:
            return Outcome()
        usual, integrated = self.settings.definition, self.settings.integrated_definition or {}
        workloads = [
            _workload(name, resource, integrated if name in self.integrated else usual)
            for name, resource in self.resource_by_node.items()
        ]
        options = dataclasses.replace(self.settings.options, fail_on=frozenset())
        return runs.run(
            self.client, workloads, options, self.clock, check_mode=check_mode, resume=self._run, ended=self._ended
        )

    def pack(self, run: dict[str, t.Any]) -> dict[str, t.Any]:
        """State for the next slice. run: the remaining work of `go_on`."""
        findings = {name: dataclasses.asdict(found) for name, found in self.findings.items()}
        chosen = {"resource_by_node": self.resource_by_node, "integrated": self.integrated}
        return {
            "began": self.began,
            **chosen,
            "fleet": self._packed or self._fleet.pack(),
            "findings": findings,
            "run": run,
        }

    def report(self) -> report.Report:
        if self._packed:
            self._fleet.unpack(self._packed)
        nodes = {name: self._fleet.nodes[name] for name in self._targets()}
        pools = {name: self._fleet.pool(name) for name in nodes}
        known = {
            name: found
            for name, node in nodes.items()
            if name not in self.resource_by_node and (found := _before(node, pools[name], self.settings)) is not None
        }
        return report.Report(
            self.settings.max_failed, self.settings.sample, nodes, pools, known | self.findings, self.began
        )

    def _targets(self) -> list[str]:
        """Every GPU node that is not excluded, and those that pools name and the cluster does not have."""
        settings, pool_of = self.settings, self._fleet.pool
        return sorted(
            name
            for name, node in self._fleet.nodes.items()
            if name not in settings.exclude
            and is_candidate(node, pool_of(name))
            and pool_of(name).driver.provider != "none"
        )

    def _kept_off(self, node: NodeFacts) -> Finding | None:
        """The finding on a node whose taints the pod does not tolerate, so that it need not run. Kubernetes' own taints do not count."""
        tolerations = (self.settings.definition_of(node).get("spec") or {}).get("tolerations") or ()
        hard = [taint for taint in node.taints if taint[2] in _KEEPS_OFF and not taint[0].startswith(_CONDITION)]
        chosen = [
            _taint(*taint)
            for taint in hard
            if not placement.tolerates(tolerations, dict(zip(("key", "value", "effect"), taint, strict=True)))
        ]
        if not chosen or node.quarantined or node.unschedulable:
            return None
        next_step = "add a toleration (gpu_validation_tolerations), or remove the taint"
        return Finding(
            FAILED,
            chain.SCHEDULABLE,
            f"the node has taint {', '.join(chosen)}, which the pod does not tolerate",
            next_step,
        )

    def _ended(self, rows: runs.Rows) -> runs.Rows:
        """Judges several nodes at once. The results of their pods are not needed afterwards."""
        found = parallel.map_or_raise(self._judge, rows, _THREADS)
        self.findings.update({row["name"]: one for row, one in zip(rows, found, strict=True)})
        return [{"name": row["name"], "state": row["state"]} for row in rows]

    def _judge(self, row: c.Mapping[str, t.Any]) -> Finding:
        """Judges the current node. Writes its proof, or removes the proof of a node that failed."""
        found = Finding(
            UNPROVEN,
            chain.HARDWARE,
            "the node has left the cluster in the meantime",
            "let it join again, or remove it from the pool's nodes",
        )

        def judged(node: dict[str, t.Any]) -> dict[str, t.Any] | None:
            nonlocal found
            facts = reduce_node(node, self.settings.renamed)
            pool = self._assigner.pool_of(facts, node["metadata"].get("labels") or {})
            found = _found(row, facts, pool)
            if found.state == UNPROVEN:
                return None
            subject = proofs.subject(facts, pool, self.settings.image(facts))
            return _annotated(
                node, dataclasses.replace(found.proof, subject=subject).text() if found.state == PASSED else None
            )

        if marks.rewrite(self.client, fleet.NODE, row["name"], judged):
            self.changed = True
        return found


def run(
    settings: Settings,
    client: Client,
    clock: Clock,
    *,
    check_mode: bool = False,
    resume: dict[str, t.Any] | None = None,
) -> Outcome:
    """resume: the `pending` of the previous slice. In check mode it reports which nodes would run a pod, and missing permissions."""
    marks.limit_of(settings.max_failed, 0)
    one = Validation(settings, client, clock, resume or {})
    if not resume:
        one.choose(check_mode=check_mode)
    outcome = one.go_on(check_mode=check_mode)
    if outcome.pending is not None:
        return Outcome(changed=one.changed, pending=one.pack(outcome.pending), progress=outcome.progress)
    if check_mode:
        return _check(outcome, one.report(), list(one.resource_by_node), client)
    return _outcome(dataclasses.replace(outcome, changed=one.changed), one.report(), list(one.resource_by_node))


def forget(client: Client, *, check_mode: bool = False) -> list[str]:
    """Removes the proofs from all nodes. Returns the names of the nodes that changed, or would change."""
    proven = sorted(
        node["metadata"]["name"]
        for page in client.pages(fleet.NODE, metadata_only=True)
        for node in page.items
        if names.PROOF in (node["metadata"].get("annotations") or {})
    )
    if not check_mode:
        for name in proven:
            marks.rewrite(client, fleet.NODE, name, lambda node: _annotated(node, None))
    return proven


def _before(node: NodeFacts, pool: Pool, settings: Settings) -> Finding | None:
    """The finding on a node that offers its GPUs; None if it needs a pod."""
    if node.quarantined:
        why = f"it is quarantined at gate {marks.gate_of(node) or 'unknown'}"
        return Finding(
            FAILED,
            chain.SCHEDULABLE,
            why,
            f"check its annotation {names.QUARANTINE_REASON}, and run hwaccel.gpu.site once it is corrected",
        )
    kept = proofs.parse(node.proof)
    valid = kept.subject == proofs.subject(node, pool, settings.image(node))
    if node.unschedulable:
        return Finding(
            PASSED if valid else UNPROVEN,
            chain.SCHEDULABLE,
            f"it is cordoned; {_last(kept)}",
            "uncordon it, and validate again",
            proof=kept,
        )
    return Finding(PASSED, chain.SCHEDULABLE, _last(kept), proof=kept) if valid and not settings.always else None


def _taint(key: str, value: str, effect: str) -> str:
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _last(proof: Proof) -> str:
    return f"last proof of {proof.at}" if proof.at else "never proven"


def _workload(name: str, resource: str, definition: c.Mapping[str, t.Any]) -> Workload:
    """Only changed parts of the definition are copied, because each slice creates these for the whole fleet again."""
    spec = definition.get("spec") or {}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    containers = list(spec.get("containers") or [])
    for container in containers[:1]:
        given = container.get("resources") or {}
        containers[0] = {**container, "resources": given | {"limits": (given.get("limits") or {}) | {resource: 1}}}
    return Workload(
        name,
        {**definition, "spec": spec | {"affinity": (spec.get("affinity") or {}) | affinity, "containers": containers}},
    )


def _found(row: c.Mapping[str, t.Any], node: NodeFacts, pool: Pool) -> Finding:
    log, kept = row["log"], proofs.parse(node.proof)
    if row["state"] == runs.UNSCHEDULABLE and "Insufficient" in row["reason"]:
        return Finding(
            UNPROVEN,
            chain.SCHEDULABLE,
            f"busy, {_last(kept)}: {row['reason']}",
            "validate again when a GPU is free",
            proof=kept,
        )
    if row["state"] == runs.UNSCHEDULABLE:
        return Finding(
            FAILED,
            chain.SCHEDULABLE,
            row["reason"],
            "add tolerations for the node's taints, or remove the taint",
            row["pod"],
        )
    if row["reason"].startswith(_NO_DEVICE):
        return Finding(
            FAILED,
            chain.PLUGIN,
            row["reason"],
            "check the log of this node's device plugin, and validate again",
            row["pod"],
        )
    if row["state"] != runs.SUCCEEDED:
        why = "; ".join(part for part in (row["reason"], device_query.error(log)) if part)
        return Finding(
            FAILED,
            chain.CUDA,
            why,
            hints.next_step(log) or "check the pod's log, and the validator's on this node",
            row["pod"],
            tail(log),
        )
    if wrong := proofs.deviations(log, node, pool):
        next_steps = dict.fromkeys(one.next_step for one in wrong)
        return Finding(
            FAILED, chain.CUDA, "; ".join(one.text for one in wrong), "; ".join(next_steps), row["pod"], tail(log)
        )
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    proof = Proof("", at, *proofs.identity(log))
    return Finding(PASSED, chain.SCHEDULABLE, f"proven {at}", pod=row["pod"], proof=proof)


def _annotated(node: dict[str, t.Any], text: str | None) -> dict[str, t.Any] | None:
    """The patch that sets or removes the proof of a node; None if nothing changes."""
    metadata = node["metadata"]
    if (metadata.get("annotations") or {}).get(names.PROOF) == text:
        return None
    return {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": {names.PROOF: text}}}


def _outcome(ran: Outcome, found: report.Report, resource_by_node: list[str]) -> Outcome:
    values = found.values() | {"validated": resource_by_node, "missing_rights": []}
    outcome = Outcome(
        changed=ran.changed, values=values, progress=[*ran.progress, found.line()], failure=found.failure()
    )
    if not found.nodes:
        outcome.warnings.append("no node to validate: no node reports a GPU, and no declared pool with GPUs has a node")
    return outcome


def _check(ran: Outcome, found: report.Report, resource_by_node: list[str], client: Client) -> Outcome:
    """Nodes that would run a pod, and missing permissions to run them and to write proofs."""
    lacking = rights.refused(client, _PROVING, "") if resource_by_node else []
    missing = ran.values.get("missing_rights", []) + rights.as_dicts(lacking)
    outcome = Outcome(
        changed=ran.changed,
        values=found.values() | {"validated": resource_by_node, "missing_rights": missing},
        warnings=ran.warnings,
    )
    if missing:
        outcome.changed = False
        outcome.failure = ManyFaults(
            [*(ran.failure.faults if ran.failure is not None else ()), *rights.faults(lacking)]
        )
    return outcome
