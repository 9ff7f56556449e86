# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of a gate on a failed node: from events, logs and the state of the cluster."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.report import _duration
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import warning
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import (
    daemon_set,
    fleet,
    settings,
    training,
    with_crashed_driver,
)


def test_the_reason_of_a_pod_that_cannot_be_created_comes_from_an_event(clock: Time) -> None:
    cluster = NodeCluster([training(0)], [s.driver("training-0"), s.toolkit("training-0")], on_idle=clock.advance)
    message = 'pods "validator-x" is forbidden: violates PodSecurity "restricted:latest": privileged'
    incomplete, complete = daemon_set("validator", s.validator("x"), 1), daemon_set("toolkit", s.toolkit("x"), 1)
    incomplete["status"]["currentNumberScheduled"] = 0
    for number, (owner, text) in enumerate(((incomplete, message), (complete, "already repaired"))):
        owner["metadata"]["uid"] = f"uid-{number}"
        cluster.put(owner)
        cluster.put(
            warning(
                s.NAMESPACE,
                f"e{number}",
                {"kind": "DaemonSet", "uid": f"uid-{number}"},
                "FailedCreate",
                text,
                lastTimestamp=f"2026-11-20T10:0{number}:00Z",
            )
        )
    result = run(settings(max_failed=0), cluster)
    assert (
        'no validator pod is on the node; FailedCreate: pods "validator-x" is forbidden'
        in result.values["faults"][0]["reason"]
    )


def test_logs_are_only_fetched_for_a_sample(clock: Time) -> None:
    cluster = fleet(30, set(range(10)), clock)
    result = run(settings(sample=4), cluster)
    assert len(result.values["faults"]) == 4
    assert len(result.values["failed_nodes"]) == 10
    assert len({request.name for request in cluster.sent("logs")}) == 4


def test_the_next_step_depends_on_the_log(clock: Time) -> None:
    cluster = fleet(16, {3}, clock)
    cluster.logs = lambda *args, **kwargs: "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"  # type: ignore[method-assign]
    assert "Secure Boot" in run(settings(), cluster).values["faults"][0]["next_step"]


def test_facts_of_the_cluster_have_precedence_over_hints_from_the_log(clock: Time) -> None:
    cluster = NodeCluster(
        [training(0, kernel="6.8.0-45-generic")], with_crashed_driver("training-0"), on_idle=clock.advance
    )
    cluster.logs = lambda *args, **kwargs: "E: Unable to locate package linux-modules-nvidia-580-6.8.0-45-generic"  # type: ignore[method-assign]
    assert "choose the image for the running kernel" in run(settings(), cluster).values["faults"][0]["next_step"]


@pytest.mark.parametrize(("seconds", "expected"), [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (1800, "30 min")])
def test_durations_are_shown_in_minutes_from_two_minutes_on(seconds: float, expected: str) -> None:
    assert _duration(seconds) == expected
