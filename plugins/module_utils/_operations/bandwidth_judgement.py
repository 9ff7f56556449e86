# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges the connection between two nodes from their pods, and each node from all of its pairs. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import bandwidth
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.allocations import Ask
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import PoolInterconnect
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.findings import FAILED, PASSED
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.whole_nodes import Row, disrupted, taken
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.whole_nodes_report import (
    BUSY,
    SKIPPED,
    SUSPECT,
    Finding,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.rendezvous import ENDED, Result
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import SUCCEEDED, TIMEOUT, UNSCHEDULABLE

_SEE_LOGS = "check the logs of both pods, links and counters of both nodes, and NetworkPolicies of the pods' namespace"
_SEE_NETWORK = "check the links of both nodes (ibstat, rdma link), and the plugin that offers their devices to pods"
_SEE_POD = "check the pod's log, and run hwaccel.gpu.validate for this node"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """state: passed, busy or failed. blamed: name of the node that caused the failure, "" if unknown. bandwidth: in GB/s, None if not measured."""

    nodes: tuple[str, str]
    state: str
    reason: str = ""
    next_step: str = ""
    blamed: str = ""
    bandwidth: float | None = None
    networks: tuple[str, ...] = ()
    log: str = ""

    def other(self, node: str) -> str:
        return self.nodes[1] if node == self.nodes[0] else self.nodes[0]

    def row(self) -> dict[str, t.Any]:
        return {
            "nodes": list(self.nodes),
            "state": self.state,
            "bandwidth": self.bandwidth,
            "networks": list(self.networks),
            "reason": self.reason,
        }


def verdict(nodes: tuple[str, str], result: Result, asks: tuple[Ask, Ask], expected: PoolInterconnect) -> Verdict:
    """The verdict on one pair."""
    rows = [
        (node, ask, row)
        for node, ask, row in zip(nodes, asks, (result.first, result.second), strict=False)
        if row is not None
    ]
    for node, ask, row in rows:
        if disrupted(row):
            return Verdict(
                nodes,
                BUSY,
                f"the pod on {node} was preempted: {row['reason']}",
                "try again when no pod of higher priority requests these GPUs",
            )
        if taken(row, ask.request):
            return Verdict(
                nodes,
                BUSY,
                f"other pods took GPUs on {node} in the meantime: {row['reason']}",
                "try again when they have ended",
            )
    failed = [(node, row) for node, _ask, row in rows if row["state"] != SUCCEEDED and row["reason"] != ENDED]
    names = tuple(sorted({name for _node, _ask, row in rows for name in bandwidth.networks(row["log"])}))
    if failed:
        return _broken(nodes, failed, alone=result.second is None, names=names)
    found = bandwidth.measured(result.first["json"])
    wrong = bandwidth.deviations(names, found, expected)
    state = FAILED if wrong else PASSED
    return Verdict(
        nodes,
        state,
        "; ".join(wrong),
        _SEE_NETWORK if wrong else "",
        "",
        found,
        names,
        result.first["log"] if wrong else "",
    )


def _broken(
    nodes: tuple[str, str], failed: c.Sequence[tuple[str, Row]], *, alone: bool, names: tuple[str, ...]
) -> Verdict:
    """alone: the second pod was never started, so the failure is that of the first one."""
    blamed = failed[0][0] if alone else next((node for node, row in failed if _never_ran(row)), "")
    reason = "; ".join(f"the pod on {node}: {row['reason']}" for node, row in failed)
    log = next((row["log"] for node, row in failed if node == (blamed or failed[0][0])), "")
    return Verdict(nodes, FAILED, reason, _SEE_POD if blamed else _SEE_LOGS, blamed, None, names, log)


def _never_ran(row: Row) -> bool:
    """Whether its pod was not scheduled or did not start, so that it gives no result."""
    return row["state"] == UNSCHEDULABLE or (row["state"] == TIMEOUT and row["exit_code"] is None and not row["log"])


def findings(nodes: c.Iterable[str], verdicts: c.Sequence[Verdict]) -> dict[str, Finding]:
    """The finding on each node. A node that passed in one pair is fit, so a failure with it is attributed to the other node."""
    passed = {node for one in verdicts if one.state == PASSED for node in one.nodes}
    return {node: _finding(node, [one for one in verdicts if node in one.nodes], passed) for node in nodes}


def _finding(node: str, verdicts: c.Sequence[Verdict], passed: set[str]) -> Finding:
    failed = [one for one in verdicts if one.state == FAILED and one.blamed in ("", node)]
    own = next(
        (one for one in failed if one.blamed == node or (node not in passed and one.other(node) in passed)), None
    )
    if own is not None:
        return Finding(FAILED, f"with {own.other(node)}: {own.reason}", own.next_step, own.log)
    unclear = next((one for one in failed if (node in passed) == (one.other(node) in passed)), None)
    if unclear is not None:
        other = unclear.other(node)
        which = (
            "each passed with another node"
            if node in passed
            else "no other node was available to determine which of the two failed"
        )
        return Finding(SUSPECT, f"with {other}: {unclear.reason} ({which})", unclear.next_step, unclear.log, other)
    if node in passed:
        return Finding(PASSED)
    if busy := next((one for one in verdicts if one.state == BUSY), None):
        return Finding(BUSY, busy.reason, busy.next_step)
    if verdicts:
        return Finding(
            SKIPPED,
            f"{verdicts[0].other(node)} failed before the two pods could connect",
            "try again when that node is repaired",
        )
    return Finding(
        SKIPPED,
        "no other node of its pool can be tested with it",
        "try again when there is one that is Ready and not in use",
    )


def once_more(pools: c.Mapping[str, str], verdicts: c.Sequence[Verdict]) -> list[tuple[str, str]]:
    """Pairs that determine which of two nodes failed: each with a node that passed. pools: name of each node's pool."""
    passed = sorted({node for one in verdicts if one.state == PASSED for node in one.nodes})
    found: list[tuple[str, str]] = []
    for one in verdicts:
        if one.state != FAILED or set(one.nodes) & set(passed):
            continue
        fit = [node for node in passed if pools[node] == pools[one.nodes[0]]]
        open_questions = [node for node in one.nodes if node != one.blamed and not any(node in pair for pair in found)]
        found += [(node, fit[(len(found) + index) % len(fit)]) for index, node in enumerate(open_questions) if fit]
    return found
