# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fleets for the tests of gates."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster, Step
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s

POOLS = parse_pools([{"name": "training", "selector": "pool=training", "gpu": {"count": 8}}])


def training(number: int, **kwargs: t.Any) -> Obj:
    return s.node(f"training-{number}", labels={"pool": "training"}, **kwargs)


def healthy(name: str) -> list[Obj]:
    return [s.driver(name), s.toolkit(name), s.validator(name), s.plugin(name)]


def with_crashed_driver(name: str) -> list[Obj]:
    return [
        s.driver(name, s.crash_loop("nvidia-driver-ctr", 3)),
        s.toolkit(name, s.waiting()),
        s.validator(name, s.running(ready=False)),
    ]


def fleet(
    size: int, bad: c.Collection[int] = (), clock: Time | None = None, script: list[Step] | None = None
) -> NodeCluster:
    """The drivers of `bad` nodes crash, and keep crashing while the gate waits."""
    nodes = [training(number, allocatable=8) for number in range(size)]
    pods = [
        pod
        for number in range(size)
        for pod in (with_crashed_driver if number in bad else healthy)(f"training-{number}")
    ]

    def crash_again(cluster: NodeCluster) -> None:
        for pod in cluster.all_of("Pod"):
            if pod["status"]["containerStatuses"][0]["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff":
                pod["status"]["containerStatuses"][0]["restartCount"] += 1
                cluster.put(pod)

    cluster = NodeCluster(nodes, pods, [crash_again] if script is None else script)
    if clock is not None:
        cluster.on_idle, cluster.time = clock.advance, clock
    return cluster


def settings(gate: str = "driver", **kwargs: t.Any) -> Settings:
    return Settings(**({"gate": gate, "pools": POOLS, "max_failed": "10%"} | kwargs))


def daemon_set(
    name: str, template: Obj, desired: int, *, updated: int | None = None, generation: int = 1, observed: int = 1
) -> Obj:
    return {
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": s.NAMESPACE, "generation": generation},
        "spec": {"template": template, "updateStrategy": {"type": "RollingUpdate"}},
        "status": {
            "observedGeneration": observed,
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": desired,
            "updatedNumberScheduled": desired if updated is None else updated,
        },
    }
