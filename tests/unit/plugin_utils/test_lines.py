# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions that are the same for several parts or pools are one line."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _lines


def test_decisions_are_grouped_in_the_place_of_the_first() -> None:
    assert _lines.grouped(
        [
            "feature discovery by hwaccel (no other was detected)",
            "pool a: driver by hwaccel (no other was detected)",
            "pool b: driver by hwaccel (no other was detected)",
            "pool b: driver 595 as x",
            "assumed: pool a: GPUs on 4 nodes",
            "device plugin by hwaccel (no other was detected)",
            "Prometheus by plain (its operator is not installed)",
            "pool b: driver 595 as x",
        ]
    ) == [
        "feature discovery, device plugin by hwaccel (no other was detected)",
        "pools a, b: driver by hwaccel (no other was detected)",
        "pool b: driver 595 as x",
        "assumed: pool a: GPUs on 4 nodes",
        "Prometheus by plain (its operator is not installed)",
    ]


def test_lines_without_a_decision_stay_as_they_are() -> None:
    lines = ["driver by existing (DaemonSet x)", "pool: a", "by hwaccel"]
    assert _lines.grouped(lines) == lines
