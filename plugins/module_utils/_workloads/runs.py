# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads that run once: started as Jobs, watched, judged by their logs, and deleted."""

from __future__ import annotations

import collections
import collections.abc as c
import contextlib
import dataclasses
import secrets
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import rights
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Conflict,
    Fault,
    HwaccelError,
    ManyFaults,
    NotFound,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.jobs import RUN_LABEL, job_of
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import judgement, runs
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.judgement import Checks
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.runs import Progress
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads import evidence
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads import runs_report as report
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs_report import (
    FAILED,
    STATES,
    SUCCEEDED,
    TIMEOUT,
    UNSCHEDULABLE,
)

#: Kinds that every Kubernetes has, so that no discovery is needed.
_JOB = Resource("batch", "v1", "Job", "jobs", True)
_POD = Resource("", "v1", "Pod", "pods", True)
_RIGHTS: tuple[rights.Question, ...] = (
    ("create", _JOB, ""),
    ("list", _JOB, ""),
    ("delete", _JOB, ""),
    ("list", _POD, ""),
    ("get", _POD, "log"),
)

#: Seconds that a run waits at its end until its pods are gone.
_GONE_WITHIN = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 2.0
_LOG_LINES = 2000


@dataclasses.dataclass(frozen=True)
class Workload:
    """name: unique in its run. definition: a Pod or a Job. container: the one whose log is judged, "" for the first."""

    name: str
    definition: c.Mapping[str, t.Any]
    container: str = ""
    checks: Checks = dataclasses.field(default_factory=Checks)


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """schedule_timeout, start_timeout, timeout: seconds until it is scheduled, then until it has started, then until it has ended."""

    namespace: str = "default"
    parallel: int = 10
    schedule_timeout: float = 60.0
    start_timeout: float = 300.0
    timeout: float = 600.0
    fail_on: frozenset[str] = frozenset(STATES) - {SUCCEEDED}

    def __post_init__(self) -> None:
        wrong = [
            name for name in ("parallel", "schedule_timeout", "start_timeout", "timeout") if getattr(self, name) <= 0
        ]
        if wrong:
            raise ManyFaults(
                [
                    Fault(f"{name} is {getattr(self, name):g}", name, "no workload could run", "set a number above 0")
                    for name in wrong
                ]
            )

    @classmethod
    def of(cls, params: c.Mapping[str, t.Any]) -> RunOptions:
        """From the parameters of a module that runs workloads. fail_on may be missing."""
        given: dict[str, t.Any] = {
            name: params[name] for name in ("namespace", "parallel", "schedule_timeout", "start_timeout", "timeout")
        }
        if "fail_on" in params:
            given["fail_on"] = frozenset(params["fail_on"])
        return cls(**given)

    @property
    def longest(self) -> float:
        return self.schedule_timeout + self.start_timeout + self.timeout


@dataclasses.dataclass
class _Active:
    """stage_since: start of the workload's stage (pending, starting, running) in seconds since 1970. uid: of the Job, "" until it was observed."""

    job: str
    namespace: str
    stage: str
    stage_since: float
    uid: str = ""


#: Rows of workloads in the format of the result.
Rows = list[dict[str, t.Any]]


def _as_they_are(rows: Rows) -> Rows:
    return rows


