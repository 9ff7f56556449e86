# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate exporters waits for nodes that can have an exporter, reports why others have none, and quarantines no node."""

from __future__ import annotations

import functools

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.expected import ROLE_OF_GATE
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Gone
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import BASE_TIMEOUT
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster, Step
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import (
    daemon_set,
    healthy,
    settings,
    training,
    with_crashed_driver,
)

N = "training-0"
DENIED = s.waiting("ErrImagePull", "pull access denied")


def fleet(*pods: Obj, clock: Time, nodes: tuple[Obj, ...] = (), script: tuple[Step, ...] = ()) -> NodeCluster:
    return NodeCluster(list(nodes) or [training(0)], list(pods), list(script), on_idle=clock.advance)


def test_a_node_has_passed_when_its_exporter_is_ready(clock: Time) -> None:
    result = run(settings("exporters"), fleet(s.exporter(N), clock=clock))
    assert (result.failure, result.values["nodes"]["passed"], result.values["held"], result.warnings) == (
        None,
        1,
        [],
        [],
    )


def test_an_exporter_that_starts_is_waited_for(clock: Time) -> None:
    starting, ready = s.exporter(N, s.running(ready=False)), s.exporter(N)
    ready["metadata"] = starting["metadata"]
    cluster = fleet(*healthy(N), starting, clock=clock, script=(lambda cluster: cluster.put(ready),))
    result = run(settings("exporters"), cluster)
    assert (result.failure, result.values["nodes"]) == (None, {"passed": 1, "waiting": 0, "failed": 0, "unknown": 0})


@pytest.mark.parametrize("exclude", [frozenset(), frozenset({N})], ids=["evaluated", "excluded"])
def test_a_node_without_driver_is_held_with_its_cause_and_not_waited_for(clock: Time, exclude: frozenset[str]) -> None:
    cluster = fleet(
        *with_crashed_driver(N),
        s.exporter(N, proof=s.running()),
        s.exporter("training-1"),
        clock=clock,
        nodes=(training(0), training(1)),
    )
    began = clock.now
    result = run(settings("exporters", exclude=exclude), cluster)
    assert (result.failure, result.values["nodes"]["passed"], result.values["failed_nodes"]) == (None, 1, [])
    (held,) = result.values["held"]
    assert (held["node"], held["link"], held["state"]) == (N, "driver", "held")
    assert "nvidia-driver-ctr" in held["reason"]
    assert held["next_step"]
    assert clock.now - began < 1


def test_a_node_with_a_working_driver_and_a_failed_validation_is_waited_for(clock: Time) -> None:
    """A GPU on which no CUDA kernel runs must still be monitored."""
    starting, ready = s.exporter(N, proof=s.running()), s.exporter(N)
    ready["metadata"] = starting["metadata"]
    pods = [s.driver(N), s.toolkit(N), s.validator(N, cuda=s.crash_loop("cuda-validation", 5)), starting]
    result = run(settings("exporters"), fleet(*pods, clock=clock, script=(lambda cluster: cluster.put(ready),)))
    assert (result.values["nodes"]["passed"], result.values["held"]) == (1, [])


def test_a_node_that_is_not_ready_is_held(clock: Time) -> None:
    cluster = fleet(s.exporter(N, s.running(ready=False)), clock=clock, nodes=(training(0, ready=False),))
    (held,) = run(settings("exporters"), cluster).values["held"]
    assert "not Ready" in held["reason"]


def test_a_running_exporter_is_not_held_by_a_driver_that_fails_later(clock: Time) -> None:
    """It has passed the validation of the driver, so it is the exporter itself that is not ready."""
    result = run(
        settings("exporters", max_failed=1, wait_timeout=20),
        fleet(*with_crashed_driver(N), s.exporter(N, s.running(ready=False)), clock=clock),
    )
    (fault,) = result.values["faults"]
    assert (result.values["held"], fault["link"], fault["container"]) == ([], "exporter", "nvidia-dcgm-exporter")


