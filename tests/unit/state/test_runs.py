# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of a Job, from the Job and its pods as the API returns them."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._state import runs

Obj = dict[str, t.Any]
COMPLETE = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
FAILED = {
    "status": {
        "conditions": [
            {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached it"}
        ]
    }
}


def pod(name: str = "p", created: str = "2026-01-01T00:00:00Z", **status: t.Any) -> Obj:
    spec = {"nodeName": "n", "containers": [{"name": "main"}, {"name": "side"}]}
    return {"metadata": {"name": name, "uid": name, "creationTimestamp": created}, "spec": spec, "status": status}


def ended(code: int, name: str = "main", **more: t.Any) -> Obj:
    return {"name": name, "state": {"terminated": {"exitCode": code, "reason": "Error"} | more}}


def test_a_job_without_pods() -> None:
    assert (runs.progress({}, []).stage, runs.progress({}, []).reason) == (runs.CREATED, "it has no pod yet")
    assert runs.progress(FAILED, []).reason == "BackoffLimitExceeded: Job has reached it"
    assert runs.progress(COMPLETE, []).stage == runs.SUCCEEDED


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"containerStatuses": [ended(3)]}, "container main ended with exit code 3"),
        (
            {"containerStatuses": [ended(137, reason="OOMKilled")]},
            "container main ended with exit code 137 (OOMKilled)",
        ),
        (
            {"initContainerStatuses": [ended(2, "first")], "containerStatuses": [{"name": "main", "state": {}}]},
            "container first ended with exit code 2",
        ),
        ({"reason": "UnexpectedAdmissionError", "message": "no device"}, "UnexpectedAdmissionError: no device"),
        ({}, "BackoffLimitExceeded: Job has reached it"),
    ],
)
def test_the_reason_of_a_failed_job_comes_from_its_pod_if_possible(status: Obj, reason: str) -> None:
    assert runs.progress(FAILED, [pod(**status)]).reason == reason


def test_a_job_failed_by_its_pod_failure_policy_has_its_own_reason() -> None:
    why = {
        "reason": "PodFailurePolicy",
        "message": "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0",
    }
    job = {"status": {"conditions": [{"type": "Failed", "status": "True"} | why]}}
    for pods in ([], [pod(containerStatuses=[ended(137)])]):
        assert runs.progress(job, pods).reason == f"PodFailurePolicy: {why['message']}"


def test_progress_is_that_of_the_newest_pod_and_the_requested_container() -> None:
    old, new = (
        pod("old", containerStatuses=[ended(1)]),
        pod("new", "2026-01-02T00:00:00Z", containerStatuses=[ended(0), ended(4, "side")]),
    )
    found = runs.progress(COMPLETE, [new, old], "side")
    assert (found.pod, found.container, found.exit_code) == ("new", "side", 4)
    assert runs.progress(COMPLETE, [new, old]).exit_code == 0


def test_the_owning_job_of_a_pod_is_found() -> None:
    assert (
        runs.owner({"metadata": {"ownerReferences": [{"kind": "Node", "name": "x"}, {"kind": "Job", "name": "j"}]}})
        == "j"
    )
    assert runs.owner({}) == ""
