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
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate_report import GateFailed

#: busy: somebody else's pods hold GPUs there. skipped: no pod can take all of its GPUs now, and that is no fault of theirs.
PASSED, BUSY, SKIPPED, FAILED = "passed", "busy", "skipped", "failed"
STATES = (PASSED, BUSY, SKIPPED, FAILED)
_TAIL_LINES = 20


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
        return {"nodes": {state: count[state] for state in STATES}, "failed_nodes": self._named(FAILED), "faults": self._faults()}

    def line(self) -> str:
        """`all GPUs taken: 14 of 16 passed, 1 busy: gpu-2, 1 failed: gpu-3`"""
        parts = [f"all GPUs taken: {len(self._named(PASSED))} of {len(self.findings)} passed"]
        parts += [f"{len(found)} {state}: {some(found)}" for state in STATES[1:] if (found := self._named(state))]
        return ", ".join(parts)

    def failure(self) -> GateFailed | None:
        failed = self._named(FAILED)
        limit = marks.limit_of(self.max_failed, len(self.findings))
        if len(failed) <= limit:
            return None
        head = Fault(f"all GPUs taken: {len(failed)} of {len(self.findings)} nodes failed, {limit} may", "", "", "repair what is named below, and try again")
        told = [(name, self.findings[name]) for name in failed[: self.sample]]
        return GateFailed([head, *(Fault(f"node {name}", f"pool {self.pools[name]}", found.reason, found.next_step) for name, found in told)])

    def _named(self, state: str) -> list[str]:
        return sorted(name for name, found in self.findings.items() if found.state == state)

    def _faults(self) -> list[dict[str, t.Any]]:
        chosen = [(name, self.findings[name]) for state in (FAILED, BUSY, SKIPPED) for name in self._named(state)][: self.sample]
        return [
            {
                "node": name, "pool": self.pools[name], "state": found.state, "reason": found.reason,
                "log_tail": "\n".join(found.log.splitlines()[-_TAIL_LINES:]), "next_step": found.next_step,
            }
            for name, found in chosen
        ]
