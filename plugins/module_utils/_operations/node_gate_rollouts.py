# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the DaemonSets behind a gate have done what they were last told.

A gate that looks right after an apply would find no pods, or those of the template before, and take that for the answer.
Private to the collection: it can change in any release.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client

#: Parts whose pods a gate needs.
PARTS_OF_GATE = {
    "features": frozenset({parts.NFD_WORKER}), "driver": frozenset({parts.DRIVER, parts.TOOLKIT, parts.VALIDATOR}),
    "devices": frozenset({parts.PLUGIN, parts.DISCOVERY}), "exporters": frozenset({parts.EXPORTER}),
}


def unfinished(client: Client, gate: str, namespace: str, pod_selector: str, known: c.Mapping[str, int]) -> list[str]:
    """What is still to come, in words. known: pods that the gate has seen, by the name of their DaemonSet."""
    wanted = selectors.parse(pod_selector) if pod_selector else None
    found = []
    for item in client.list(client.resource("apps/v1", "DaemonSet"), namespace).items:
        template = item["spec"]["template"]
        named = wanted is not None and selectors.matches(wanted, (template.get("metadata") or {}).get("labels") or {})
        if named or parts.role_of(template) in PARTS_OF_GATE[gate]:
            told = _unfinished(item, known.get(item["metadata"]["name"], 0))
            found += [f"DaemonSet {item['metadata']['name']}: {told}"] if told else []
    return sorted(found)


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
