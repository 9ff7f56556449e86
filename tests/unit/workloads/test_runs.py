# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads that run once, on a cluster in memory that creates pods of Jobs and advances the time with each sleep."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Conflict,
    ManyFaults,
    NotFound,
    Unreachable,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.jobs import RUN_LABEL, job_of
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.judgement import Checks
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads import runs
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions, Workload, run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import warning
from ansible_collections.hwaccel.gpu.tests.unit.clusters.jobs import JobCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request

Obj = dict[str, t.Any]

NO_ROOM = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
}
PULLING = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}
RUNNING_CONTAINER = {"name": "main", "state": {"running": {}}}
PENDING = {"phase": "Pending", "conditions": [NO_ROOM]}
STARTING = {"phase": "Pending", "containerStatuses": [PULLING]}
RUNNING = {"phase": "Running", "containerStatuses": [RUNNING_CONTAINER]}
SUCCEEDED = {
    "phase": "Succeeded",
    "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}],
}
FAILED = {
    "phase": "Failed",
    "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 7, "reason": "Error"}}}],
}
#: Course of a workload by its name: (seconds after its creation, status of its pod), in order.
COURSES: dict[str, list[tuple[float, Obj]]] = {
    "succeeding": [(0, PENDING), (1, STARTING), (2, RUNNING), (5, SUCCEEDED)],
    "failing": [(0, RUNNING), (2, FAILED)],
    "unscheduled": [(0, PENDING)],
    "unpulled": [(0, STARTING)],
    "endless": [(0, RUNNING)],
}


class Jobs(JobCluster):
    """A cluster where the status of a pod depends on the time."""

    def __init__(self) -> None:
        super().__init__()
        self.log = "Test PASSED\n"
        self.max_jobs = 0
        self.on("create", self._count, kind="Job", after=True)

    def log_of(self, pod: str, container: str, previous: bool) -> str:
        if container != "main":
            raise NotFound(f"container {container} does not exist")
        return self.log

    def job_status(self, name: str, job: Obj) -> Obj:
        kinds = {"Succeeded": "Complete", "Failed": "Failed"}
        phase = self._status(name)["phase"]
        ended = {"type": kinds.get(phase, ""), "status": "True", "reason": "BackoffLimitExceeded"}
        return {"conditions": [ended] if phase in kinds else []}

    def pod_status(self, name: str, job: Obj) -> tuple[str, Obj]:
        status = self._status(name)
        return "" if status is PENDING else "gpu-1", status

    def pod(self, name: str, job: Obj) -> Obj:
        """The pod, with an additional event of the kubelet."""
        result = super().pod(name, job)
        involved = {"kind": "Pod", "uid": result["metadata"]["uid"]}
        self.put(warning("n", name, involved, "Failed", "the registry denies it", lastTimestamp="1"))
        return result

    def _status(self, name: str) -> Obj:
        return [status for after, status in COURSES[name.rpartition("-")[0]] if self.age(name) >= after][-1]

    def _count(self, _request: Request) -> None:
        self.max_jobs = max(self.max_jobs, len(self.jobs))


@pytest.fixture
def cluster() -> Jobs:
    return Jobs()


def pod(name: str, **checks: t.Any) -> Workload:
    definition = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "sample:1"}]},
    }
    return Workload(name, definition, checks=Checks(**{key: tuple(value) for key, value in checks.items()}))


def go(
    cluster: Jobs,
    *workloads: Workload,
    slice_of: float | None = None,
    resume: dict[str, t.Any] | None = None,
    **options: t.Any,
) -> Outcome:
    return run(cluster, list(workloads), RunOptions(namespace="n", **options), cluster.clock(slice_of), resume=resume)


def only(outcome: Outcome) -> Obj:
    (row,) = outcome.values["workloads"]
    return row


def test_a_successful_run_is_reported_and_deleted(cluster: Jobs) -> None:
    outcome = go(cluster, pod("succeeding", patterns=["^Test (?P<verdict>PASSED)$"]))
    assert outcome.failure is None and outcome.changed
    row = only(outcome)
    assert (row["state"], row["node"], row["exit_code"], row["log"]) == ("succeeded", "gpu-1", 0, "Test PASSED\n")
    assert row["captured"] == {"verdict": "PASSED"}
    assert outcome.values["states"] == {"succeeded": 1, "failed": 0, "unschedulable": 0, "timeout": 0}
    assert cluster.jobs == {}
    stages = [line.partition(", ")[2].partition(":")[0] for line in outcome.progress]
    assert stages == ["1 pending", "1 starting", "1 running", ""]
    assert "Insufficient nvidia.com/gpu" in outcome.progress[0]


