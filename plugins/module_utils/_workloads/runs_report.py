# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a run of workloads: progress, results and failure."""

from __future__ import annotations

import collections
import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import runs
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.runs import Progress

SUCCEEDED, FAILED, UNSCHEDULABLE, TIMEOUT = "succeeded", "failed", "unschedulable", "timeout"
STATES = (SUCCEEDED, FAILED, UNSCHEDULABLE, TIMEOUT)
_SHOWN_LINES = 5


class RunFailed(HwaccelError):
    """Workloads ended in a state of fail_on."""

    def __init__(self, head: str, faults: c.Sequence[Fault]) -> None:
        super().__init__(head)
        self.faults = tuple(faults)
        self.args = ("\n".join([f"{head}:", *(f"- {fault}" for fault in faults)]),)


def progress_line(done: c.Mapping[str, dict[str, t.Any]], stages: c.Mapping[str, Progress], total: int) -> str:
    """`12 of 16 ended, 1 failed: gpu-3, 2 running: gpu-7, gpu-9, 2 pending: gpu-4 (0/4 nodes are available …)`"""
    parts = [f"{len(done)} of {total} ended"]
    for state in STATES[1:]:
        names = [name for name, row in done.items() if row["state"] == state]
        parts += [f"{len(names)} {state}: {some(names)}"] if names else []
    for stage in (runs.RUNNING, runs.STARTING, runs.PENDING, runs.CREATED):
        names = [name for name, seen in stages.items() if seen.stage == stage]
        reason = stages[names[0]].reason if names and stage != runs.RUNNING else ""
        parts += [f"{len(names)} {stage}: {some(names)}{f' ({reason[:120]})' if reason else ''}"] if names else []
    return ", ".join(parts)


def values(rows: list[dict[str, t.Any]], missing_rights: list[dict[str, str]]) -> dict[str, t.Any]:
    count = collections.Counter(row["state"] for row in rows)
    return {"workloads": rows, "states": {state: count[state] for state in STATES}, "missing_rights": missing_rights}


def failure(rows: c.Sequence[dict[str, t.Any]], fail_on: c.Collection[str]) -> RunFailed | None:
    bad = [row for row in rows if row["state"] in fail_on]
    return (
        RunFailed(f"{len(bad)} of {len(rows)} workloads did not succeed", [_fault(row) for row in bad]) if bad else None
    )


def _fault(row: dict[str, t.Any]) -> Fault:
    tail = " / ".join([line.strip() for line in row["log"].splitlines() if line.strip()][-_SHOWN_LINES:])
    next_step = {
        UNSCHEDULABLE: "free the resources that it requests, or correct its node selector and tolerations",
        TIMEOUT: "check the reason, and increase the timeout if it only needs longer",
    }.get(row["state"], "check the reason and its log")
    why = row["reason"] + (f"; its log ends with: {tail}" if tail else "")
    return Fault(
        f"workload {row['name']}: {row['state']}", f"node {row['node']}" if row["node"] else "", why, next_step
    )
