# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of a gate: progress lines, counts, faults with log tails, and the table of pools."""

from __future__ import annotations

import collections
import collections.abc as c
import dataclasses
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain, expected, hints, pods, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.chain import Verdict
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    ApiError,
    Fault,
    Forbidden,
    HwaccelError,
    ManyFaults,
    Unauthorized,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import causes, nfd
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.absent import Absences
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.snapshot import GateSnapshot
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.quarantine import QuarantinePlan

#: Seconds between two different progress lines, and between two equal ones.
_LINE_EVERY, _SAME_LINE_EVERY = 5.0, 60.0
STATES = (chain.PASSED, chain.WAITING, chain.FAILED, chain.UNKNOWN)

Verdicts = c.Mapping[str, Verdict]


def counts(verdicts: Verdicts) -> dict[str, int]:
    found = collections.Counter(verdict.state for verdict in verdicts.values())
    return {state: found[state] for state in STATES}


def progress_line(gate: str, verdicts: Verdicts, left: float) -> str:
    """ "driver: 12 of 16 passed, 2 waiting: training-1, training-2 (driver: compiling or loading), 2 failed: training-3, training-5; at most 25 min more"."""
    return (
        f"{summary(gate, verdicts)}; at most {_duration(left)} more"
        if counts(verdicts)[chain.WAITING]
        else summary(gate, verdicts)
    )


def summary(gate: str, verdicts: Verdicts) -> str:
    numbers = counts(verdicts)
    parts = [f"{gate}: {numbers[chain.PASSED]} of {len(verdicts)} passed"]
    if numbers[chain.WAITING]:
        reasons = collections.Counter(verdict.words for verdict in verdicts.values() if verdict.state == chain.WAITING)
        common = reasons.most_common(2)
        reasons_shown = ", ".join(reason if len(reasons) == 1 else f"{count} {reason}" for reason, count in common)
        lagging = some(name for name, verdict in verdicts.items() if verdict.state == chain.WAITING)
        parts.append(
            f"{numbers[chain.WAITING]} waiting: {lagging} ({reasons_shown}{', …' if len(reasons) > len(common) else ''})"
        )
    for state in (chain.FAILED, chain.UNKNOWN):
        if numbers[state]:
            parts.append(
                f"{numbers[state]} {state}: {some(name for name, verdict in verdicts.items() if verdict.state == state)}"
            )
    return ", ".join(parts)


def last_line(gate: str, verdicts: Verdicts, plan: QuarantinePlan, held: Verdicts) -> str:
    failed, off = (
        counts(verdicts)[chain.FAILED],
        [name for name, verdict in held.items() if verdict.brief == expected.SWITCHED_OFF],
    )
    borne = "" if not failed else f" ({plan.limit} may fail)"
    return summary(gate, verdicts) + borne + (f", {len(off)} {expected.SWITCHED_OFF}: {some(off)}" if off else "")


def values(snapshot: GateSnapshot, plan: QuarantinePlan, *, ask: bool) -> dict[str, t.Any]:
    """ask: whether the cluster is queried for details of nodes that have not passed."""
    verdicts = snapshot.verdicts
    failed = sorted(name for name, verdict in verdicts.items() if verdict.state == chain.FAILED)
    return {
        "gate": snapshot.settings.gate,
        "nodes": counts(verdicts),
        "failed_nodes": failed,
        "max_failed_nodes": plan.limit,
        "within_limit": plan.within,
        "waited": bool(snapshot.waited),
        "faults": faults(snapshot, ask=ask),
        "held": held(snapshot),
        "pools": pool_rows(snapshot),
    }


