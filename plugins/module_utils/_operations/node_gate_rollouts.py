# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the DaemonSets behind a gate have done what they were last told.

A gate that looks right after an apply would find no pods, or those of the template before, and take that for the answer.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.expected import PARTS_OF_GATE, Expected
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client

if t.TYPE_CHECKING:
    from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import Gate


def unfinished(client: Client, gate: str, namespace: str, expecting: Expected, known: c.Mapping[str, int]) -> list[str]:
    """What is still to come, in words. known: pods that the gate has seen, by the name of their DaemonSet."""
    found = []
    for item in client.list(client.resource("apps/v1", "DaemonSet"), namespace).items:
        if expecting.part_of(item["spec"]["template"]) in PARTS_OF_GATE[gate]:
            told = _unfinished(item, known.get(item["metadata"]["name"], 0))
            found += [f"DaemonSet {item['metadata']['name']}: {told}"] if told else []
    return sorted(found)


def left_behind(gate: Gate) -> list[str]:
    """What the gate waits for no longer, and no failure tells."""
    down = set(map(str, gate.down))
    found = [f"gate {gate.settings.gate} did not wait any longer for {told}" for told in gate.rollout[0] if told not in down]
    return found + [f"{one}; its node {one.pod.node} is not Ready" for one in gate.controllers if one.pod is not None and str(one) not in down]


def _unfinished(item: dict[str, t.Any], known: int) -> str:
    status = item.get("status") or {}
    desired = int(status.get("desiredNumberScheduled") or 0)
    if int(status.get("observedGeneration") or 0) < int(item["metadata"].get("generation") or 0):
        return "the controller has not seen its last change"
    if int(status.get("currentNumberScheduled") or 0) < desired or known < desired:
        return f"{min(known, int(status.get('currentNumberScheduled') or 0))} of {desired} pods exist"
    updated = int(status.get("updatedNumberScheduled") or 0)
    # With OnDelete nothing is replaced by itself: the pods that are there are the ones to judge.
    if updated < desired and ((item["spec"].get("updateStrategy") or {}).get("type") or "RollingUpdate") == "RollingUpdate":
        return f"{updated} of {desired} pods have its last template"
    return ""
