# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of several clusters: each has one line, and a failed one has the reason."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.filter.clusters_table import clusters_table


def summary(**others: t.Any) -> dict[str, t.Any]:
    pools = [{"nodes": 2, "expected": 16, "seen": 16}, {"nodes": 1, "expected": 4, "seen": 3}]
    return {"pools": pools, "failed_nodes": [], "faults": [], "stopped": [], **others}


def test_each_cluster_has_one_line_sorted_by_name() -> None:
    lines = clusters_table(
        {
            "south": summary(),
            "north": summary(failed_nodes=["gpu-3"], faults=["gpu-3 (pool b) failed\nat gate devices"]),
        }
    )
    assert [line.split() for line in lines] == [
        ["cluster", "nodes", "GPUs", "expected", "GPUs", "seen", "end", "why"],
        ["-" * width for width in (7, 5, 13, 9, 8, 37)],
        ["north", "3", "20", "19", "1", "failed", "gpu-3", "(pool", "b)", "failed", "at", "gate", "devices"],
        ["south", "3", "20", "19", "well"],
    ]


def test_a_stopped_cluster_has_the_reason_in_one_line() -> None:
    lines = clusters_table(
        {"dark": summary(pools=[], stopped=["the API server does not answer. " + "x" * 400, "another"])}
    )
    assert lines[2].split()[:6] == ["dark", "-", "-", "-", "stopped", "the"]
    assert lines[2].endswith("x…")
    assert len(lines[2]) < 220


def test_failed_nodes_are_counted_if_a_later_stage_stopped_the_run() -> None:
    """The reason for the stop comes first, because it is the same for all nodes."""
    lines = clusters_table(
        {"north": summary(stopped=["pods is forbidden"], failed_nodes=["gpu-3"], faults=["gpu-3 failed"])}
    )
    assert " stopped, 1 failed  pods is forbidden" in lines[2]
