# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that take all GPUs of a node: which nodes can be tested now, which pods hold GPUs there, and the Job."""

from __future__ import annotations

import collections
import collections.abc as c
import copy
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import allocations, device_query
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.allocations import Ask
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Assigner, Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import rights
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.fleet import is_candidate
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.whole_nodes_report import BUSY, SKIPPED, Finding
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import UNSCHEDULABLE, Workload

Row = c.Mapping[str, t.Any]

_POD = Resource("", "v1", "Pod", "pods", True)
#: A pod that was preempted, evicted or drained is soon deleted. By this rule, its Job keeps that information.
_TELL_DISRUPTION = {
    "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}
#: Condition of such a pod in the message of its Job (kubernetes, pkg/controller/job/pod_failure_policy.go).
_DISRUPTED = "condition DisruptionTarget"


@dataclasses.dataclass(frozen=True)
class WholeNodesPlan:
    """Created once for all slices. pools: name of each node's pool. asked: nodes that run pods. findings: results of the others, and later of all."""

    pools: dict[str, str]
    requests: dict[str, Ask]
    findings: dict[str, Finding]

    def pack(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)

    @classmethod
    def unpack(cls, packed: dict[str, t.Any]) -> WholeNodesPlan:
        requests = {name: Ask(**fields) for name, fields in packed["requests"].items()}
        return cls(packed["pools"], requests, {name: Finding(**fields) for name, fields in packed["findings"].items()})


def lacking(client: Client, check_mode: bool, nothing: dict[str, t.Any]) -> Outcome | None:
    """Outcome of check mode if the plan failed because of missing permission to list pods. nothing: values without nodes."""
    missing = rights.refused(client, [("list", _POD, "")], "") if check_mode else []
    return (
        Outcome(
            values=nothing | {"missing_rights": rights.as_dicts(missing)}, failure=ManyFaults(rights.faults(missing))
        )
        if missing
        else None
    )


def plan(
    client: Client,
    pools: tuple[Pool, ...],
    exclude: frozenset[str],
    includes: c.Callable[[Pool], bool],
    unfit: c.Callable[[NodeFacts], Finding | None],
) -> WholeNodesPlan:
    """includes: pools whose nodes are tested. unfit: additional reasons to skip a node. Raises ManyFaults if the declared pools overlap."""
    found, nodes, pool_of = WholeNodesPlan({}, {}, {}), dict[str, NodeFacts](), dict[str, Pool]()
    for _node, facts, pool in fleet.nodes(client, Assigner(pools)):
        if (
            facts.name in exclude
            or pool.driver.provider == "none"
            or not includes(pool)
            or not is_candidate(facts, pool)
        ):
            continue
        found.pools[facts.name] = pool.name
        if (why := _unfit(facts) or unfit(facts)) is not None:
            found.findings[facts.name] = why
        else:
            nodes[facts.name], pool_of[facts.name] = facts, pool
    held = _held(client, nodes)
    for name, node in sorted(nodes.items()):
        if name in held:
            found.findings[name] = Finding(
                BUSY, f"pods hold GPUs there: {some(held[name])}", "try again when they have ended"
            )
        else:
            found.requests[name] = Ask(
                allocations.request(node), allocations.devices(node, pool_of[name]), device_query.needed(node)
            )
    return found


def _unfit(node: NodeFacts) -> Finding | None:
    """Why no pod can take all of its GPUs now. Missing GPUs are reported by the gates."""
    if not node.ready or node.quarantined or not allocations.request(node):
        return Finding(SKIPPED, "it is not Ready, quarantined, or offers no GPU", "run hwaccel.gpu.validate for it")
    if node.unschedulable:
        return Finding(SKIPPED, "it is cordoned", "uncordon it, and try again")
    if node.gpu.replicas > 1:
        return Finding(
            SKIPPED,
            f"each of its GPUs is shared by up to {node.gpu.replicas} pods",
            "none: shared GPUs cannot be allocated exclusively",
        )
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


def workload(
    name: str,
    node: str,
    requested: c.Mapping[str, int],
    environment: c.Mapping[str, str],
    definition: c.Mapping[str, t.Any],
) -> Workload:
    """A Job, which records whether its pod was preempted. requested, environment: for the first container."""
    pod = copy.deepcopy(dict(definition))
    spec = {"restartPolicy": "Never"} | (pod.get("spec") or {})
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    spec["affinity"] = (spec.get("affinity") or {}) | affinity
    for container in spec.get("containers", [])[:1]:
        limits = (container.get("resources") or {}).get("limits") or {}
        container["resources"] = (container.get("resources") or {}) | {"limits": limits | dict(requested)}
        container["env"] = [
            *(container.get("env") or ()),
            *({"name": key, "value": value} for key, value in environment.items()),
        ]
    metadata = pod.get("metadata") or {}
    kept = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
    job_spec = {"backoffLimit": 0, "podFailurePolicy": _TELL_DISRUPTION, "template": {"metadata": kept, "spec": spec}}
    return Workload(name, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job_spec})


def disrupted(row: Row) -> bool:
    """Whether its pod was preempted, which is not a failure of the node."""
    return _DISRUPTED in row["reason"]


def taken(row: Row, requests: c.Mapping[str, int]) -> bool:
    """Whether other pods took the GPUs first."""
    return row["state"] == UNSCHEDULABLE and any(word in row["reason"] for word in allocations.insufficient(requests))
