# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates over nodes whose driver is somebody else's, be it that their pool says so or that the role has decided it."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import Settings, run
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.fake_cluster import FakeCluster
from ansible_collections.hwaccel.gpu.tests.unit.operations.gate_fleets import Clock, settings, training

POOL: dict[str, t.Any] = {"name": "training", "selector": "pool=training", "gpu": {"count": 8}}


@pytest.fixture(params=["pool", "role", "role, without pools"])
def by(request: pytest.FixtureRequest) -> t.Callable[..., Settings]:
    """Settings in which the driver is brought by somebody, said in one of three places."""
    def made(provider: str, gate: str = "driver", **more: t.Any) -> Settings:
        if request.param == "pool":
            return settings(gate, pools=parse_pools([POOL | {"driver": {"provider": provider}}]), **more)
        if request.param == "role":
            return settings(gate, pools=parse_pools([POOL]), driver_providers={"training": provider, "default": "hwaccel"}, **more)
        return settings(gate, pools=(), driver_providers={"default": provider}, **more)

    return made


def test_existing_deployments_without_a_validator_are_judged_by_what_they_offer(clock: Clock, by: t.Callable[..., Settings]) -> None:
    cluster = FakeCluster([training(0, allocatable=8), training(1, allocatable=0)], [], on_idle=clock.advance)
    result = run(by("existing", max_failed=1), cluster)
    assert result.values["failed_nodes"] == ["training-1"]
    assert result.values["nodes"]["passed"] == 1


def test_a_pool_that_is_to_have_no_driver_is_not_judged(clock: Clock, by: t.Callable[..., Settings]) -> None:
    cluster = FakeCluster([training(0, allocatable=8)], [], on_idle=clock.advance)
    assert run(by("none"), cluster).warnings
    assert sum(run(by("none", "devices"), cluster).values["nodes"].values()) == 0


def test_a_driver_of_the_host_has_no_pod_to_wait_for(clock: Clock, by: t.Callable[..., Settings]) -> None:
    """The validator's first step may take its time: its image is pulled."""
    pulling = s.validator("training-0", s.waiting("PodInitializing"))
    cluster = FakeCluster([training(0)], [pulling], on_idle=clock.advance)
    began = clock.now
    result = run(by("host", wait_timeout=900.0, max_failed=0), cluster)
    assert clock.now - began >= 900
    assert "the validator pod starts" in result.values["faults"][0]["reason"]
    assert run(by("host"), cluster, check_mode=True).values["switched"] == []
