# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small programs: the operator, pause."""

from __future__ import annotations

from typing import Any

from fleet_agent.loop import Park, Process


def just_runs(_proc: Any) -> Process:
    yield Park()
    return 0


def operator(proc: Any) -> Process:
    """The GPU Operator's controller is not simulated: it runs and does nothing."""
    proc.say("[sandbox] the operator's controller is not simulated")
    for flag, paths in (
        ("health-probe-bind-address", ("/healthz", "/readyz")),
        ("metrics-bind-address", ("/metrics",)),
    ):
        _host, _colon, port = proc.settings[flag].rpartition(":")
        if port.isdigit() and port != "0":
            proc.container.serve(int(port), *paths)
    yield Park()
    return 0