def faults(snapshot: GateSnapshot, *, ask: bool = True) -> list[dict[str, t.Any]]:
    """Every node that has not passed, failed ones first, at most `sample`; only these need requests."""
    order = {chain.FAILED: 0, chain.UNKNOWN: 1, chain.WAITING: 2}
    chosen = sorted(
        (order[verdict.state], name) for name, verdict in snapshot.verdicts.items() if verdict.state in order
    )[: snapshot.settings.sample]
    rows = []
    absences = Absences(snapshot.client, snapshot.fleet, snapshot.settings.namespace)
    observer: tuple[str, str] | None = None
    for _rank, name in chosen:
        verdict = snapshot.verdicts[name]
        reported, next_step = _reason(name, snapshot, absences) if ask else (verdict.reason, "")
        tail = (
            causes.log_tail(snapshot.client, verdict.pod, verdict.container)
            if ask and verdict.state == chain.FAILED
            else ""
        )
        if ask and verdict.observer and verdict.state == chain.UNKNOWN:
            # All such nodes have the same cause.
            observer = observer or nfd.master(snapshot.client)
            reported, tail = f"{reported}; {observer[0]}", observer[1]
        rows.append(
            {
                "node": name,
                "pool": snapshot.fleet.pool_names[name],
                "state": verdict.state,
                "link": verdict.link,
                "reason": reported,
                "pod": verdict.pod.name if verdict.pod else "",
                "container": verdict.container,
                "log_tail": tail,
                "next_step": next_step or hints.next_step(reported) or hints.next_step(tail) or verdict.next_step,
            }
        )
    return rows


def held(snapshot: GateSnapshot) -> list[dict[str, t.Any]]:
    """Nodes that are not judged, because their exporter waits for a driver: at most `sample`, without further requests."""
    return [
        {
            "node": name,
            "pool": snapshot.fleet.pool_names[name],
            "state": "held",
            "link": verdict.link,
            "reason": verdict.reason,
            "next_step": hints.next_step(verdict.reason) or verdict.next_step,
        }
        for name, verdict in sorted(snapshot.held.items())[: snapshot.settings.sample]
    ]


def _reason(name: str, snapshot: GateSnapshot, absences: Absences) -> tuple[str, str]:
    """(why, and the next step if known). Without a log, the cause is in the pod's events, or in the DaemonSet that should have created the pod."""
    verdict = snapshot.verdicts[name]
    kubelet_reports = verdict.pod is not None and any(
        item.message for item in (*verdict.pod.inits, *verdict.pod.containers)
    )
    if verdict.state != chain.FAILED or verdict.container or kubelet_reports:
        return verdict.reason, ""
    next_step = ""
    try:
        if verdict.pod is not None:
            why = causes.event_of_pod(snapshot.client, verdict.pod)
        else:
            part = expected.part_to_blame(
                snapshot.settings.gate, snapshot.fleet.expected[name], snapshot.fleet.pods_of(name)
            )
            why, next_step = absences.cause(name, part) if part and snapshot.fleet.nodes[name].ready else ("", "")
    except HwaccelError as error:
        why = f"the cause could not be read: {error}"
    return f"{verdict.reason}; {why}" if why and why not in verdict.reason else verdict.reason, next_step


def pool_rows(snapshot: GateSnapshot) -> list[dict[str, t.Any]]:
    """One row for each pool with a node at this gate."""
    by_pool: dict[str, list[str]] = {}
    for name in snapshot.verdicts:
        by_pool.setdefault(snapshot.fleet.pool_names[name], []).append(name)
    return [_pool_row(snapshot, pool, names) for pool, names in sorted(by_pool.items())]


def _pool_row(snapshot: GateSnapshot, pool: str, names: list[str]) -> dict[str, t.Any]:
    nodes = [snapshot.fleet.nodes[name] for name in names]
    states = collections.Counter(snapshot.verdicts[name].state for name in names)
    expected: collections.Counter[str] = collections.Counter()
    observed: collections.Counter[str] = collections.Counter()
    for node in nodes:
        expected.update(snapshot.expectation(node.name).expected)
        observed.update(schedulable.observed(node))
    return {
        "pool": pool,
        "nodes": len(names),
        "expected": expected.total(),
        "seen": observed.total(),
        "resources": {
            name: {"expected": expected[name], "seen": observed[name]} for name in sorted(expected | observed)
        },
        **{state: states[state] for state in STATES},
        "settled": snapshot.waited.get(pool, snapshot.started),
        "simulated": sum(node.simulated for node in nodes),
        "kernels": sorted({node.kernel for node in nodes if node.kernel}),
        "drivers": _drivers(snapshot, nodes),
    }


