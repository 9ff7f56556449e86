# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdict on the GPUs of a node from the results of two pods."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.allocations import Ask
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import allocation_judgement as judgement
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.whole_nodes_report import Finding
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.contests import Result

RESOURCE = "nvidia.com/gpu"
REFUSED = f"0/3 nodes are available: 1 Insufficient {RESOURCE}."
GOOD = {"state": "succeeded", "reason": "", "log": "GPU 0: NVIDIA L4 (UUID: GPU-1)\ndevice GPU-1\nTest PASSED\n"}
DISRUPTED = "PodFailurePolicy: Pod n/v-1-x has condition DisruptionTarget matching FailJob rule at index 0"


def found(second: dict[str, t.Any] | None, *, first: dict[str, t.Any] | None = None, refused: str = REFUSED) -> Finding:
    return judgement.found(
        Result(GOOD | (first or {}), second, refused, False), Ask({RESOURCE: 1}, 1), exclusivity=True
    )


def test_expected_results_pass() -> None:
    assert found(GOOD).state == "passed"


@pytest.mark.parametrize("pod", ["first", "second"])
def test_a_preempted_pod_is_no_failure(pod: str) -> None:
    preempted = {"state": "failed", "reason": DISRUPTED}
    finding = found(GOOD | preempted) if pod == "second" else found(GOOD, first=preempted)
    assert (finding.state, finding.reason) == ("busy", f"its pod was preempted: {DISRUPTED}")


def test_a_failure_of_the_pod_with_all_gpus_is_reported_with_its_reason() -> None:
    finding = found(None, first={"state": "timeout", "reason": "it did not end in 300 s"})
    assert (finding.state, finding.reason) == ("failed", "the pod with all GPUs: it did not end in 300 s")


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (None, "the pod with all GPUs ended before the second pod was created"),
        (
            GOOD | {"state": "failed", "reason": "exit code 1"},
            "the second pod, after the first one had ended: exit code 1",
        ),
        (
            GOOD | {"log": "GPU 0: NVIDIA L4 (UUID: GPU-1)\n"},
            "the second pod, after the first one had ended: no CUDA kernel ran on GPU-1",
        ),
        (
            GOOD | {"state": "unschedulable", "reason": REFUSED},
            f"the second pod did not start after the first one had ended: {REFUSED}",
        ),
    ],
)
def test_a_failure_of_the_second_pod_is_reported(second: dict[str, t.Any] | None, message: str) -> None:
    finding = found(second)
    assert (finding.state, finding.reason) == ("failed", message) and finding.next_step


def test_a_second_pod_that_never_waited_is_reported() -> None:
    assert (
        found(GOOD, refused="").reason
        == "the second pod was never Pending because of missing GPUs: it ran after the first one had ended"
    )
