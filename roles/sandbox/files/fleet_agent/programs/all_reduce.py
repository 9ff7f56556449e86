# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch's image: the program of role gpu_validation that two pods run together. The first waits for the second, and both run all-reduces.

The lines of NCCL are those of NVIDIA/nccl 5067397, src/init.cc and src/transport/net.cc.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from fleet_agent.loop import Process, Sleep
from fleet_agent.machine import nvml
from fleet_agent.machine.fleet import Interconnect

_BYTES = 1 << 30
#: SHA-256 of roles/gpu_validation/files/bandwidth.py without its last line break: the one program whose behavior is known here, since
#: tests/unit/roles/test_bandwidth.py runs it against a stub of PyTorch.
PROGRAM = "f484d47c5df05e22b8524cb50eab57789d16f8f486ebd48f429e6c75750b5136"
NOT_RUN = "[sandbox] this Python program is not run in a sandbox, so nothing is known of what it does. Next: run it on a cluster"


def python3(proc: Any) -> Process:
    text = proc.argv[2] if proc.argv[1:2] == ["-c"] and len(proc.argv) == 3 else ""
    if hashlib.sha256(text.rstrip().encode()).hexdigest() != PROGRAM:
        proc.say(NOT_RUN)
        return 1
    missing = next(
        (name for name in ("DEVICES", "FIRST_RANK", "RANKS", "PATIENCE_SECONDS") if name not in proc.env), ""
    )
    if missing:
        proc.say(f"KeyError: '{missing}'")
        return 1
    return (yield from _all_reduce(proc))


def _all_reduce(proc: Any) -> Process:
    devices, first, ranks = (int(proc.env[name]) for name in ("DEVICES", "FIRST_RANK", "RANKS"))
    seen = len(nvml.visible_gpus(proc.container))
    if seen != devices:
        proc.say(f"RuntimeError: the pod sees {seen} GPUs, {devices} are expected")
        return 1
    if not first:
        proc.say(f"listening at {proc.env['POD_ADDRESS']}")
    while (peer := _peer(proc)) is None:
        yield Sleep(0.5)
    link = _between(proc.host.spec.interconnect, peer.kubelet.host.spec.interconnect)
    _connect(proc, link, first, devices, ranks)
    yield Sleep(proc.clock.delay("all_reduces"))
    if not first:
        seconds = _BYTES * 2 * (ranks - 1) / ranks / (link.bandwidth * 1e9)
        proc.say(json.dumps({"ranks": ranks, "bytes": _BYTES, "seconds": seconds, "bus_bandwidth": link.bandwidth}))
    return 0


def _peer(proc: Any) -> Any:
    """The other pod, once its program runs."""
    address = proc.env.get("PEER_ADDRESS", "")
    for node in list(proc.kubelet.agent.nodes.values()):
        for pod in list(node.pods.values()):
            other = pod.main[0]
            met = pod.pod_ip == address if address else other.env.get("PEER_ADDRESS") == proc.pod.pod_ip
            if met and "running" in other.state:
                return pod
    return None


def _between(one: Interconnect, other: Interconnect) -> Interconnect:
    """NCCL falls back to TCP if one of the two has no other network."""
    transport = one.transport if one.transport == other.transport else Interconnect().transport
    return Interconnect(transport, min(one.bandwidth, other.bandwidth))


def _connect(proc: Any, link: Interconnect, first: int, devices: int, ranks: int) -> None:
    last, before = (first + devices) % ranks, (first - 1) % ranks
    direct = "" if link.transport == Interconnect().transport else "/GDRDMA"
    beginning = f"{proc.pod.name}:1:1 [0] NCCL INFO"
    proc.say(f"{beginning} Using network {link.transport}")
    proc.say(
        f"{beginning} Channel 00/0 : {before}[{devices - 1}] -> {first}[0] [receive] via NET/{link.transport}/0{direct}"
    )
    proc.say(
        f"{beginning} Channel 00/0 : {first + devices - 1}[{devices - 1}] -> {last}[0] [send] via NET/{link.transport}/0{direct}"
    )
