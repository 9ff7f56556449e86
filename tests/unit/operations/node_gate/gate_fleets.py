# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fleets for the tests of gates, and a clock that they move."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.fake_cluster import FakeCluster, Obj, Step

POOLS = parse_pools([{"name": "training", "selector": "pool=training", "gpu": {"count": 8}}])


class Clock:
    """The server's time, moved by tests, and the wall clock of the gate, which may be ahead of it."""

    def __init__(self) -> None:
        self.now = 100000.0
        self.ahead = 0.0

    def time(self) -> float:
        return self.now + self.ahead

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float = 10.0) -> None:
        self.now += seconds


def training(number: int, **kwargs: t.Any) -> Obj:
    return s.node(f"training-{number}", labels={"pool": "training"}, **kwargs)


def healthy(name: str) -> list[Obj]:
    return [s.driver(name), s.toolkit(name), s.validator(name), s.plugin(name)]


def broken(name: str) -> list[Obj]:
    return [
        s.driver(name, s.crash_loop("nvidia-driver-ctr", 3)),
        s.toolkit(name, s.waiting()),
        s.validator(name, s.running(ready=False)),
    ]


def fleet(
    size: int, bad: c.Collection[int] = (), clock: Clock | None = None, script: list[Step] | None = None
) -> FakeCluster:
    """bad nodes' drivers crash, and keep crashing while the gate looks."""
    nodes = [training(number, allocatable=8) for number in range(size)]
    pods = [pod for number in range(size) for pod in (broken if number in bad else healthy)(f"training-{number}")]

    def crash_again(cluster: FakeCluster) -> None:
        for pod in list(cluster.objects["Pod"].values()):
            if pod["status"]["containerStatuses"][0]["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff":
                pod["status"]["containerStatuses"][0]["restartCount"] += 1
                cluster.put(pod)

    made = FakeCluster(nodes, pods, [crash_again] if script is None else script)
    if clock is not None:
        made.on_idle, made.now = clock.advance, lambda: clock.now
    return made


def settings(gate: str = "driver", **kwargs: t.Any) -> Settings:
    return Settings(**({"gate": gate, "pools": POOLS, "max_failed": "10%"} | kwargs))


def daemon_set(
    name: str, template: Obj, desired: int, *, updated: int | None = None, generation: int = 1, observed: int = 1
) -> Obj:
    return {
        "kind": "DaemonSet",
        "metadata": {"name": name, "generation": generation},
        "spec": {"template": template, "updateStrategy": {"type": "RollingUpdate"}},
        "status": {
            "observedGeneration": observed,
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": desired,
            "updatedNumberScheduled": desired if updated is None else updated,
        },
    }
