# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quarantines failed nodes, and releases them when they pass again.

A taint, a label and an annotation on the Node, all with names of this collection. Everything that others wrote there is kept, including their taints and
cordons. The effect of the taint is decided in `menders`.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import math
import re
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain, names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Conflict,
    Forbidden,
    HwaccelError,
    NotFound,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource

#: The first effect prevents every new pod without a toleration; with the second one the scheduler prefers other nodes.
HARD, SOFT = "NoSchedule", "PreferNoSchedule"
_EFFECTS = (HARD, SOFT)
FIELD_MANAGER = "hwaccel-gpu-node-gate"
#: Number of conflicts with another writer of the same Node in a row before the run fails.
_ATTEMPTS = 12
_LONGEST_REASON = 1000
_LIMIT = re.compile(r"^(\d{1,6})\s*(%?)$")


@dataclasses.dataclass(frozen=True)
class QuarantinePlan:
    """limit: maximum number of failed nodes. within: failed and unknown ≤ limit.

    quarantine: nodes that are or remain quarantined; release: nodes to release.
    """

    limit: int
    within: bool
    quarantine: tuple[str, ...]
    release: tuple[str, ...]


def limit_of(max_failed: t.Any, nodes: int) -> int:
    """Nodes of a number or "10%". A percentage is rounded up, but below 100% it never allows the whole fleet."""
    found = _LIMIT.match(str(max_failed).strip())
    if not found or (found.group(2) and int(found.group(1)) > 100):
        raise HwaccelError(
            f"max_failed {max_failed!r} cannot be read",
            "max_failed",
            "",
            "set a number of nodes, or a percentage like 10%",
        )
    number = int(found.group(1))
    if not found.group(2):
        return number
    if number == 100:
        return nodes
    return max(0, min(math.ceil(nodes * number / 100), nodes - 1))


def plan(gate: str, states: c.Mapping[str, str], nodes: c.Mapping[str, NodeFacts], max_failed: t.Any) -> QuarantinePlan:
    """If more nodes failed than allowed, the nodes are probably not the cause, and none is quarantined."""
    failed = sorted(name for name, state in states.items() if state == chain.FAILED)
    limit = limit_of(max_failed, len(states))
    unknown = sum(state == chain.UNKNOWN for state in states.values())
    within = len(failed) + unknown <= limit
    release = sorted(name for name, state in states.items() if state == chain.PASSED and lifts(gate, nodes[name]))
    return QuarantinePlan(limit, within, tuple(failed) if within else (), tuple(release))


def gate_of(node: NodeFacts) -> str:
    """The gate that quarantined the node, "" if none did."""
    return next((value for key, value, effect in node.taints if key == names.QUARANTINE and effect in _EFFECTS), "")


def effect_of(node: NodeFacts) -> str:
    """Effect of the taint that a gate has imposed, "" if there is none."""
    return next((effect for key, _value, effect in node.taints if key == names.QUARANTINE and effect in _EFFECTS), "")


def lifts(gate: str, node: NodeFacts) -> bool:
    """A gate lifts what it or an earlier one imposed: passing `features` does not prove a failed driver, and an exporter proves no gate."""
    if not node.quarantined or gate not in chain.GATES:
        return False
    imposed = gate_of(node)
    return imposed not in chain.GATES or chain.GATES.index(imposed) <= chain.GATES.index(gate)


def quarantine(
    client: Client,
    resource: Resource,
    name: str,
    gate: str,
    reason: str,
    effect: c.Callable[[dict[str, t.Any]], str],
    *,
    check_mode: bool = False,
) -> bool:
    """True if the node was not quarantined before. The reason of an earlier run is kept, so that a repeated run writes nothing.

    effect: of the node's taint, HARD or SOFT.
    """

    def marked(node: dict[str, t.Any]) -> dict[str, t.Any] | None:
        taint = {"key": names.QUARANTINE, "value": gate, "effect": effect(node)}
        metadata, taints = node["metadata"], _taints(node)
        ours = [{key: one.get(key) for key in taint} for one in taints if _is_ours(one)]
        labeled = (metadata.get("labels") or {}).get(names.QUARANTINE) == gate
        if ours == [taint] and labeled:
            return None
        known = (metadata.get("annotations") or {}).get(names.QUARANTINE_REASON)
        written = known if known and labeled and any(one["value"] == gate for one in ours) else reason[:_LONGEST_REASON]
        return _patch(node, [*_foreign(taints), taint], gate, written)

    return rewrite(client, resource, name, marked, check_mode=check_mode)