@pytest.mark.parametrize(
    ("name", "state", "reason"),
    [
        ("failing", "failed", "container main ended with exit code 7"),
        (
            "unscheduled",
            "unschedulable",
            "it was not scheduled within 60 s: Unschedulable: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
        ),
        (
            "unpulled",
            "timeout",
            "it did not start within 300 s: container main: ImagePullBackOff: not found; Failed: the registry denies it",
        ),
        ("endless", "timeout", "it did not end within 600 s: it is Running"),
    ],
)
def test_each_result_has_a_state_and_a_reason(cluster: Jobs, name: str, state: str, reason: str) -> None:
    outcome = go(cluster, pod(name))
    assert (only(outcome)["state"], only(outcome)["reason"]) == (state, reason)
    assert f"workload {name}: {state}" in str(outcome.failure) and reason in str(outcome.failure)
    assert cluster.jobs == {}


def test_an_allowed_state_fails_nothing(cluster: Jobs) -> None:
    outcome = go(cluster, pod("unscheduled"), pod("succeeding"), fail_on=frozenset({"failed", "timeout"}))
    assert outcome.failure is None
    assert outcome.values["states"] == {"succeeded": 1, "failed": 0, "unschedulable": 1, "timeout": 0}


@pytest.mark.parametrize(
    ("checks", "reason"),
    [
        ({"patterns": ["Test FINE"]}, "its log has no match for 'Test FINE'"),
        ({"forbidden": ["code [0-9]+"]}, "its log has 'code 802', which matches 'code [0-9]+'"),
        ({"queries": ["json[0].gpus == `8`"]}, "json[0].gpus == `8` is False"),
        ({"queries": ["length(node) > `99`", "exit_code == `0`"]}, "length(node) > `99` is False"),
        ({"queries": ["sum(lines)"]}, "sum(lines): "),
    ],
)
def test_a_log_without_the_expected_content_is_a_failure(
    cluster: Jobs, checks: dict[str, list[str]], reason: str
) -> None:
    cluster.log = 'warning: code 802\n{"gpus": 4}\nTest PASSED\n{not json}\n'
    row = only(go(cluster, pod("succeeding", **checks)))
    assert row["state"] == "failed"
    assert row["reason"].startswith(reason)
    assert row["json"] == [{"gpus": 4}]
    assert only(go(cluster, pod("succeeding", queries=["json[0].gpus == `4`"])))["state"] == "succeeded"


def test_the_number_of_parallel_workloads_is_limited(cluster: Jobs) -> None:
    workloads = [Workload(f"w{number}", pod("succeeding").definition) for number in range(7)]
    outcome = go(cluster, *workloads, parallel=3)
    assert [row["name"] for row in outcome.values["workloads"]] == [workload.name for workload in workloads]
    assert outcome.values["states"]["succeeded"] == 7
    assert cluster.max_jobs == 3


def test_a_run_continues_in_the_next_slice_with_the_same_jobs(cluster: Jobs) -> None:
    workloads = (pod("succeeding"), pod("failing"))
    outcome = go(cluster, *workloads, slice_of=2)
    created = {job["metadata"]["name"] for job in cluster.jobs.values()}
    assert outcome.pending is not None and len(created) == 2
    while outcome.pending is not None:
        assert outcome.failure is None
        outcome = go(cluster, *workloads, slice_of=2, resume=outcome.pending)
    assert [row["state"] for row in outcome.values["workloads"]] == ["succeeded", "failed"]
    assert sum(write.startswith("create") for write in cluster.writes) == 2


