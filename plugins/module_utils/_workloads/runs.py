# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads that run once: started as Jobs, watched, their logs judged, taken away."""

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

#: Kinds of every Kubernetes: not worth a discovery.
_JOB = Resource("batch", "v1", "Job", "jobs", True)
_POD = Resource("", "v1", "Pod", "pods", True)
_RIGHTS: tuple[rights.Question, ...] = (
    ("create", _JOB, ""),
    ("list", _JOB, ""),
    ("delete", _JOB, ""),
    ("list", _POD, ""),
    ("get", _POD, "log"),
)

#: Seconds that a run waits at its end for its pods to leave.
_GONE_WITHIN = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 2.0
_LOG_LINES = 2000


@dataclasses.dataclass(frozen=True)
class Workload:
    """name: unique in its run. definition: a Pod or a Job. container: whose log is judged, "" for the first."""

    name: str
    definition: c.Mapping[str, t.Any]
    container: str = ""
    checks: Checks = dataclasses.field(default_factory=Checks)


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """schedule_timeout, start_timeout, timeout: seconds until it has a node, until it has started after that, until it has ended after that."""

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
                    Fault(f"{name} is {getattr(self, name):g}", name, "nothing could run", "give a number above 0")
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
    """stage_since: seconds since 1970 at which the workload came to its stage (pending, starting, running). uid: of the Job, "" until it was seen."""

    job: str
    namespace: str
    stage: str
    stage_since: float
    uid: str = ""


#: Rows of workloads, as the result has them.
Rows = list[dict[str, t.Any]]


def _as_they_are(rows: Rows) -> Rows:
    return rows


class Run:
    """The workloads of one task, from slice to slice."""

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
        #: Where Jobs of this run were made.
        self.namespaces: set[str] = set(resume.get("namespaces", ()))
        self.ended: float = resume.get("ended", 0.0)
        self.lines: list[str] = []

    @property
    def waiting(self) -> list[str]:
        return [name for name in self.workloads if name not in self.active and name not in self.done]

    @property
    def longest(self) -> float:
        """Seconds that a workload may take in all."""
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
        """Until all have ended and are gone; False where the slice is over before."""
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
        """Take away what runs, as far as the server lets us; what it does not the cluster ends and removes itself."""
        for one in self.active.values():
            with contextlib.suppress(HwaccelError):
                self._delete(one)

    def _start(self) -> None:
        for name in self.waiting[: max(0, self.options.parallel - len(self.active))]:
            job = self.job(name)
            metadata = job["metadata"]
            # Before the request: a Job whose creation was not answered is taken away like any other.
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
            # Its name is of this run alone: an attempt whose answer was lost has made it. A quota that others write just then conflicts too.
            if error.body.get("reason") != "AlreadyExists":
                raise

    def _look(self) -> dict[str, Progress]:
        """Settles what has ended, and hands it over; the progress of the others."""
        found: dict[str, Progress] = {}
        known = set(self.done)
        jobs, pods = self._read()
        for name, one in list(self.active.items()):
            place = (one.namespace, one.job)
            if place not in jobs:
                self._settle(name, FAILED, Progress(runs.FAILED, "its Job is gone: somebody has deleted it"), "")
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
            # Jobs first: one that has ended has pods that tell why.
            for job in self.client.list(_JOB, namespace, label_selector=selector).items:
                jobs[namespace, job["metadata"]["name"]] = job
            for pod in self.client.list(_POD, namespace, label_selector=selector).items:
                pods[namespace, runs.owner(pod)].append(pod)
        return jobs, pods

    def _late(self, one: _Active, observed: Progress) -> tuple[str, str] | None:
        """(state, reason) where it stays in a stage for longer than it may."""
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
            return UNSCHEDULABLE, f"no node has taken it for {limit:.0f} s: {observed.reason}"
        what = {
            runs.CREATED: "no pod was made of it",
            runs.STARTING: "it has not started",
            runs.RUNNING: "it has not ended",
        }[observed.stage]
        event = "" if observed.stage == runs.RUNNING else self._event(one.namespace, observed.uid or one.uid)
        return TIMEOUT, "; ".join(
            part
            for part in (
                f"{what} in {limit:.0f} s: {observed.reason}" if observed.reason else f"{what} in {limit:.0f} s",
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
            # By its uid, which may be asked again where no answer came.
            self.client.delete(_JOB, one.job, one.namespace, uid=one.uid)

    def _gone(self) -> bool:
        """Whether the pods have left; one whose node does not answer is not waited for for ever."""
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
    """Runs all and takes them away. resume: the `pending` of the slice before. Raises HwaccelError where nothing could be run.

    ended: gets the rows of those that have ended at one look, at once; what it returns is kept in their place, from slice to slice.
    """
    if not resume:
        validate(workloads)
    one = Run(client, workloads, options, clock, resume or {}, ended)
    if check_mode:
        return check(one)
    outcome = go(one)
    return outcome if outcome.pending is not None else _report(one)


def go(one: Run) -> Outcome:
    """One slice of it. Pending, or without values: what the workloads came to is in the run."""
    try:
        over = one.go_on()
    except BaseException:
        one.abandon()
        raise
    return Outcome(changed=bool(one.workloads), pending=None if over else one.pack(), progress=one.lines)


def validate(workloads: c.Sequence[Workload]) -> None:
    """Raises ManyFaults with all that is wrong with them."""
    faults: list[Fault] = []
    for name, count in collections.Counter(workload.name for workload in workloads).items():
        if count > 1:
            faults.append(
                Fault(
                    f"{count} workloads are called {name}",
                    "workloads",
                    "results are reported by name",
                    "give each a name of its own",
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
    """Every Job is shown to the server; nothing is made of it."""
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
