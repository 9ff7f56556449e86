# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by reports on pods of many nodes: results in one line, and as a failure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.report import GateFailed

PASSED, FAILED = "passed", "failed"
_TAIL_LINES = 20


class Finding(t.Protocol):
    """The result of a node."""

    @property
    def state(self) -> str:
        """PASSED, FAILED, or another state of the report."""


Findings = c.Mapping[str, Finding]


def tail(log: str) -> str:
    """The part of a log that a result contains."""
    return "\n".join(log.splitlines()[-_TAIL_LINES:])


def named(findings: Findings, state: str) -> list[str]:
    return sorted(name for name, found in findings.items() if found.state == state)


def line(what: str, findings: Findings, others: c.Iterable[str]) -> str:
    """`validation: 14 of 16 passed, 1 unproven: gpu-2, 1 failed: gpu-3`; others: the other states, in their order."""
    parts = [f"{what}: {len(named(findings, PASSED))} of {len(findings)} passed"]
    parts += [f"{len(nodes)} {state}: {some(nodes)}" for state in others if (nodes := named(findings, state))]
    return ", ".join(parts)


def failure(
    what: str, failed: c.Sequence[Fault], total: int, max_failed: str, again: str, sample: int
) -> GateFailed | None:
    """None within the limit. failed: one fault for each node, of which `sample` are reported. again: the next step after the repair."""
    limit = marks.limit_of(max_failed, total)
    if len(failed) <= limit:
        return None
    head = Fault(
        f"{what}: {len(failed)} of {total} nodes failed, {limit} allowed",
        "",
        "",
        f"repair the problems below, and {again}",
    )
    return GateFailed([head, *failed[:sample]])
