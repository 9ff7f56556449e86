# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What came of taking all GPUs of nodes: rows, counts, a line and a failure. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections
import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import findings as shared
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.findings import FAILED, PASSED
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate_report import GateFailed

#: busy: somebody else's pods hold GPUs there. skipped: no pod can take all of its GPUs now, and that is no fault of theirs.
BUSY, SKIPPED = "busy", "skipped"
STATES = (PASSED, BUSY, SKIPPED, FAILED)


@dataclasses.dataclass(frozen=True)
class Finding:
    """What is known of a node at the end."""

    state: str
    reason: str = ""
    next_step: str = ""
    log: str = ""


@dataclasses.dataclass(frozen=True)
class Report:
    """pools: name of each node's pool."""

    max_failed: str
    sample: int
    pools: c.Mapping[str, str]
    findings: c.Mapping[str, Finding]

    def values(self) -> dict[str, t.Any]:
        count = collections.Counter(found.state for found in self.findings.values())
        return {"nodes": {state: count[state] for state in STATES}, "failed_nodes": shared.named(self.findings, FAILED), "faults": self._faults()}

    def line(self) -> str:
        """`all GPUs taken: 14 of 16 passed, 1 busy: gpu-2, 1 failed: gpu-3`"""
        return shared.line("all GPUs taken", self.findings, STATES[1:])

    def failure(self) -> GateFailed | None:
        return shared.failure("all GPUs taken", self.findings, self.max_failed, "try again", self._fault, self.sample)

    def _fault(self, name: str) -> Fault:
        found = self.findings[name]
        return Fault(f"node {name}", f"pool {self.pools[name]}", found.reason, found.next_step)

    def _faults(self) -> list[dict[str, t.Any]]:
        chosen = [(name, self.findings[name]) for state in (FAILED, BUSY, SKIPPED) for name in shared.named(self.findings, state)][: self.sample]
        return [
            {
                "node": name, "pool": self.pools[name], "state": found.state, "reason": found.reason,
                "log_tail": shared.tail(found.log), "next_step": found.next_step,
            }
            for name, found in chosen
        ]
