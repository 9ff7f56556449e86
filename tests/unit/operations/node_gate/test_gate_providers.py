# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on nodes with a driver of another provider, declared by the pool or chosen by the role."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import settings, training

POOL: dict[str, t.Any] = {"name": "training", "selector": "pool=training", "gpu": {"count": 8}}


@pytest.fixture(params=["pool", "role", "role, without pools"])
def by(request: pytest.FixtureRequest) -> t.Callable[..., Settings]:
    """Settings with a provider of the driver, declared in one of three places."""

    def of_provider(provider: str, gate: str = "driver", **more: t.Any) -> Settings:
        if request.param == "pool":
            return settings(gate, pools=parse_pools([POOL | {"driver": {"provider": provider}}]), **more)
        if request.param == "role":
            return settings(
                gate, pools=parse_pools([POOL]), driver_providers={"training": provider, "default": "hwaccel"}, **more
            )
        return settings(gate, pools=(), driver_providers={"default": provider}, **more)

    return of_provider


def test_existing_deployments_without_a_validator_are_evaluated_by_allocatable_gpus(
    clock: Time, by: t.Callable[..., Settings]
) -> None:
    cluster = NodeCluster([training(0, allocatable=8), training(1, allocatable=0)], [], on_idle=clock.advance)
    result = run(by("existing", max_failed=1), cluster)
    assert result.values["failed_nodes"] == ["training-1"]
    assert result.values["nodes"]["passed"] == 1


def test_a_pool_without_a_driver_is_not_evaluated(clock: Time, by: t.Callable[..., Settings]) -> None:
    cluster = NodeCluster([training(0, allocatable=8)], [], on_idle=clock.advance)
    assert run(by("none"), cluster).warnings
    assert sum(run(by("none", "devices"), cluster).values["nodes"].values()) == 0


def test_a_driver_of_the_host_has_no_pod_to_wait_for(clock: Time, by: t.Callable[..., Settings]) -> None:
    """The first step of the validator can take long, because its image is pulled."""
    pulling = s.validator("training-0", s.waiting("PodInitializing"))
    cluster = NodeCluster([training(0)], [pulling], on_idle=clock.advance)
    began = clock.now
    result = run(by("host", wait_timeout=900.0, max_failed=0), cluster)
    assert clock.now - began >= 900
    assert "the validator pod is starting" in result.values["faults"][0]["reason"]
    assert run(by("host"), cluster, check_mode=True).values["switched"] == []


def fault_of(result: t.Any) -> tuple[str, str, str]:
    (row,) = result.values["faults"]
    return row["link"], row["reason"], row["container"]


@pytest.mark.parametrize(
    ("validated", "allocatable"),
    [(True, 0), (False, 0), (False, 8)],
    ids=["operator", "no validator", "GPUs are still allocatable"],
)
def test_the_reason_comes_from_the_existing_driver_pod(
    clock: Time, by: t.Callable[..., Settings], validated: bool, allocatable: int
) -> None:
    """The log of the existing validator only reports that it retries."""
    waits = (
        [s.validator("training-0", s.running(ready=False)), s.toolkit("training-0", s.waiting())] if validated else []
    )
    crashing = s.driver("training-0", s.crash_loop("nvidia-driver-ctr", 6))
    cluster = NodeCluster([training(0, allocatable=allocatable)], [crashing, *waits], on_idle=clock.advance)
    link, reason, container = fault_of(run(by("existing", max_failed=1), cluster))
    assert (link, container) == ("driver", "nvidia-driver-ctr") and "crashed 7 times" in reason


def test_without_a_validator_the_reason_comes_from_the_existing_plugin(
    clock: Time, by: t.Callable[..., Settings]
) -> None:
    ready = s.driver("training-0")
    for pods, link, reason in (
        (
            [ready, s.plugin("training-0", s.crash_loop("nvidia-device-plugin", 6))],
            "plugin",
            "container nvidia-device-plugin of pod",
        ),
        ([ready, s.plugin("training-0")], "plugin", "no GPU is allocatable"),
        ([ready], "plugin", "neither a validator nor a device plugin is on the node"),
    ):
        found = fault_of(
            run(by("existing", max_failed=1), NodeCluster([training(0, allocatable=0)], pods, on_idle=clock.advance))
        )
        assert found[0] == link and reason in found[1], found


@pytest.mark.parametrize(("managed_by", "evaluated"), [("Helm", 0), ("hwaccel.gpu", 1)])
def test_an_existing_plugin_that_crashes_on_a_node_without_gpu_fails_no_node(
    clock: Time, managed_by: str, evaluated: int
) -> None:
    """The upstream DaemonSet has no node selector."""
    crashing = s.plugin("cpu-0", s.crash_loop("nvidia-device-plugin", 9))
    crashing["metadata"]["labels"]["app.kubernetes.io/managed-by"] = managed_by
    cluster = NodeCluster([s.node("cpu-0", gpus=0)], [crashing], on_idle=clock.advance)
    assert sum(run(settings("devices", pools=(), max_failed=9), cluster).values["nodes"].values()) == evaluated


def test_the_last_gate_reports_a_failed_driver_before_the_plugin_that_needs_it(clock: Time) -> None:
    pods = [
        s.driver("training-0", s.crash_loop("nvidia-driver-ctr", 6)),
        s.plugin("training-0", s.crash_loop("nvidia-device-plugin", 6)),
    ]
    cluster = NodeCluster([training(0, allocatable=0)], pods, on_idle=clock.advance)
    assert fault_of(run(settings("devices", max_failed=1), cluster))[0] == "driver"