class Run:
    """The workloads of one task, across its slices."""

    def __init__(
        self,
        client: Client,
        workloads: c.Sequence[Workload],
        options: RunOptions,
        clock: Clock,
        resume: dict[str, t.Any],
        ended: c.Callable[[Rows], Rows] = _as_they_are,
    ) -> None:
        self.client, self.options, self.clock, self.hand_over = client, options, clock, ended
        self.workloads = {workload.name: workload for workload in workloads}
        self.id: str = resume.get("id") or secrets.token_hex(5)
        self.line: str = resume.get("line", "")
        self.active = {name: _Active(**fields) for name, fields in resume.get("active", {}).items()}
        self.done: dict[str, dict[str, t.Any]] = dict(resume.get("done", {}))
        #: Namespaces in which this run created Jobs.
        self.namespaces: set[str] = set(resume.get("namespaces", ()))
        self.ended: float = resume.get("ended", 0.0)
        self.lines: list[str] = []

    @property
    def waiting(self) -> list[str]:
        return [name for name in self.workloads if name not in self.active and name not in self.done]

    @property
    def longest(self) -> float:
        """Maximum seconds of a workload."""
        return self.options.longest

    def pack(self) -> dict[str, t.Any]:
        active = {name: dataclasses.asdict(one) for name, one in self.active.items()}
        return {
            "id": self.id,
            "line": self.line,
            "active": active,
            "done": self.done,
            "namespaces": sorted(self.namespaces),
            "ended": self.ended,
        }

    def job(self, name: str) -> dict[str, t.Any]:
        """Raises HwaccelError for a definition that cannot be run."""
        return job_of(name, self.workloads[name].definition, self.id, self.options.namespace, self.longest)

    def go_on(self) -> bool:
        """Runs until all have ended and are gone. False if the slice ends before."""
        pause = _FIRST_PAUSE
        while True:
            self._start()
            stages = self._look()
            self._show(stages)
            if not self.active and not self.waiting and self._gone():
                return True
            if self.clock.slice_over(pause):
                return False
            self.clock.sleep(pause)
            pause = min(pause * 1.6, _LONGEST_PAUSE)

    def abandon(self) -> None:
        """Deletes running workloads as far as the server allows. The cluster itself ends and deletes the others."""
        for one in self.active.values():
            with contextlib.suppress(HwaccelError):
                self._delete(one)

    def _start(self) -> None:
        for name in self.waiting[: max(0, self.options.parallel - len(self.active))]:
            job = self.job(name)
            metadata = job["metadata"]
            # This is recorded before the request, so that a Job is also deleted if its creation got no answer.
            self.active[name] = _Active(metadata["name"], metadata["namespace"], runs.PENDING, self.clock.now())
            self.namespaces.add(metadata["namespace"])
            self._create(job, self.active[name])

    def _create(self, job: dict[str, t.Any], one: _Active) -> None:
        try:
            one.uid = str(
                self.client.create(job, _JOB, field_manager="hwaccel.gpu/workload_run").object["metadata"].get("uid")
                or ""
            )
        except Conflict as error:
            # Its name is unique to this run, so an attempt without an answer created it. A concurrent change of a quota is a conflict too.
            if error.body.get("reason") != "AlreadyExists":
                raise

    def _look(self) -> dict[str, Progress]:
        """Settles and returns ended workloads, and the progress of the others."""
        found: dict[str, Progress] = {}
        known = set(self.done)
        jobs, pods = self._read()
        for name, one in list(self.active.items()):
            place = (one.namespace, one.job)
            if place not in jobs:
                self._settle(name, FAILED, Progress(runs.FAILED, "its Job was deleted"), "")
                continue
            one.uid = str(jobs[place]["metadata"].get("uid") or "")
            observed = runs.progress(jobs[place], pods[place], self.workloads[name].container)
            if observed.stage in (runs.SUCCEEDED, runs.FAILED):
                self._judge(name, observed)
            elif late := self._late(one, observed):
                self._settle(name, late[0], dataclasses.replace(observed, reason=late[1]), self._log(one, observed))
            else:
                found[name] = observed
        if ended := [row for name, row in self.done.items() if name not in known]:
            self.done.update({row["name"]: row for row in self.hand_over(ended)})
        return found

    def _read(self) -> tuple[dict[tuple[str, str], dict[str, t.Any]], dict[tuple[str, str], list[dict[str, t.Any]]]]:
        jobs: dict[tuple[str, str], dict[str, t.Any]] = {}
        pods: dict[tuple[str, str], list[dict[str, t.Any]]] = collections.defaultdict(list)
        selector = f"{RUN_LABEL}={self.id}"
        for namespace in sorted({one.namespace for one in self.active.values()}):
            # Jobs are listed first, so that the pods of an ended Job are included and show the cause.
            for job in self.client.list(_JOB, namespace, label_selector=selector).items:
                jobs[namespace, job["metadata"]["name"]] = job
            for pod in self.client.list(_POD, namespace, label_selector=selector).items:
                pods[namespace, runs.owner(pod)].append(pod)
        return jobs, pods

    def _late(self, one: _Active, observed: Progress) -> tuple[str, str] | None:
        """(state, reason) if it exceeds the timeout of a stage."""
        stage = runs.PENDING if observed.stage == runs.CREATED else observed.stage
        now = self.clock.now()
        if stage != one.stage:
            one.stage, one.stage_since = stage, now
        options = self.options
        limit = {
            runs.PENDING: options.schedule_timeout,
            runs.STARTING: options.start_timeout,
            runs.RUNNING: options.timeout,
        }[stage]
        if now - one.stage_since < limit:
            return None
        if observed.stage == runs.PENDING:
            return UNSCHEDULABLE, f"it was not scheduled within {limit:.0f} s: {observed.reason}"
        what = {
            runs.CREATED: "no pod was created",
            runs.STARTING: "it did not start",
            runs.RUNNING: "it did not end",
        }[observed.stage]
        event = "" if observed.stage == runs.RUNNING else self._event(one.namespace, observed.uid or one.uid)
        return TIMEOUT, "; ".join(
            part
            for part in (
                f"{what} within {limit:.0f} s: {observed.reason}"
                if observed.reason
                else f"{what} within {limit:.0f} s",
                event,
            )
            if part
        )

    def _judge(self, name: str, observed: Progress) -> None:
        workload = self.workloads[name]
        log = self._log(self.active[name], observed)
        reasons = [observed.reason] if observed.stage == runs.FAILED else []
        if not reasons:
            reasons = judgement.judge(judgement.observations(log, observed.node, observed.exit_code), workload.checks)
        self._settle(
            name, FAILED if reasons else SUCCEEDED, dataclasses.replace(observed, reason="; ".join(reasons)), log
        )

    def _settle(self, name: str, state: str, observed: Progress, log: str) -> None:
        found = judgement.observations(log, observed.node, observed.exit_code)
        self.done[name] = {
            "name": name,
            "state": state,
            "reason": observed.reason,
            "node": observed.node,
            "pod": observed.pod,
            "exit_code": observed.exit_code,
            "log": log,
            "json": found["json"],
            "captured": judgement.captured(log, self.workloads[name].checks),
        }
        self._delete(self.active[name])
        del self.active[name]

    def _log(self, one: _Active, observed: Progress) -> str:
        if not observed.pod or observed.stage not in (runs.RUNNING, runs.SUCCEEDED, runs.FAILED):
            return ""
        try:
            return evidence.masked(
                self.client.logs(one.namespace, observed.pod, observed.container, tail_lines=_LOG_LINES)
            )
        except HwaccelError as error:
            return f"(no log: {error})"

    def _event(self, namespace: str, uid: str) -> str:
        try:
            return evidence.event_of(self.client, namespace, uid) if uid else ""
        except HwaccelError as error:
            return f"events could not be read: {error}"

    def _delete(self, one: _Active) -> None:
        with contextlib.suppress(NotFound):
            # It is deleted by its uid, so that the request can be retried.
            self.client.delete(_JOB, one.job, one.namespace, uid=one.uid)

    def _gone(self) -> bool:
        """Whether the pods are gone, or the time for that has passed, because the node of a pod may not respond."""
        self.ended = self.ended or self.clock.now()
        if self.clock.now() - self.ended > _GONE_WITHIN:
            return True
        selector = f"{RUN_LABEL}={self.id}"
        return not any(
            self.client.list(_POD, namespace, label_selector=selector, metadata_only=True).items
            for namespace in sorted(self.namespaces)
        )

    def _show(self, stages: c.Mapping[str, Progress]) -> None:
        line = report.progress_line(self.done, stages, len(self.workloads))
        if line != self.line:
            self.line = line
            self.lines.append(line)


