# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The summary of the results of a run's gates."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.filter.fleet_table import fleet_table
from ansible_collections.hwaccel.gpu.plugins.filter.gate_summary import gate_summary


def test_summary_and_table_name_failed_nodes_and_gates() -> None:
    row = {
        "pool": "training",
        "nodes": 8,
        "expected": 64,
        "seen": 56,
        "passed": 7,
        "failed": 1,
        "kernels": ["6.8"],
        "drivers": ["595.91.07"],
    }
    row |= {"simulated": 8, "settled": 1061.2}
    fault = {"node": "training-3", "pool": "training", "state": "failed", "link": "driver", "reason": "crashed"}
    fault |= {"log_tail": "a\nmodprobe: ERROR", "next_step": "read"}
    summary = gate_summary(
        [{}, {"gate": "driver", "pools": [row], "failed_nodes": ["training-3"], "faults": [fault]}, {"skipped": True}]
    )
    assert summary["failed_nodes"] == ["training-3"]
    assert summary["faults"] == [
        "training-3 (pool training) failed at gate driver, driver: crashed; log: modprobe: ERROR; next: read"
    ]
    table = fleet_table(summary, began=1000.0)
    assert table[2].split() == [
        "training",
        "8",
        "6.8",
        "595.91.07",
        "64",
        "56",
        "driver",
        "7/8",
        "61",
        "s",
        "simulated",
    ]
    nothing: dict[str, list[t.Any]] = {
        name: []
        for name in (
            "pools",
            "failed_nodes",
            "faults",
            "held",
            "quarantined",
            "released",
            "changes",
            "drift",
            "foreign_fields",
        )
    }
    assert gate_summary([]) == {**nothing, "not_passed": 0}


def test_the_summary_has_quarantine_and_how_many_nodes_have_not_passed() -> None:
    gates = [
        {
            "gate": "features",
            "nodes": {"passed": 3, "waiting": 1, "unknown": 1},
            "quarantined": ["b"],
            "released": ["c"],
        },
        {"gate": "driver", "nodes": {"passed": 4, "failed": 1}, "quarantined": ["a", "b"], "released": []},
    ]
    found = gate_summary(gates)
    assert (found["not_passed"], found["quarantined"], found["released"]) == (2, ["a", "b"], ["c"])


def test_the_summary_lists_held_nodes_and_each_failed_node_once() -> None:
    def row(node: str, link: str) -> dict[str, t.Any]:
        return {
            "node": node,
            "pool": "training",
            "state": "held",
            "link": link,
            "reason": "its label excludes the node",
            "next_step": "",
        }

    driver = {
        "gate": "driver",
        "failed_nodes": ["a"],
        "faults": [row("a", "driver") | {"state": "failed"}],
        "held": [row("b", "driver")],
    }
    summary = gate_summary([driver, {"gate": "exporters", "held": [row("a", "driver"), row("b", "exporter")]}])
    assert summary["held"] == ["b (pool training) held at gate driver, driver: its label excludes the node"]
