# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Startup, readiness and liveness probes with kubelet's counting."""

from __future__ import annotations

import math
from typing import Any

from fleet_agent.kubelet import process
from fleet_agent.loop import Killed, Poll, Process, Sleep, Task, Terminated

KINDS = ("startupProbe", "readinessProbe", "livenessProbe")


def start(container: Any) -> list[Task]:
    loop = container.pod.kubelet.loop
    return [loop.spawn(_prober(container, kind, container.spec[kind])) for kind in KINDS if container.spec.get(kind)]


def _attempt(container: Any, probe: dict[str, Any]) -> Process:
    """(passed, output, whether the result can only change when the node changes)."""
    if "exec" not in probe:
        fault = _network_fault(container, probe)
        return not fault, fault, True
    lines: list[str] = []
    writes = container.view.writes
    code = yield from process.run_probe(container, list(probe["exec"].get("command") or []), lines.append)
    return code == 0, "".join(lines)[-400:].strip(), container.view.writes == writes


def _network_fault(container: Any, probe: dict[str, Any]) -> str:
    """Kubelet's message for a probe over the network, empty if it passes (kubernetes v1.36.4, pkg/probe/http and pkg/probe/tcp)."""
    failed = "" if container.healthy else "HTTP probe failed with statuscode: 500"
    if not container.image.family:
        return failed  # Which ports the program of a user's image serves is unknown.
    http = probe.get("httpGet")
    port = _port(container, (http or probe.get("tcpSocket") or probe.get("grpc") or {}).get("port", 0))
    place = f"{container.pod.pod_ip}:{port}"
    if port not in container.serves:
        refused = f"dial tcp {place}: connect: connection refused"
        return f'Get "http://{place}{http.get("path", "/")}": {refused}' if http else refused
    if http and http.get("path", "/") not in container.serves[port]:
        return "HTTP probe failed with statuscode: 404"
    return failed


def _port(container: Any, port: int | str) -> int:
    """Of a name, the port of the container; 0 for an unknown name."""
    if isinstance(port, int):
        return port
    ports = container.spec.get("ports") or []
    return next((int(one["containerPort"]) for one in ports if one.get("name") == port), 0)


def _prober(container: Any, kind: str, probe: dict[str, Any]) -> Process:
    host = container.pod.kubelet.host
    period = float(probe.get("periodSeconds") or 10)
    needed, allowed = int(probe.get("successThreshold") or 1), int(probe.get("failureThreshold") or 3)
    passed_in_row = failed_in_row = 0
    yield Sleep(
        max(
            _first(float(probe.get("initialDelaySeconds") or 0), period, container.pod.kubelet.probe_wait(period)), 0.01
        )
    )
    while True:
        if kind == "startupProbe" or container.started:
            version = host.version
            passed, output, pure = yield from _attempt(container, probe)
            passed_in_row, failed_in_row = (passed_in_row + 1, 0) if passed else (0, failed_in_row + 1)
            if passed and passed_in_row == needed and _passed(container, kind):
                return None
            if not passed and failed_in_row == allowed:
                _failed(container, kind, output)
            settled = passed_in_row > needed or failed_in_row > allowed
            if pure and settled and version == host.version:
                yield Poll(period, host)  # The result is the same until the node changes.
                continue
        yield Sleep(period)


def _first(delay: float, period: float, wait: float) -> float:
    """Seconds to the first probe that counts. wait: initial delay of a kubelet that has just started, which periods follow."""
    return wait + period * math.ceil(max(0.0, delay - wait) / period) if wait else delay


def _passed(container: Any, kind: str) -> bool:
    """True when the probe has ended (startup)."""
    if kind == "startupProbe":
        container.started = True
        if not container.spec.get("readinessProbe"):
            container.ready = True
        container.pod.changed()
        return True
    if kind == "readinessProbe" and not container.ready:
        container.ready = True
        container.pod.changed()
    return False


def _failed(container: Any, kind: str, output: str) -> None:
    pod = container.pod
    name = kind.removesuffix("Probe").capitalize()
    pod.kubelet.event(pod, "Unhealthy", f"{name} probe failed: {output}")
    if kind == "readinessProbe":
        if container.ready:
            container.ready = False
            pod.changed()
        return
    grace = float(pod.spec.get("terminationGracePeriodSeconds", 30))
    pod.kubelet.event(
        pod, "Killing", f"Container {container.name} failed {kind.removesuffix('Probe')} probe, will be restarted"
    )
    task = container.task
    container.signal(Terminated())

    def harder() -> None:
        if container.task is task and "running" in container.state:
            container.signal(Killed())

    pod.kubelet.loop.later(pod.kubelet.clock.real(grace), harder)