def run(
    client: Client,
    workloads: c.Sequence[Workload],
    options: RunOptions,
    clock: Clock,
    *,
    check_mode: bool = False,
    resume: dict[str, t.Any] | None = None,
    ended: c.Callable[[Rows], Rows] = _as_they_are,
) -> Outcome:
    """Runs all and deletes them. resume: the `pending` of the previous slice. Raises HwaccelError if nothing could be run.

    ended: called with the rows of all that ended at one observation. Its result is kept instead of them, across slices.
    """
    if not resume:
        validate(workloads)
    one = Run(client, workloads, options, clock, resume or {}, ended)
    if check_mode:
        return check(one)
    outcome = go(one)
    return outcome if outcome.pending is not None else _report(one)


def go(one: Run) -> Outcome:
    """Runs one slice. The outcome is pending or has no values. The results are in the run."""
    try:
        over = one.go_on()
    except BaseException:
        one.abandon()
        raise
    return Outcome(changed=bool(one.workloads), pending=None if over else one.pack(), progress=one.lines)


def validate(workloads: c.Sequence[Workload]) -> None:
    """Raises ManyFaults with all their errors."""
    faults: list[Fault] = []
    for name, count in collections.Counter(workload.name for workload in workloads).items():
        if count > 1:
            faults.append(
                Fault(
                    f"{count} workloads are called {name}",
                    "workloads",
                    "results are reported by name",
                    "set unique names",
                )
            )
    for workload in workloads:
        try:
            workload.checks.validate(f"workload {workload.name}")
        except ManyFaults as error:
            faults += error.faults
        try:
            job_of(workload.name, workload.definition, "", "", 0)
        except HwaccelError as error:
            faults += error.faults
    if faults:
        raise ManyFaults(faults)


def check(one: Run) -> Outcome:
    """Validates every Job by a server-side dry run."""
    jobs = [one.job(name) for name in one.workloads]
    namespaces = sorted({job["metadata"]["namespace"] for job in jobs})
    missing = [right for namespace in namespaces for right in rights.refused(one.client, _RIGHTS, namespace)]
    outcome = Outcome(changed=bool(jobs), values=report.values([], rights.as_dicts(missing)))
    if missing:
        outcome.changed, outcome.failure = False, ManyFaults(rights.faults(missing))
        return outcome
    for job in jobs:
        outcome.warnings += [
            text for text in one.client.create(job, _JOB, dry_run=True).warnings if text not in outcome.warnings
        ]
    return outcome


def _report(one: Run) -> Outcome:
    rows = [one.done[name] for name in one.workloads]
    outcome = Outcome(changed=bool(rows), values=report.values(rows, []), progress=one.lines)
    outcome.failure = report.failure(rows, one.options.fail_on)
    return outcome