def soften(
    client: Client,
    resource: Resource,
    name: str,
    effect: c.Callable[[dict[str, t.Any]], str],
    *,
    check_mode: bool = False,
) -> bool:
    """True if the node's taint was changed to SOFT. Gate and reason are kept."""

    def softened(node: dict[str, t.Any]) -> dict[str, t.Any] | None:
        taints = _taints(node)
        if not any(_is_ours(taint) and taint["effect"] == HARD for taint in taints) or effect(node) != SOFT:
            return None
        changed = [taint | {"effect": SOFT} if _is_ours(taint) else taint for taint in taints]
        return {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}, "spec": {"taints": changed}}

    return rewrite(client, resource, name, softened, check_mode=check_mode)


def release(client: Client, resource: Resource, name: str) -> bool:
    """True if a quarantine was lifted."""

    def cleared(node: dict[str, t.Any]) -> dict[str, t.Any] | None:
        metadata, taints = node["metadata"], _taints(node)
        kept = _foreign(taints)
        marks = names.QUARANTINE in (metadata.get("labels") or {}) or names.QUARANTINE_REASON in (
            metadata.get("annotations") or {}
        )
        if len(kept) == len(taints) and not marks:
            return None
        return _patch(node, kept, None, None)

    return rewrite(client, resource, name, cleared)


def lift(client: Client, gate: str, *, check_mode: bool = False) -> list[str]:
    """Lifts every quarantine that this gate imposed, regardless of the nodes' state. Returns the names of released nodes, or those that would be.

    A quarantine of an unknown gate is lifted as well, because no gate would lift it.
    """
    resource = client.resource("v1", "Node")
    marked = sorted(
        node["metadata"]["name"]
        for page in client.pages(resource)
        for node in page.items
        if marked_by(node) in (gate, "")
    )
    return [name for name in marked if check_mode or release(client, resource, name)]


def marked_by(node: dict[str, t.Any]) -> str | None:
    """The gate that quarantined a stored Node, "" if it is not recorded, None without a quarantine."""
    metadata = node["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    ours = [str(taint.get("value") or "") for taint in _taints(node) if _is_ours(taint)]
    if not ours and names.QUARANTINE not in labels and names.QUARANTINE_REASON not in annotations:
        return None
    gates = [value for value in (*ours, labels.get(names.QUARANTINE, "")) if value in chain.GATES]
    return gates[0] if gates else ""


def rewrite(
    client: Client,
    resource: Resource,
    name: str,
    change: c.Callable[[dict[str, t.Any]], dict[str, t.Any] | None],
    manager: str = FIELD_MANAGER,
    *,
    check_mode: bool = False,
) -> bool:
    """Reads, changes and writes a Node, and retries after a conflict. In check mode, only returns whether it would be written.

    Taints are one list in a patch: without the condition, another controller's new taint would be lost.
    """
    for attempt in range(_ATTEMPTS):
        try:
            patch = change(client.get(resource, name))
            if patch is None or check_mode:
                return patch is not None
            client.patch(resource, name, "", patch, field_manager=manager)
        except NotFound:
            return False
        except Forbidden:
            if not check_mode:
                raise
            # Missing permissions are reported together.
            return True
        except Conflict:
            time.sleep(min(0.02 * 2**attempt, 0.5))
        else:
            return True
    why = f"another client wrote the node each time, {_ATTEMPTS} times in a row"
    raise Conflict(f"writing node {name}", "", why, "find out what writes the node so often, and run again")


def _patch(
    node: dict[str, t.Any], taints: list[dict[str, t.Any]], gate: str | None, reason: str | None
) -> dict[str, t.Any]:
    return {
        "metadata": {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "labels": {names.QUARANTINE: gate},
            "annotations": {names.QUARANTINE_REASON: reason},
        },
        # An empty list is sent, which is the same as null for the server.
        "spec": {"taints": taints},
    }


def _taints(node: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    return list((node.get("spec") or {}).get("taints") or [])


def _foreign(taints: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    return [taint for taint in taints if not _is_ours(taint)]


def without_mark(node: dict[str, t.Any]) -> dict[str, t.Any]:
    """The Node without the quarantine taint."""
    return {**node, "spec": {**(node.get("spec") or {}), "taints": _foreign(_taints(node))}}


def _is_ours(taint: dict[str, t.Any]) -> bool:
    return taint.get("key") == names.QUARANTINE and taint.get("effect") in _EFFECTS
