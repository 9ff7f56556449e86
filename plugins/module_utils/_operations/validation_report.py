# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a validation, in the format of a gate's result."""

from __future__ import annotations

import collections
import collections.abc as c
import dataclasses
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import hints, resources, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.proofs import Proof
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import findings as shared
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.findings import FAILED, PASSED
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.report import GateFailed

#: unproven: its GPUs are allocated, or it is cordoned, which is neither a failure nor a proof.
UNPROVEN = "unproven"
_ORDER = (FAILED, UNPROVEN)


@dataclasses.dataclass(frozen=True)
class Finding:
    """The result of a node. link: the failed link of the chain, or the last one if it passed."""

    state: str
    link: str
    reason: str = ""
    next_step: str = ""
    pod: str = ""
    log_tail: str = ""
    proof: Proof = dataclasses.field(default_factory=Proof)


def finding_of(row: c.Mapping[str, t.Any]) -> Finding:
    """Reverses `dataclasses.asdict`."""
    return Finding(**{**row, "proof": Proof(**row["proof"])})


@dataclasses.dataclass(frozen=True)
class Report:
    """began: seconds since 1970."""

    max_failed: str
    sample: int
    nodes: c.Mapping[str, NodeFacts]
    pools: c.Mapping[str, Pool]
    findings: c.Mapping[str, Finding]
    began: float

    def values(self) -> dict[str, t.Any]:
        count = collections.Counter(found.state for found in self.findings.values())
        return {
            "gate": "validation",
            "nodes": {state: count[state] for state in (PASSED, UNPROVEN, FAILED)},
            "failed_nodes": shared.named(self.findings, FAILED),
            "faults": self._faults(),
            "pools": self._rows(),
        }

    def line(self) -> str:
        """`validation: 14 of 16 passed, 1 unproven: gpu-2, 1 failed: gpu-3`"""
        return shared.line("validation", self.findings, (UNPROVEN, FAILED))

    def failure(self) -> GateFailed | None:
        failed = [_fault(name, self.findings[name]) for name in shared.named(self.findings, FAILED)]
        return shared.failure("validation", failed, len(self.findings), self.max_failed, "validate again", self.sample)

    def _faults(self) -> list[dict[str, t.Any]]:
        chosen = [(name, self.findings[name]) for state in _ORDER for name in shared.named(self.findings, state)][
            : self.sample
        ]
        return [
            {
                "node": name,
                "pool": self.pools[name].name if name in self.pools else "",
                "state": found.state,
                "link": found.link,
                "reason": found.reason,
                "pod": found.pod,
                "log_tail": found.log_tail,
                "next_step": found.next_step,
            }
            for name, found in chosen
        ]

    def _rows(self) -> list[dict[str, t.Any]]:
        by_pool: dict[str, list[NodeFacts]] = {}
        for name, node in self.nodes.items():
            by_pool.setdefault(self.pools[name].name, []).append(node)
        return [self._row(pool, nodes) for pool, nodes in sorted(by_pool.items())]

    def _row(self, pool: str, nodes: list[NodeFacts]) -> dict[str, t.Any]:
        found = [self.findings[node.name] for node in nodes if node.name in self.findings]
        count = collections.Counter(one.state for one in found)
        expected = sum(resources.total(schedulable.expected(node, self.pools[node.name])) for node in nodes)
        return {
            "pool": pool,
            "nodes": len(nodes),
            "expected": expected,
            "seen": sum(resources.total(schedulable.observed(node)) for node in nodes),
            **{state: count[state] for state in (PASSED, UNPROVEN, FAILED)},
            "settled": time.time() if found else self.began,
            "simulated": sum(node.simulated for node in nodes),
            "kernels": sorted({node.kernel for node in nodes if node.kernel}),
            "drivers": sorted(
                {one.proof.driver for one in found if one.proof.driver}
                or {node.driver_version for node in nodes if node.driver_version}
            ),
            "oldest_proof": min((one.proof.at for one in found if one.proof.at), default=""),
            "gpus": sorted({one.proof.gpu for one in found if one.proof.gpu}),
        }


def _fault(node: str, found: Finding) -> Fault:
    line = hints.telling(found.log_tail)
    return Fault(f"node {node}", found.link, found.reason + (f"; its log: {line}" if line else ""), found.next_step)
