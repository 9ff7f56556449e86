# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report of tests that take all GPUs of nodes: rows, counts, a line and a failure."""

from __future__ import annotations

import collections
import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import findings as shared
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.findings import FAILED
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.report import GateFailed

#: busy: pods of others hold GPUs there. skipped: no pod can take all of its GPUs now, which is not a failure.
#: suspect: it or its partner failed, and it is unknown which.
BUSY, SKIPPED, SUSPECT = "busy", "skipped", "suspect"
_WORST_FIRST = (FAILED, SUSPECT, BUSY, SKIPPED)


@dataclasses.dataclass(frozen=True)
class Finding:
    """The result of a node. partner: the other node of a suspect one."""

    state: str
    reason: str = ""
    next_step: str = ""
    log: str = ""
    partner: str = ""


@dataclasses.dataclass(frozen=True)
class Report:
    """what: name of the test. states: possible results, passed first. pools: name of each node's pool."""

    what: str
    states: tuple[str, ...]
    max_failed: str
    sample: int
    pools: c.Mapping[str, str]
    findings: c.Mapping[str, Finding]

    def values(self) -> dict[str, t.Any]:
        count = collections.Counter(found.state for found in self.findings.values())
        return {
            "nodes": {state: count[state] for state in self.states},
            "failed_nodes": shared.named(self.findings, FAILED),
            "faults": self._faults(),
        }

    def line(self) -> str:
        """`allocation: 14 of 16 passed, 1 busy: gpu-2, 1 failed: gpu-3`"""
        return shared.line(self.what, self.findings, self.states[1:])

    def failure(self) -> GateFailed | None:
        """One of two suspect nodes counts as failed."""
        doubtful = {tuple(sorted((name, self.findings[name].partner))) for name in shared.named(self.findings, SUSPECT)}
        failed = [self._fault(name, f"node {name}") for name in shared.named(self.findings, FAILED)]
        failed += [self._fault(pair[0], f"one of the nodes {pair[0]} and {pair[1]}") for pair in sorted(doubtful)]
        return shared.failure(self.what, failed, len(self.findings), self.max_failed, "try again", self.sample)

    def outcome(self, ran: Outcome, more: dict[str, t.Any], nothing: str, *, check_mode: bool) -> Outcome:
        """Outcome of the whole test. ran: outcome of its pods. more: additional values, such as `tried`. nothing: why there was no node to test."""
        values = self.values() | more | {"missing_rights": ran.values.get("missing_rights", [])}
        outcome = Outcome(
            changed=ran.changed, values=values, warnings=ran.warnings, progress=ran.progress, failure=ran.failure
        )
        if not check_mode:
            outcome.progress.append(self.line())
            outcome.failure = self.failure()
        if not self.findings and not more["tried"]:
            outcome.warnings.append(f"no node to test: {nothing}")
        return outcome

    def _fault(self, name: str, who: str) -> Fault:
        found = self.findings[name]
        return Fault(who, f"pool {self.pools[name]}", found.reason, found.next_step)

    def _faults(self) -> list[dict[str, t.Any]]:
        chosen = [(name, self.findings[name]) for state in _WORST_FIRST for name in shared.named(self.findings, state)][
            : self.sample
        ]
        return [
            {
                "node": name,
                "pool": self.pools[name],
                "state": found.state,
                "reason": found.reason,
                "log_tail": shared.tail(found.log),
                "next_step": found.next_step,
            }
            for name, found in chosen
        ]
