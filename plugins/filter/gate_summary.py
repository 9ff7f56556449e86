# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the results of all gates of one cluster in short form."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import exporters
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import closing

DOCUMENTATION = r"""
name: gate_summary
version_added: 0.1.0
short_description: Results of the gates of one cluster, merged
description:
  - Merges the results of M(hwaccel.gpu.node_gate) at several gates of one cluster, and of M(hwaccel.gpu.manifest_set) for several sets.
  - The result is small, regardless of the size of the fleet.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: Results of the gates in their order, and of sets. Empty and skipped ones are ignored.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Summarize the gates
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
        - One row for each pool, with all its nodes, including those that failed at an early gate and were excluded from later ones.
        - C(seen) is the number of GPUs at the last gate. C(gates) names the gates that the pool's nodes have passed, with numbers if not all have.
          C(settled) is the time at which the last gate had a verdict on every node.
        - The gate C(exporters) counts the nodes that should have an exporter and whose driver works. It is omitted for a pool without such nodes.
      type: list
      elements: dict
    failed_nodes:
      description: Names of nodes that failed at any gate.
      type: list
      elements: str
    faults:
      description: Failures, one sentence for each node, at most 20.
      type: list
      elements: str
    held:
      description: Nodes that have neither failed nor passed, because the component is disabled there, one sentence for each node, at most 20.
      type: list
      elements: str
    not_passed:
      description: Number of nodes that have neither passed nor failed, at the gate where it is highest. In check mode nodes that would be waited for.
      type: int
    quarantined:
      description: Names of the nodes that were put in quarantine.
      type: list
      elements: str
    released:
      description: Names of the nodes whose quarantine was lifted.
      type: list
      elements: str
    changes:
      description: The objects of the sets that were changed, each with C(action), C(kind), C(namespace), C(name) and C(reason).
      type: list
      elements: dict
    drift:
      description: The fields that others had changed and that were corrected, as in RV(hwaccel.gpu.manifest_set#module:reclaimed).
      type: list
      elements: dict
    foreign_fields:
      description: The fields that others added to objects of the sets, as in RV(hwaccel.gpu.manifest_set#module:foreign_fields).
      type: list
      elements: dict
"""


def gate_summary(gates: list[t.Any]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    ended = [gate for gate in gates if isinstance(gate, dict) and gate.get("gate")]
    failed: dict[str, None] = {}
    faults: dict[str, str] = {}
    held: dict[str, str] = {}
    for gate in ended:
        failed.update(dict.fromkeys(gate.get("failed_nodes") or ()))
        for fault in gate.get("faults") or ():
            faults.setdefault(fault.get("node", ""), closing.sentence(gate["gate"], fault))
        for row in gate.get("held") or ():
            held.setdefault(row.get("node", ""), closing.sentence(gate["gate"], row))
    names = sorted({row["pool"] for gate in ended for row in gate.get("pools") or ()})
    return {
        "pools": [_pool(name, ended) for name in names],
        "failed_nodes": sorted(failed),
        "faults": list(faults.values())[: closing.MOST],
        "not_passed": max((_not_passed(gate) for gate in ended), default=0),
        "quarantined": sorted({node for gate in ended for node in gate.get("quarantined") or ()}),
        "released": sorted({node for gate in ended for node in gate.get("released") or ()}),
        **closing.of_sets(one for one in gates if isinstance(one, dict) and "reclaimed" in one),
        "held": [sentence for node, sentence in held.items() if node not in failed and node not in faults][
            : closing.MOST
        ],
    }


def _not_passed(gate: dict[str, t.Any]) -> int:
    """Nodes that wait or whose state is unknown; in a run that waits, there are none of the former."""
    return sum((gate.get("nodes") or {}).get(state) or 0 for state in ("waiting", "unknown"))


def _pool(name: str, gates: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    """A later gate only judges nodes that have passed the earlier ones, and only pools that it applies to."""
    rows = {gate["gate"]: next((row for row in gate.get("pools") or () if row["pool"] == name), None) for gate in gates}
    judged = [row for row in rows.values() if row is not None]
    if any(row["passed"] < row["nodes"] for row in judged):
        # The gate for exporters is not part of the chain. If it judged no node, no node should or can have an exporter.
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
    # If the exporters are the last gate, there may be fewer of them than nodes.
    last = next((row for gate, row in reversed(rows.items()) if row is not None and gate != exporters.GATE), judged[-1])
    return last | {
        "nodes": nodes,
        "expected": max(row["expected"] for row in judged),
        "simulated": max(row["simulated"] for row in judged),
        "settled": max(row["settled"] for row in judged),
        "gates": [gate if count == nodes else f"{gate} {count}/{of}" for gate, (count, of) in passed.items()],
    }


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"gate_summary": gate_summary}
