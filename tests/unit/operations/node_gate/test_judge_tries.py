# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only attempts of a container that began while the gate observes it count."""

from __future__ import annotations

import functools
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.judge import STALE
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import (
    healthy,
    settings,
    training,
    with_crashed_driver,
)


def test_a_failure_before_the_run_gets_one_more_attempt(clock: Time) -> None:
    """The node was repaired before the run, but the container is still in back-off. It starts during the run, and passes."""
    nodes, pods = [training(0)], with_crashed_driver("training-0")

    def starts(cluster: NodeCluster) -> None:
        for pod in pods:
            cluster.remove("Pod", pod["metadata"]["name"])
        for pod in healthy("training-0"):
            cluster.put(pod)

    cluster = NodeCluster(nodes, pods, [lambda cluster: None, starts], clock.advance)
    assert run(settings(max_failed=0), cluster).values["nodes"]["passed"] == 1
    stays = NodeCluster(nodes, pods, on_idle=clock.advance)
    began = clock.now
    assert run(settings(max_failed=0), stays).values["nodes"]["failed"] == 1
    assert clock.now - began < STALE + 60


def test_an_attempt_that_began_before_the_gate_does_not_count(clock: Time) -> None:
    """The node was repaired before the run, during an attempt: that attempt still fails, and the next one passes."""
    nodes, pods = [training(0)], healthy("training-0")
    driver, validator = pods[0], pods[2]
    metadata = driver["metadata"]

    def becomes(status: s.Obj, *, ready: bool) -> t.Callable[[NodeCluster], None]:
        def change(cluster: NodeCluster) -> None:
            cluster.put(s.driver("training-0", status) | {"metadata": metadata})
            cluster.put(
                s.validator("training-0", s.done() if ready else s.running(ready=False))
                | {"metadata": validator["metadata"]}
            )

        return change

    last = s.done(1, restarts=4)
    script = [
        becomes(last, ready=False),
        becomes(s.crash_loop("d", 4), ready=False),
        becomes(s.running(restarts=5), ready=True),
    ]
    cluster = NodeCluster(nodes, pods, script, clock.advance)
    becomes(s.running(ready=False, restarts=4), ready=False)(cluster)
    assert run(settings(max_failed=0), cluster).values["nodes"]["passed"] == 1
    script = [becomes(last, ready=False), becomes(s.crash_loop("d", 5), ready=False)]
    cluster = NodeCluster(nodes, pods, script, clock.advance)
    becomes(s.running(ready=False, restarts=4), ready=False)(cluster)
    began = clock.now
    assert run(settings(max_failed=0), cluster).values["nodes"]["failed"] == 1
    assert clock.now - began < 60, "an attempt that the gate has observed from its start decides"


@pytest.mark.parametrize(("reason_observed", "decided"), [("ImagePullBackOff", False), ("ErrImagePull", True)])
def test_only_a_pull_during_the_gate_is_an_immediate_failure(clock: Time, reason_observed: str, decided: bool) -> None:
    """The kubelet reports ErrImagePull after an attempt, and ImagePullBackOff until the next one."""
    pods = [
        s.driver("training-0", s.waiting("ErrImagePull", "manifest unknown")),
        s.validator("training-0", s.running(ready=False)),
    ]
    later = [
        s.driver("training-0", s.waiting(reason, "manifest unknown")) | {"metadata": pods[0]["metadata"]}
        for reason in ("ImagePullBackOff", reason_observed)
    ]
    cluster = NodeCluster(
        [training(0)], pods, [functools.partial(NodeCluster.put, obj=obj) for obj in later], clock.advance
    )
    began = clock.now
    assert run(settings(max_failed=0), cluster).values["nodes"]["failed"] == 1
    assert (clock.now - began < 60) is decided


def test_crashes_during_the_driver_load_do_not_count_once_it_is_ready(clock: Time) -> None:
    """This holds also in a later slice, and without an observation between the driver's readiness and the next crash."""
    before, after, last = (f"2026-11-20T10:0{minute}:00Z" for minute in (0, 1, 2))
    loading = [s.driver("training-0", s.running(ready=False, started=False)), s.toolkit("training-0", since=before)]
    validator = s.validator("training-0", s.crash_loop("driver-validation", 3, ended=before))
    cluster = NodeCluster([training(0)], [*loading, validator], on_idle=clock.advance)
    first = run(settings(), cluster, deadline=clock.monotonic())
    assert first.pending is not None
    for old, now in (
        (loading[0], s.driver("training-0", since=after)),
        (validator, s.validator("training-0", s.crash_loop("d", 4, ended=last))),
    ):
        now["metadata"] = old["metadata"] | {"labels": {}}
        cluster.put(now)
    second = run(settings(), cluster, deadline=clock.monotonic() + 5, resume=json.loads(json.dumps(first.pending)))
    assert second.failure is None
    assert "crashed once" in second.progress[-1]