def test_without_a_validator_in_the_namespace_the_exporter_is_waited_for(clock: Time) -> None:
    result = run(settings("exporters", wait_timeout=20), fleet(s.exporter(N, proof=s.running()), clock=clock))
    assert result.values["failed_nodes"] == [N]
    assert "waits in driver-proof" in str(result.failure)
    assert "validations/driver-ready" in str(result.failure)


@pytest.mark.parametrize("expired", [False, True], ids=["at first", "listed again"])
def test_the_drivers_pods_may_be_in_another_namespace(clock: Time, expired: bool) -> None:
    def expires(_cluster: NodeCluster) -> None:
        raise Gone("watching pods")

    in_namespace = [pod | {"metadata": pod["metadata"] | {"namespace": "drivers"}} for pod in with_crashed_driver(N)]
    starting = s.exporter("training-1", s.running(ready=False))
    ready = s.exporter("training-1") | {"metadata": starting["metadata"]}
    script = (*[expires] * expired, functools.partial(NodeCluster.put, obj=ready))
    cluster = fleet(
        *in_namespace,
        s.exporter(N, proof=s.running()),
        starting,
        clock=clock,
        nodes=(training(0), training(1)),
        script=script,
    )
    result = run(settings("exporters", driver_namespace="drivers", wait_timeout=20), cluster)
    assert (result.failure, result.values["nodes"]["passed"], [row["node"] for row in result.values["held"]]) == (
        None,
        1,
        [N],
    )
    assert run(settings("exporters", wait_timeout=20), cluster).values["failed_nodes"] == [N], (
        "without the option this namespace is not searched"
    )


def test_an_image_that_cannot_be_pulled_fails_without_quarantine(clock: Time) -> None:
    denied = s.exporter(N, DENIED)
    cluster = fleet(*healthy(N), denied, clock=clock, script=(lambda cluster: cluster.put(s.exporter(N, DENIED)),))
    result = run(settings("exporters", max_failed=1, wait_timeout=20), cluster)
    assert (result.failure, result.values["failed_nodes"], result.values["quarantined"], cluster.writes) == (
        None,
        [N],
        [],
        [],
    )
    assert "pull access denied" in result.values["faults"][0]["reason"]
    assert "1 of 1 nodes failed" in str(run(settings("exporters", max_failed=0, wait_timeout=20), cluster).failure)


def test_an_exporter_does_not_lift_a_quarantine_of_another_gate(clock: Time) -> None:
    quarantined = training(0, taints=[{"key": names.QUARANTINE, "value": "devices", "effect": "NoSchedule"}])
    quarantined["metadata"]["labels"][names.QUARANTINE] = "devices"
    cluster = fleet(*healthy(N), s.exporter(N), clock=clock, nodes=(quarantined,))
    assert (run(settings("exporters"), cluster).values["released"], cluster.writes) == ([], [])


def test_pods_that_a_daemon_set_still_creates_are_waited_for(clock: Time) -> None:
    exporter = s.exporter(N)
    cluster = fleet(clock=clock, script=(lambda cluster: cluster.put(exporter),))
    cluster.put(daemon_set("exporter", exporter, 1))
    assert run(settings("exporters"), cluster).values["nodes"]["passed"] == 1


def test_check_mode_reviews_no_permission_to_write(clock: Time) -> None:
    cluster = fleet(*healthy(N), s.exporter(N, s.running(ready=False)), clock=clock)
    result = run(settings("exporters"), cluster, check_mode=True)
    assert (
        result.changed,
        result.values["nodes"]["waiting"],
        {verb for verb, *_what in cluster.reviews} & {"patch", "update"},
    ) == (False, 1, set())


def test_every_gate_has_a_timeout() -> None:
    assert set(BASE_TIMEOUT) == set(ROLE_OF_GATE)
