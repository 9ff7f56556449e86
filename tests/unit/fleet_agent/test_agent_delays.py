# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Default delays compared with those of a real node (kubelet 1.36.4, containerd 2.3.7, images present), within 30 %.

The scale is 1.0, on a clock that jumps to the next event, so the tests are exact and take milliseconds on any machine.
"""

from __future__ import annotations

import queue
import types
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import PLUGIN, container, host, mount
from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.world import World

Obj = dict[str, t.Any]
GPU = "nvidia.com/gpu"
BUSYBOX = "busybox:1.36"
FOREVER = ["sh", "-c", "sleep inf"]


class Timed(World):
    """Requests are answered immediately, and nothing waits: time advances while the inbox is empty."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        outer = self

        class Inbox(queue.SimpleQueue):  # type: ignore[type-arg]
            def get(self, block: bool = True, timeout: float | None = None) -> t.Any:
                if self.empty():
                    outer.seconds += timeout or 0.0
                return super().get_nowait()

        monkeypatch.setattr("fleet_agent.loop.queue", types.SimpleNamespace(SimpleQueue=Inbox, Empty=queue.Empty))
        monkeypatch.setattr("fleet_agent.loop.time", types.SimpleNamespace(monotonic=lambda: self.seconds))
        super().__init__(1.0)
        self.pool = types.SimpleNamespace(submit=lambda work: work())  # type: ignore[assignment]
        self.loop._pool = self.pool
        self.clock.reseed(seed)

    def took(self, condition: t.Callable[[], t.Any], limit: float = 1000.0) -> float:
        started = self.seconds
        while not condition():
            assert self.seconds - started < limit, "did not happen"
            self.loop.turn()
        return self.seconds - started

    def gpus(self, node: str = "n0") -> tuple[int, int]:
        """(capacity, allocatable) of the Node object."""
        status = self.api.at(f"/api/v1/nodes/{node}")["status"]
        return int(status["capacity"].get(GPU, -1)), int(status["allocatable"].get(GPU, -1))


@pytest.fixture(params=range(5))
def timed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Timed:
    created = Timed(request.param, monkeypatch)
    created.node(host_driver="580.178.04", gpu={"product": "NVIDIA-H100-80GB-HBM3", "count": 2, "memory_mib": 81559})
    created.nodes["n0"].host.images.update({BUSYBOX, PLUGIN})
    created.took(lambda: created.seconds > 60)  # A kubelet that has just started begins its probes later.
    return created


def device_plugin(world: Timed) -> t.Any:
    created = container(
        "plugin",
        PLUGIN,
        ["nvidia-device-plugin"],
        mount("dp", "/var/lib/kubelet/device-plugins"),
        mount("root", "/driver-root"),
    )
    return world.pod(
        world.nodes["n0"],
        {
            "volumes": [host("dp", "/var/lib/kubelet/device-plugins", ""), host("root", "/", "")],
            "containers": [created],
        },
    )


def within(seconds: float, low: float, high: float) -> bool:
    return low * 0.7 <= seconds <= high * 1.3


def test_a_pod_is_ready_after_the_delay_of_a_real_node(timed: Timed) -> None:
    created = timed.pod(timed.nodes["n0"], {"containers": [container("c", BUSYBOX, FOREVER)]})
    assert within(timed.took(lambda: created.main[0].ready), 1.2, 1.5)


def test_a_pod_with_two_init_containers_is_ready_after_the_delay_of_a_real_node(timed: Timed) -> None:
    gates = [
        {**container(f"gate-{n}", BUSYBOX, ["sh", "-c", "[ -d /run/x ]"]), "volumeMounts": [mount("v", "/run/x")]}
        for n in range(2)
    ]
    spec = {"containers": [container("c", BUSYBOX, FOREVER)], "initContainers": gates, "volumes": [host("v", "/run/x")]}
    created = timed.pod(timed.nodes["n0"], spec)
    assert within(timed.took(lambda: created.main[0].ready), 2.3, 2.4)


def test_devices_are_allocatable_after_the_plugin_s_apply(timed: Timed) -> None:
    device_plugin(timed)
    assert within(timed.took(lambda: timed.gpus() == (2, 2)), 2.1, 2.5)


def test_devices_of_a_deleted_plugin_are_removed(timed: Timed) -> None:
    """Allocatable decreases within seconds, capacity after five minutes."""
    pod = device_plugin(timed)
    timed.took(lambda: timed.gpus() == (2, 2))
    timed.delete(pod, grace=0)
    stopped = timed.took(lambda: "running" not in pod.main[0].state)
    assert within(timed.took(lambda: timed.gpus() == (2, 0)) + stopped, 3, 4)
    assert within(timed.took(lambda: timed.gpus() == (0, 0)), 300, 304)


def test_devices_are_registered_again_after_a_restart_of_the_kubelet(timed: Timed) -> None:
    device_plugin(timed)
    timed.took(lambda: timed.gpus() == (2, 2))
    kubelet = timed.nodes["n0"]
    timed.loop.later(timed.clock.delay("kubelet_restart"), kubelet.restarted)
    lost = timed.took(lambda: timed.gpus() == (0, 0))
    assert within(lost, 0.8, 0.8)
    assert within(lost + timed.took(lambda: timed.gpus() == (2, 2)), 6.0, 6.0)


def test_everything_is_ready_after_a_reboot(timed: Timed) -> None:
    """The machine is off after 10 s. After another 17 s the plugin and NFD, whose probes start after 5 s and run every 10 s, are Ready."""
    probe = {"exec": {"command": ["true"]}, "initialDelaySeconds": 5, "periodSeconds": 10}
    spec = {"containers": [{**container("c", BUSYBOX, FOREVER), "readinessProbe": probe}]}
    pods = [
        device_plugin(timed),
        *(timed.pod(timed.nodes["n0"], spec) for _component in ("nfd-master", "nfd-worker", "nfd-gc")),
    ]
    timed.took(lambda: all(pod.main[0].ready for pod in pods))
    timed.loop.spawn(timed.nodes["n0"].reboot())
    timed.took(lambda: not any(pod.main[0].ready for pod in pods))
    assert within(timed.took(lambda: all(pod.main[0].ready for pod in pods)), 27, 27)