def _drivers(snapshot: GateSnapshot, nodes: c.Sequence[NodeFacts]) -> list[str]:
    """Distinct versions. A branch is omitted if another node already reports a version of it."""
    found = {driver for node in nodes if (driver := _driver(snapshot, node.name))}
    return sorted(driver for driver in found if not any(other.startswith(f"{driver}.") for other in found))


def _driver(snapshot: GateSnapshot, name: str) -> str:
    """The version from GPU feature discovery, or else from the host, the collection's label or the image."""
    node = snapshot.fleet.nodes[name]
    pod = snapshot.fleet.pods_of(name).get("driver")
    known = node.driver_version or node.host_driver
    return known or ((pod.driver_version or pods.image_tag(pod.image).partition("-")[0]) if pod is not None else "")


def failure(
    gate: str,
    verdicts: Verdicts,
    plan: QuarantinePlan,
    reported: list[dict[str, t.Any]],
    broken: ApiError | None,
    controllers: list[Fault],
) -> HwaccelError | None:
    """None if the run may continue: no more nodes failed than allowed, no node is unknown, and the cluster-wide components are ready."""
    numbers = counts(verdicts)
    if broken is not None:
        last = broken.faults[0]
        why = f"{numbers[chain.PASSED]} of {len(verdicts)} nodes had passed, {numbers[chain.UNKNOWN]} are unknown: {dataclasses.replace(last, next_step='')}"
        # An answer of the server has its own next step.
        next_step = (
            last.next_step
            if isinstance(broken, (Forbidden, Unauthorized))
            else "check that the API server can be reached"
        )
        return HwaccelError(
            f"gate {gate} lost the connection to the cluster", last.where, why, f"{next_step}, and run again"
        )
    # Nodes that are affected by it already reported it.
    controllers = [fault for fault in controllers if not any(fault.what in row["reason"] for row in reported)]
    if plan.within:
        head = Fault(
            f"gate {gate}: cluster-wide components are not ready", "", "", "repair the problems below, and run again"
        )
        return GateFailed([head, *controllers]) if controllers else None
    lost = f" and {numbers[chain.UNKNOWN]} are unknown" if numbers[chain.UNKNOWN] else ""
    what = f"gate {gate}: {numbers[chain.FAILED]} of {len(verdicts)} nodes failed{lost}, {plan.limit} allowed"
    head = Fault(
        what,
        "",
        "the nodes are probably not the cause, so no node was quarantined",
        "repair the problems below, and run again",
    )
    return GateFailed([head, *_grouped(reported), *controllers])


def _grouped(reported: list[dict[str, t.Any]]) -> list[Fault]:
    """Nodes with the same problem in one sentence, in which only the names of pods differ."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    logs: dict[tuple[str, str, str], str] = {}
    for row in reported:
        if row["state"] in (chain.FAILED, chain.UNKNOWN):
            reason = (
                row["reason"].replace(f" of pod {row['pod']}", "").replace(row["pod"], "of the node")
                if row["pod"]
                else row["reason"]
            )
            key = (row["link"], reason, row["next_step"])
            groups.setdefault(key, []).append(row["node"])
            logs.setdefault(key, hints.telling(row["log_tail"]))
    return [
        Fault(
            f"node{'s' if len(nodes) > 1 else ''} {some(nodes)}",
            key[0],
            key[1] + (f"; its log: {logs[key]}" if logs[key] else ""),
            key[2],
        )
        for key, nodes in groups.items()
    ]


@dataclasses.dataclass
class Lines:
    """last: the last reported line without its remaining time, and at: time.time() of that."""

    last: str = ""
    at: float = 0.0

    def new(self, line: str) -> list[str]:
        """The line, if it differs from the last one or the last one was long ago."""
        text, now = line.partition(";")[0], time.time()
        if now - self.at < (_SAME_LINE_EVERY if text == self.last else _LINE_EVERY):
            return []
        self.last, self.at = text, now
        return [line]


class GateFailed(ManyFaults):
    """More nodes failed than max_failed allows."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(faults)
        self.args = ("\n".join([str(faults[0]), *(f"- {fault}" for fault in faults[1:])]),)


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
