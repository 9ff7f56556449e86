# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small programs: exporter, samples, pause."""

from __future__ import annotations

from typing import Any

from fleet_agent.loop import Park, Process, Sleep
from fleet_agent.machine import nvml


def just_runs(_proc: Any) -> Process:
    yield Park()
    return 0


def dcgm_exporter(proc: Any) -> Process:
    """Needs NVML through the nvidia runtime; holds the devices while it runs."""
    proc.say('level=info msg="Starting dcgm-exporter"')
    proc.container.healthy = False
    yield Sleep(proc.clock.jitter(2))
    error = nvml.error(proc)
    if error:
        proc.say('level=fatal msg="Failed to initialize NVML" error="' + error + '"')
        return 1
    nvml.hold(proc)
    proc.container.healthy = True
    proc.say('level=info msg="Starting webserver"')
    yield Park()
    return 0


def operator(proc: Any) -> Process:
    """The GPU Operator's controller is not simulated: it runs and does nothing."""
    proc.say("[sandbox] the operator's controller is not simulated")
    yield Park()
    return 0