def test_a_job_whose_create_request_had_no_answer_belongs_to_the_run(cluster: Jobs) -> None:
    cluster.on("create", lambda request: cluster.create(request.body, request.resource), times=1)
    # The server stores it as "1": the stored object differs in form from the sent one, but is the same.
    workload = pod("succeeding")
    workload.definition["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}  # type: ignore[index]
    assert only(go(cluster, workload))["state"] == "succeeded"
    assert cluster.jobs == {}


def test_a_job_is_deleted_by_its_uid_so_that_the_request_can_be_retried(cluster: Jobs) -> None:
    go(cluster, pod("succeeding"), pod("failing"), pod("endless"))
    uids = [request.body["preconditions"]["uid"] for request in cluster.sent("delete")]
    assert len(set(uids)) == 3 and all(uids)


def test_a_conflict_of_a_quota_is_reported(cluster: Jobs) -> None:
    why = "Operation cannot be fulfilled on resourcequotas"
    cluster.fail(Conflict("creating Job n/succeeding", why=why, body={"reason": "Conflict"}), "create")
    with pytest.raises(Conflict, match="resourcequotas"):
        go(cluster, pod("succeeding"))


def test_a_job_is_built_once_and_not_again_in_each_slice(cluster: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def recording(workload: str, *arguments: t.Any) -> Obj:
        built.append(workload)
        return job_of(workload, *arguments)

    monkeypatch.setattr(runs, "job_of", recording)
    outcome = go(cluster, pod("succeeding"), pod("failing"), slice_of=2, parallel=1)
    assert built == ["succeeding", "failing", "succeeding"], "all are checked before the first is created"
    while outcome.pending is not None:
        outcome = go(cluster, pod("succeeding"), pod("failing"), slice_of=2, parallel=1, resume=outcome.pending)
    assert built == ["succeeding", "failing", "succeeding", "failing"]


def test_completed_workloads_are_passed_to_the_callback_and_its_result_is_kept(cluster: Jobs) -> None:
    passed: list[list[str]] = []

    def ended(rows: list[Obj]) -> list[Obj]:
        passed.append([row["name"] for row in rows])
        return [{"name": row["name"], "state": row["state"], "kept": True} for row in rows]

    workloads = [pod("succeeding"), pod("failing")]
    first = run(cluster, workloads, RunOptions(namespace="n"), cluster.clock(4), ended=ended)
    assert passed == [["failing"]]
    assert first.pending is not None and first.pending["done"] == {
        "failing": {"name": "failing", "state": "failed", "kept": True}
    }
    last = run(
        cluster,
        workloads,
        RunOptions(namespace="n", parallel=1, fail_on=frozenset()),
        cluster.clock(),
        resume=first.pending,
        ended=ended,
    )
    assert passed == [["failing"], ["succeeding"]]
    assert [row["kept"] for row in last.values["workloads"]] == [True, True]


def test_after_a_lost_connection_running_jobs_are_deleted_as_far_as_possible(cluster: Jobs) -> None:
    cluster.fail(Unreachable("listing jobs", "the server"), "list")
    with pytest.raises(Unreachable):
        go(cluster, pod("succeeding"))
    assert [write.partition(" ")[0] for write in cluster.writes] == ["create", "delete"]


def test_jobs_of_a_killed_run_are_removed_by_the_cluster(cluster: Jobs) -> None:
    """These two fields make the cluster stop and delete the Jobs."""
    go(cluster, pod("succeeding"), slice_of=1)
    (job,) = cluster.jobs.values()
    assert job["spec"]["ttlSecondsAfterFinished"] == 300
    assert job["spec"]["activeDeadlineSeconds"] == 60 + 300 + 600 + 60
    assert (job["spec"]["backoffLimit"], job["spec"]["template"]["spec"]["restartPolicy"]) == (0, "Never")
    assert job["metadata"]["labels"][RUN_LABEL] == job["spec"]["template"]["metadata"]["labels"][RUN_LABEL]


def test_a_job_keeps_the_values_of_its_manifest(cluster: Jobs) -> None:
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main"}]},
    }
    spec = {"backoffLimit": 3, "ttlSecondsAfterFinished": 5, "template": template}
    definition = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "succeeding", "namespace": "n"},
        "spec": spec,
    }
    go(cluster, Workload("job", definition), slice_of=1)
    (job,) = cluster.jobs.values()
    assert (job["spec"]["backoffLimit"], job["spec"]["ttlSecondsAfterFinished"]) == (3, 5)
    assert job["spec"]["template"]["metadata"]["labels"]["app"] == "x"
    assert "labels" not in definition["metadata"], "the input is not modified"


def test_all_faults_are_reported_before_anything_runs(cluster: Jobs) -> None:
    always = pod("always")
    always.definition["spec"]["restartPolicy"] = "Always"
    service = Workload("service", {"apiVersion": "v1", "kind": "Service"})
    with pytest.raises(ManyFaults) as caught:
        go(cluster, pod("twice"), pod("twice"), always, service, pod("odd", patterns=["("], queries=["a["]))
    message = str(caught.value)
    for part in (
        "2 workloads are called twice",
        "always can never end",
        "service is neither a Pod",
        "'(' is not a regular",
        "'a[' is not a JMESPath",
    ):
        assert part in message, part
    assert cluster.writes == []
    with pytest.raises(ManyFaults, match="parallel is 0"):
        RunOptions(parallel=0)


def test_check_mode_creates_nothing_and_names_missing_permissions(cluster: Jobs) -> None:
    options = RunOptions(namespace="n")
    outcome = run(cluster, [pod("succeeding")], options, cluster.clock(), check_mode=True)
    assert outcome.changed and outcome.failure is None and cluster.writes == []
    cluster.forbidden = {("delete", "jobs"), ("get", "pods/log")}
    outcome = run(cluster, [pod("succeeding")], options, cluster.clock(), check_mode=True)
    assert not outcome.changed
    assert [(right["verb"], right["resource"]) for right in outcome.values["missing_rights"]] == [
        ("delete", "jobs"),
        ("get", "pods/log"),
    ]
    assert "permission to delete jobs.batch is missing" in str(outcome.failure)


def test_a_deleted_job_is_reported(cluster: Jobs) -> None:
    outcome = go(cluster, pod("endless"), slice_of=1)
    cluster.objects = {place: obj for place, obj in cluster.objects.items() if place[0] not in ("jobs", "pods")}
    outcome = go(cluster, pod("endless"), resume=outcome.pending)
    assert only(outcome)["reason"] == "its Job was deleted"
