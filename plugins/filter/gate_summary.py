# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what the gates of one cluster found, in a few lines."""

from __future__ import annotations

import typing as t

DOCUMENTATION = r"""
name: gate_summary
version_added: 0.1.0
short_description: Results of the gates of one cluster, merged
description:
  - Merges what M(hwaccel.gpu.node_gate) returned at several gates of one cluster.
  - The result is small, whatever the size of the fleet.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: Results of the gates in their order. What is empty, or was skipped, is left out.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Sum up
  ansible.builtin.set_stats:
    data:
      hwaccel_summary: "{{ [driver_gate, device_plugin_gate] | hwaccel.gpu.gate_summary }}"
"""

RETURN = r"""
_value:
  description: The summary.
  type: dict
  contains:
    pools:
      description: Rows of the last gate, with C(gates), the names of the gates that all or some nodes of the pool have passed.
      type: list
      elements: dict
    failed_nodes:
      description: Names of nodes that failed at any gate.
      type: list
      elements: str
    faults:
      description: What failed, as one sentence a node, at most 20.
      type: list
      elements: str
"""

_MOST = 20


def gate_summary(gates: list[t.Any]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    ended = [gate for gate in gates if isinstance(gate, dict) and gate.get("gate")]
    failed: dict[str, None] = {}
    told: dict[str, str] = {}
    passed: dict[str, list[str]] = {}
    for gate in ended:
        failed.update(dict.fromkeys(gate.get("failed_nodes") or ()))
        for row in gate.get("pools") or ():
            of_all = f"{row.get('passed', 0)}/{row.get('nodes', 0)}"
            complete = row.get("passed") == row.get("nodes")
            passed.setdefault(row["pool"], []).append(gate["gate"] if complete else f"{gate['gate']} {of_all}")
        for fault in gate.get("faults") or ():
            told.setdefault(fault.get("node", ""), _sentence(gate["gate"], fault))
    pools = [row | {"gates": passed.get(row["pool"], [])} for row in (ended[-1].get("pools") or () if ended else ())]
    return {"pools": pools, "failed_nodes": sorted(failed), "faults": list(told.values())[:_MOST]}


def _sentence(gate: str, fault: dict[str, t.Any]) -> str:
    where = f"{fault.get('node')} (pool {fault.get('pool')}) {fault.get('state')} at gate {gate}, {fault.get('link')}"
    log = str(fault.get("log_tail") or "").strip().splitlines()
    parts = [f"{where}: {fault.get('reason')}", f"log: {log[-1][:200]}" if log else "", f"next: {fault.get('next_step')}" if fault.get("next_step") else ""]
    return "; ".join(part for part in parts if part)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"gate_summary": gate_summary}
