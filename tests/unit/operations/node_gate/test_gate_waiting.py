# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions that a gate waits for, and timeouts."""

from __future__ import annotations

import datetime

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import begin, run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster, Step
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import (
    daemon_set,
    fleet,
    healthy,
    settings,
    training,
)


def test_a_gate_waits_until_the_last_node_has_passed(clock: Time) -> None:
    loading = [
        s.driver("training-1", s.running(ready=False, started=False)),
        s.validator("training-1", s.running(ready=False)),
    ]

    def drivers_load(cluster: NodeCluster) -> None:
        for pod, now in zip(loading, (s.driver("training-1"), s.validator("training-1")), strict=True):
            now["metadata"] = pod["metadata"] | {"labels": {}}
            cluster.put(now)

    began = clock.now
    cluster = NodeCluster(
        [training(0), training(1)],
        [*healthy("training-0"), *loading],
        [lambda cluster: clock.advance(6), drivers_load],
        clock.advance,
    )
    result = run(settings(), cluster)
    assert result.values["nodes"]["passed"] == 2
    assert result.values["pools"][0]["settled"] == clock.now > began
    assert result.progress[0].startswith(
        "driver: 1 of 2 passed, 1 waiting: training-1 (driver: compiling or loading); at most "
    )
    assert result.progress[-1] == "driver: 2 of 2 passed"


def test_a_node_that_still_waits_at_the_timeout_has_failed(clock: Time) -> None:
    loading = [
        s.driver("training-0", s.running(ready=False, started=False)),
        s.validator("training-0", s.running(ready=False)),
    ]
    cluster = NodeCluster([training(0)], loading, on_idle=clock.advance)
    result = run(settings(wait_timeout=60), cluster)
    assert result.values["faults"][0]["reason"].startswith("after 60 s: the driver is compiling")
    assert result.values["faults"][0]["log_tail"]
    assert result.failure is not None


def test_the_timeout_grows_with_the_fleet(clock: Time) -> None:
    gate = begin(settings(), fleet(20), {})
    gate.judge()
    assert gate.timeout == 1800 + 20 * 0.3


@pytest.mark.parametrize("ahead", [-600, 0, 600])
@pytest.mark.parametrize(("silent_for", "waited"), [(0, chain.REBOOT), (600, chain.REBOOT - 600), (86400, 0)])
def test_a_node_that_is_not_ready_is_waited_for_as_long_as_a_reboot_takes(
    clock: Time, silent_for: int, waited: float, ahead: float
) -> None:
    """Time counts from the last report of its kubelet, so that a node that is down for days does not delay a run. `ahead`: seconds of the client's clock."""
    clock.ahead = ahead
    cluster = fleet(16, clock=clock)
    lost = cluster.get(cluster.resource("v1", "Node"), "training-5")
    since = datetime.datetime.fromtimestamp(clock.now - silent_for, tz=datetime.UTC).isoformat()
    lost["status"]["conditions"] = [
        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": since}
    ]
    cluster.put(lost)
    began = clock.now
    result = run(settings(), cluster)
    assert result.values["failed_nodes"] == ["training-5"]
    assert waited <= clock.now - began <= waited + 30


def test_without_server_time_a_condition_counts_from_its_first_observation(clock: Time) -> None:
    cluster = fleet(16, clock=clock)
    cluster.time = None
    lost = training(5, ready=False)
    lost["status"]["conditions"][1]["lastTransitionTime"] = "1970-01-01T00:00:00Z"
    cluster.put(lost)
    began = clock.now
    assert run(settings(), cluster).values["failed_nodes"] == ["training-5"]
    assert chain.REBOOT <= clock.now - began <= chain.REBOOT + 30


def test_pods_that_a_controller_has_not_created_yet_are_waited_for(clock: Time) -> None:
    """Directly after the apply no NFD worker exists yet, and the gate must not pass because there is nothing to evaluate."""
    worker = s.worker("n")
    unobserved = daemon_set("nfd-worker", worker, 0, observed=0)
    cluster = NodeCluster(
        [s.node("n", gpus=0, nfd=False)],
        [],
        [
            lambda cluster: cluster.put(daemon_set("nfd-worker", worker, 1)),
            lambda cluster: cluster.put(worker),
            lambda cluster: None,
            lambda cluster: cluster.put(s.node("n")),
        ],
        clock.advance,
    )
    cluster.put(unobserved)
    result = run(settings("features", pools=()), cluster)
    assert result.values["nodes"]["passed"] == 1
    assert result.warnings == []


def test_a_node_without_a_pod_has_not_failed_while_other_nodes_still_get_theirs(clock: Time) -> None:
    """In a large fleet the last pod is created many minutes after the first."""
    names = [f"training-{number}" for number in range(8)]

    def creates(name: str) -> Step:
        def create(cluster: NodeCluster) -> None:
            clock.advance(chain.GRACE / 2)
            for pod in healthy(name):
                cluster.put(pod)

        return create

    cluster = NodeCluster(
        [training(number) for number in range(8)], [], [creates(name) for name in names], clock.advance
    )
    assert run(settings(max_failed=0), cluster).values["nodes"]["passed"] == 8
    began = clock.now
    cluster = NodeCluster(
        [training(number) for number in range(8)], [], [creates(name) for name in names[:4]], clock.advance
    )
    assert run(settings(max_failed=4), cluster).values["nodes"] == {
        "passed": 4,
        "waiting": 0,
        "failed": 4,
        "unknown": 0,
    }
    assert clock.now - began < 4 * chain.GRACE


def test_a_stalled_rollout_is_reported_and_has_a_timeout(clock: Time) -> None:
    cluster = fleet(2, clock=clock, script=[])
    cluster.put(daemon_set("device-plugin", s.plugin("x"), 2, updated=1))
    began = clock.now
    result = run(settings("devices"), cluster)
    assert result.values["nodes"]["passed"] == 2
    assert result.warnings == [
        "gate devices stopped waiting for DaemonSet device-plugin: 1 of 2 pods have its latest template"
    ]
    assert 100 <= clock.now - began < 200


def test_a_feature_discovery_without_a_pod_is_waited_for_and_reported(clock: Time) -> None:
    """Nothing else reports that the GPU labels of a node without this pod are missing."""
    found = s.discovery("training-0")
    without_pod = daemon_set("gpu-feature-discovery", found, 1)
    without_pod["status"]["currentNumberScheduled"] = 0
    complete = daemon_set("gpu-feature-discovery", found, 1)
    labeled = training(0, allocatable=8)
    labeled["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3"
    later: list[Step] = [
        lambda cluster: None,
        lambda cluster: cluster.put(complete),
        lambda cluster: cluster.put(found),
        lambda cluster: cluster.put(labeled),
    ]
    for script, warnings in (
        ([], ["gate devices stopped waiting for DaemonSet gpu-feature-discovery: 0 of 1 pods exist"]),
        (later, []),
    ):
        cluster = fleet(1, clock=clock, script=script)
        cluster.put(without_pod)
        began = clock.now
        result = run(settings("devices"), cluster)
        assert (result.values["nodes"]["passed"], result.warnings) == (1, warnings)
        assert (clock.now - began >= chain.GRACE) is bool(warnings)
        assert cluster.script == []
