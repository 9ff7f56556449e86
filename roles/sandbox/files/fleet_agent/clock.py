# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated time: one second of a real node takes `scale` seconds here, with seeded jitter."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable

# Delays of a real node in seconds, at scale 1.0, with their source: M = measured on one real node
# (kubelet 1.36.4, containerd 2.3.7, images present), S = read in the component's source, A = assumed, nothing measured.
DELAYS: dict[str, float] = {
    "sandbox": 0.55,  # M: pod Ready in 1.2-1.5 s, of which this is the sandbox and its volumes
    "container_start": 0.40,  # M: the rest of it; two gated init containers and one container were up in 2.3 s
    "next_init": 0.30,  # M: same measurement
    "volume_retry": 2.0,  # S: kubelet retries a mount with 0.5 s, 1 s, 2 s ... delays
    "sandbox_retry": 12.0,  # S: a pod is synced again after about 10-15 s
    "restart_backoff": 10.0,  # S: kubelet, first back-off; doubled each time
    "restart_backoff_max": 300.0,
    "plugin_register": 0.9,  # M: 2.1-2.5 s from the apply to allocatable, pod start included
    "node_status": 0.5,  # M: same measurement
    "plugin_lost": 3.5,  # M: allocatable 0 after 3-4 s
    "plugin_forgotten": 304.0,  # M: capacity 0 after 304 s
    "reboot": 10.0,  # M: stop time-out of 10 s; workloads were back after 17 s more, probes of a fresh kubelet included
    "boot": 3.4,  # M: 2.3-3.0 s from power on to the kubelet's start, 0.6-0.9 s more to the node's readiness
    "kubelet_restart": 0.8,  # M: capacity and allocatable 0 after 0.8 s
    "pci_discovery": 1.6,  # M: 3.7-4.9 s from the apply of NFD to the label, pod starts included
    "nfd_master": 0.6,  # M: rule label 0.7 s after the rule
    "driver_load": 20.0,  # A: modprobe of the modules, persistence daemon, mounts
    "driver_precompiled": 25.0,  # A: installing the packages of a precompiled image
    "driver_build": 180.0,  # A: headers, compiler, linking in place
    "driver_unload": 5.0,  # A
    "toolkit_install": 4.0,  # A: binaries, configuration, runtime signaled
    "cuda_sample": 1.0,  # A: context creation and one kernel
    "all_reduces": 20.0,  # A: start of PyTorch on each GPU, connections, three sizes of data
    "sigkill": 0.2,  # A
    "node_monitor_grace": 50.0,  # S: kube-controller-manager's --node-monitor-grace-period
    "flap": 60.0,  # A
}
#: Waits that do not take longer on a slow machine.
WAITS = frozenset(
    {
        "volume_retry",
        "sandbox_retry",
        "restart_backoff",
        "restart_backoff_max",
        "plugin_lost",
        "plugin_forgotten",
        "node_monitor_grace",
        "flap",
    }
)


class Clock:
    """Turns real-node seconds into seconds of this process."""

    def __init__(self, scale: float = 1.0, seed: int = 1) -> None:
        self.scale = scale
        self._random = random.Random(seed)

    def reseed(self, seed: int) -> None:
        self._random.seed(seed)

    def real(self, seconds: float) -> float:
        """Seconds to wait here for something that lasts `seconds` on a real node."""
        return seconds * self.scale

    def delay(self, name: str) -> float:
        """A named delay in real-node seconds, within 15 % of its figure."""
        return DELAYS[name] * self._random.uniform(0.85, 1.15)

    def jitter(self, seconds: float, part: float = 0.15) -> float:
        return seconds * self._random.uniform(1 - part, 1 + part)

    def portion(self, seconds: float) -> float:
        return seconds * self._random.random()

    def hexadecimal(self, digits: int) -> str:
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"


class NodeClock(Clock):
    """One node's view of the fleet's clock: its work takes `slowness` times as long."""

    def __init__(self, fleet: Clock, slowness: Callable[[], float]) -> None:
        super().__init__()
        self._fleet, self._slowness, self._random = fleet, slowness, fleet._random

    def real(self, seconds: float) -> float:
        return self._fleet.real(seconds)

    def delay(self, name: str) -> float:
        return super().delay(name) * (1.0 if name in WAITS else self._slowness())

    def jitter(self, seconds: float, part: float = 0.15) -> float:
        return super().jitter(seconds, part) * self._slowness()


def timestamp() -> str:
    """Now, in the API's format."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
