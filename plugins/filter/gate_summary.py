# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what the gates of one cluster found, in a few lines."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import exporters

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
      description:
        - One row a pool, with all its nodes, also those that failed at an early gate and were left out of the later ones.
        - C(seen) is what the last gate has seen; C(gates) names the gates that the pool's nodes have passed, with numbers where not all have;
          C(settled) is when the last of its gates knew of every node.
        - The gate C(exporters) counts the nodes that are to have an exporter and whose driver works. A pool without any is not named with it.
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
    held:
      description: Nodes that have neither failed nor passed, because somebody has switched off what would be judged there, as one sentence a node, at most 20.
      type: list
      elements: str
"""

_MOST = 20


def gate_summary(gates: list[t.Any]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    ended = [gate for gate in gates if isinstance(gate, dict) and gate.get("gate")]
    failed: dict[str, None] = {}
    faults: dict[str, str] = {}
    held: dict[str, str] = {}
    for gate in ended:
        failed.update(dict.fromkeys(gate.get("failed_nodes") or ()))
        for fault in gate.get("faults") or ():
            faults.setdefault(fault.get("node", ""), _sentence(gate["gate"], fault))
        for row in gate.get("held") or ():
            held.setdefault(row.get("node", ""), _sentence(gate["gate"], row))
    names = sorted({row["pool"] for gate in ended for row in gate.get("pools") or ()})
    return {
        "pools": [_pool(name, ended) for name in names],
        "failed_nodes": sorted(failed),
        "faults": list(faults.values())[:_MOST],
        "held": [sentence for node, sentence in held.items() if node not in failed and node not in faults][:_MOST],
    }


def _pool(name: str, gates: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    """A later gate judges only what the earlier ones have passed, and nothing of a pool that is not its business."""
    rows = {gate["gate"]: next((row for row in gate.get("pools") or () if row["pool"] == name), None) for gate in gates}
    judged = [row for row in rows.values() if row is not None]
    if any(row["passed"] < row["nodes"] for row in judged):
        # That of the exporters lies beside the chain: where it has judged no node, none is to have one, or none can.
        rows = {
            gate: row or (None if gate == exporters.GATE else judged[0] | {"seen": 0, "passed": 0})
            for gate, row in rows.items()
        }
        judged = [row for row in rows.values() if row is not None]
    nodes = max(row["nodes"] for row in judged)
    passed = {
        gate: (row["passed"], row["nodes"] if gate == exporters.GATE else nodes)
        for gate, row in rows.items()
        if row is not None
    }
    # Where the exporters are the last gate, they may be fewer than the nodes.
    last = next((row for gate, row in reversed(rows.items()) if row is not None and gate != exporters.GATE), judged[-1])
    return last | {
        "nodes": nodes,
        "expected": max(row["expected"] for row in judged),
        "simulated": max(row["simulated"] for row in judged),
        "settled": max(row["settled"] for row in judged),
        "gates": [gate if count == nodes else f"{gate} {count}/{of}" for gate, (count, of) in passed.items()],
    }


def _sentence(gate: str, fault: dict[str, t.Any]) -> str:
    where = f"{fault.get('node')} (pool {fault.get('pool')}) {fault.get('state')} at gate {gate}, {fault.get('link')}"
    log = str(fault.get("log_tail") or "").strip().splitlines()
    parts = [
        f"{where}: {fault.get('reason')}",
        f"log: {log[-1][:200]}" if log else "",
        f"next: {fault.get('next_step')}" if fault.get("next_step") else "",
    ]
    return "; ".join(part for part in parts if part)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"gate_summary": gate_summary}
