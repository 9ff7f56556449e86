# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines that end a run, in their order: verdict, table, and the sections."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.filter.closing_lines import closing_lines
from ansible_collections.hwaccel.gpu.plugins.filter.gate_summary import gate_summary
from ansible_collections.hwaccel.gpu.tests.unit.filter.test_fleet_table import ROW

GATE: dict[str, t.Any] = {
    "gate": "driver",
    "pools": [ROW],
    "failed_nodes": [],
    "faults": [],
}
SET = {"objects": [{"action": "created", "kind": "Pod", "name": "p"}], "reclaimed": [], "foreign_fields": []}


def test_verdict_table_and_sections() -> None:
    lines = closing_lines(gate_summary([GATE, SET, {"skipped": True}, {}]) | {"stopped": []})
    assert lines[0] == "All 8 nodes passed the gates; 1 object changed"
    assert lines[1] == ""
    assert lines[2].startswith("pool ")
    assert lines[-2:] == ["Changed:", "  created Pod p"]


def test_without_a_gate_there_is_no_table() -> None:
    lines = closing_lines({"pools": [], "stopped": ["no answer. Next: look"]})
    assert lines == ["The run stopped before its end; nothing changed", "", "Stopped:", "  no answer", "    Next: look"]
