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


#: Of the image (NVIDIA/dcgm-exporter d5e5f51, pkg/cmd/app.go).
COUNTERS, LISTEN = "/etc/dcgm-exporter/default-counters.csv", ":9400"


def dcgm_exporter(proc: Any) -> Process:
    """Needs NVML through the nvidia runtime; holds the devices while it runs. It serves what internal/pkg/server/server.go routes."""
    proc.say('level=info msg="Starting dcgm-exporter"')
    host, _colon, port = (proc.option("address", "DCGM_EXPORTER_LISTEN") or LISTEN).rpartition(":")
    if not port.isdigit():
        proc.say(
            f'level=fatal msg="Failed to Listen and Server HTTP server." error="listen tcp: address {host}{port}: invalid port"'
        )
        return 1
    proc.container.healthy = False
    yield Sleep(proc.clock.jitter(2))
    error = nvml.error(proc)
    if error:
        proc.say('level=fatal msg="Failed to initialize NVML" error="' + error + '"')
        return 1
    counters = proc.option("collectors", "DCGM_EXPORTER_COLLECTORS") or COUNTERS
    if counters != COUNTERS and not proc.view.is_file(counters):
        proc.say(
            f"level=ERROR msg=\"Could not read metrics file '{counters}'; err: open {counters}: no such file or directory\""
        )
        return 1
    nvml.hold(proc)
    proc.container.healthy = True
    proc.say('level=info msg="Starting webserver"')
    # Kubelet and Prometheus come by the pod's address.
    if host not in ("127.0.0.1", "localhost"):
        proc.container.serve(int(port), "/", "/health", "/metrics")
    yield Park()
    return 0


def operator(proc: Any) -> Process:
    """The GPU Operator's controller is not simulated: it runs and does nothing."""
    proc.say("[sandbox] the operator's controller is not simulated")
    # cmd/gpu-operator/main.go: the defaults of health-probe-bind-address and metrics-bind-address.
    proc.container.serve(8081, "/healthz", "/readyz")
    proc.container.serve(8080, "/metrics")
    yield Park()
    return 0
