# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a suite of tests/tools/jobs.py, several jobs at a time, and adds up their counts of tests.

check.py lint|node|boot|cluster|openshift|all [--only TEXT] [--changed [BASE]]

The output of each job is in .build/logs/<job>.log; its end is shown when the job fails. Jobs whose Python is not available are
counted as skipped, with the reason. Costs are in .build/logs/costs.json; jobs that exceed their budgets by half are reported.
The last line is `N passed, N failed, N skipped`; the exit status is 1 when
anything failed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import typing as t

import changed
import costs
import environments
import pace
import reaper
import settings
from jobs import CANNOT_RUN, SUITES, Job, with_needed

LOGS = environments.BUILD / "logs"
COUNTED = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)")
FAILURE = re.compile(r"^(?:FAILED|ERROR) (tests/\S+)")
CLOSING = re.compile(r"^(=+ )?\d+ (passed|failed|skipped|errors?|deselected|xfailed|xpassed)\b.* in [\d.]+s")
KINDS = {"error": "failed", "errors": "failed", "xfailed": "skipped", "xpassed": "failed"}
STARTED = time.monotonic()
PRINTING = threading.Lock()


@dataclasses.dataclass
class Result:
    """counts: those of the job's test runner, or one for the job. reason: why it was skipped or failed. cpu: seconds, if they are known."""

    counts: dict[str, int]
    seconds: float = 0.0
    reason: str = ""
    cpu: float | None = None

    @property
    def failed(self) -> bool:
        return self.counts.get("failed", 0) > 0

    @property
    def ran(self) -> bool:
        return self.counts.get("passed", 0) > 0


def say(text: str) -> None:
    with PRINTING:
        print(f"[{time.monotonic() - STARTED:5.0f} s] {text}", flush=True)


#: Seconds between two progress lines of a running job.
LINE_SECONDS = 60
#: Priority (nice(2)) of jobs for which others wait, if it can be set: they get three times as much processor time as competing jobs.
FIRST = -5
#: Set by a signal: jobs are terminated, with all processes that they have started.
STOPPED = threading.Event()


def log_of(job: str) -> pathlib.Path:
    return LOGS / f"{job.replace(' ', '-')}.log"


def logged(job: str) -> list[str]:
    log = log_of(job)
    return log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []


def failures(job: str) -> list[str]:
    """Names of all failed tests of a pytest run, which are repeated at the end of the output."""
    return list(dict.fromkeys(match[1] for line in logged(job) if (match := FAILURE.match(line))))


def evidence(job: str, lines: int = 15) -> list[str]:
    """What a job's last failed test has found, as pytest marks it: who keeps only the end of a run's output has it, too."""
    return [line[:200] for line in logged(job) if line.startswith("E  ")][-lines:]


def count(job: Job, text: str, status: int) -> dict[str, int]:
    """The counts in the closing line of pytest, or one for a job without pytest."""
    counts: dict[str, int] = {}
    closing = [line for line in text.splitlines() if CLOSING.match(line)] if "pytest" in job.command else []
    if closing:
        for number, kind in COUNTED.findall(closing[-1]):
            kind = KINDS.get(kind, kind)
            counts[kind] = counts.get(kind, 0) + int(number)
    else:
        counts["failed" if status else "passed"] = 1
    if status and not counts.get("failed"):
        counts["failed"] = 1
    return counts


def variables(job: Job, folder: pathlib.Path) -> dict[str, str]:
    places = {"build": str(environments.BUILD), "tree": str(environments.TREE)}
    given = environments.variables(folder)
    given.update((key, value.format(**places)) for key, value in job.environment)
    given.update({"NO_COLOR": "1", "ANSIBLE_NOCOLOR": "1", "TERM": "dumb"})
    if "pytest" in job.command:
        given["HWACCEL_QUICK"] = str(environments.quick())
        given["PYTHONPATH"] += os.pathsep + given["HWACCEL_QUICK"]
    if job.sandbox:
        given["XDG_STATE_HOME"] = str(environments.BUILD / "state" / job.name.replace(" ", "-"))
    return given


def run(job: Job) -> Result:
    start = time.monotonic()
    try:
        folder = environments.ensure(job.profile)
    except environments.Unavailable as reason:
        return Result({"skipped": 1}, reason=str(reason))
    say(f"start   {job.name}")
    used = log_of(job.name).with_suffix(".used")
    used.unlink(missing_ok=True)
    with open(log_of(job.name), "w", encoding="utf-8") as log:
        command = [sys.executable, reaper.__file__, str(used), *job.command]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=environments.TREE,
            env=variables(job, folder),
            start_new_session=True,
        )
        if job.heavy:
            with contextlib.suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, process.pid, FIRST)
        status, reason = wait(job, process)
    usage = json.loads(used.read_text(encoding="utf-8")) if used.exists() else {"cpu": None, "left": []}
    if usage["left"]:
        say(f"ended   what {job.name} had left running: {'; '.join(line[:120] for line in usage['left'])}")
    seconds = time.monotonic() - start
    if status == CANNOT_RUN:
        return Result({"skipped": 1}, seconds, last_line(log_of(job.name)))
    return Result(
        count(job, log_of(job.name).read_text(encoding="utf-8", errors="replace"), status),
        seconds,
        reason,
        usage["cpu"],
    )


def wait(job: Job, process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Waits for the end of a job, with a progress line each minute. At its limit, or after a signal, the job is terminated with all its processes."""
    end = time.monotonic() + job.limit
    reported = time.monotonic()
    while time.monotonic() < end and not STOPPED.is_set():
        try:
            return process.wait(timeout=1), ""
        except subprocess.TimeoutExpired:
            if time.monotonic() - reported >= LINE_SECONDS:
                reported = time.monotonic()
                say(f"running {job.name}: {last_line(log_of(job.name))}")
    process.terminate()
    try:
        process.wait(timeout=reaper.CLEANING_SECONDS * 2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return 1, "stopped" if STOPPED.is_set() else f"ended after its limit of {job.limit} s"


def last_line(log: pathlib.Path) -> str:
    with open(log, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:140] if lines else "no output yet"


def report(job: Job, result: Result) -> None:
    summary = ", ".join(
        f"{number} {kind}" for kind, number in result.counts.items() if kind in ("passed", "failed", "skipped")
    )
    word = "FAILED " if result.failed else "passed " if result.ran else "skipped"
    cost = f"{result.seconds:.0f} s" + (f", CPU {result.cpu:.0f} s" if result.cpu is not None else "")
    say(f"{word} {job.name} ({cost}): {summary}{'; ' + result.reason if result.reason else ''}")
    tail = logged(job.name)[-80:] if result.failed else []
    if not tail:
        return
    with PRINTING:
        print("\n".join(f"    {line}" for line in tail), flush=True)


class Runner:
    """Starts a job as soon as its preceding jobs have passed and a slot is free, and jobs with the longest remaining chain first."""

    def __init__(self, jobs: tuple[Job, ...], slots: int) -> None:
        self.ranks = costs.ranks(jobs, costs.budgets())
        self.waiting = sorted(jobs, key=lambda job: -self.ranks[job.name])
        self.results: dict[str, Result] = {}
        self.slots = slots
        self.running: dict[concurrent.futures.Future[Result], Job] = {}

    def startable(self, job: Job) -> bool:
        busy = sum(not other.heavy for other in self.running.values())
        return self.ready(job) and (job.heavy or busy < self.slots - self.kept(job))

    def ready(self, job: Job) -> bool:
        return all(name in self.results for name in job.after)

    def kept(self, job: Job) -> int:
        """Slots that are reserved for longer chains whose parts are being built, which takes seconds with a cache, and otherwise uses all cores."""
        built = {other.name for other in self.running.values() if other.heavy}
        longer = [
            other
            for other in self.waiting
            if self.ranks[other.name] > self.ranks[job.name] and built & set(other.after)
        ]
        return min(len(longer), self.slots - 1)

    def start(self, pool: concurrent.futures.Executor) -> None:
        for job in list(self.waiting):
            lost = [name for name in job.after if name in self.results and not self.results[name].ran]
            if lost or STOPPED.is_set():
                self.waiting.remove(job)
                self.done(
                    job,
                    Result({"failed": 1}, reason=f"not started: {f'{lost[0]} did not pass' if lost else 'stopped'}"),
                )
            elif self.startable(job):
                self.waiting.remove(job)
                self.running[pool.submit(run, job)] = job

    def done(self, job: Job, result: Result) -> None:
        self.results[job.name] = result
        report(job, result)

    def prepare(self, profiles: list[str]) -> None:
        """Installs environments one after the other while the first jobs run, so that later jobs do not wait for theirs."""
        for profile in profiles:
            if not STOPPED.is_set():
                with contextlib.suppress(environments.Unavailable):
                    environments.ensure(profile)

    def run(self) -> dict[str, Result]:
        with concurrent.futures.ThreadPoolExecutor(max_workers=self.slots + 3) as pool:
            pool.submit(self.prepare, list(dict.fromkeys(job.profile for job in self.waiting)))
            while self.waiting or self.running:
                self.start(pool)
                if not self.running:
                    continue
                finished = concurrent.futures.wait(self.running, return_when=concurrent.futures.FIRST_COMPLETED).done
                for future in finished:
                    self.done(self.running.pop(future), future.result())
        return self.results


class Processors(t.NamedTuple):
    """Seconds of all cores since the boot of the machine, as proc(5) counts them. idle: also waits for disks. stolen: by the machine's host."""

    idle: float
    stolen: float
    total: float


def processor_seconds() -> Processors:
    with open("/proc/stat", encoding="utf-8") as file:
        spent = [int(field) / os.sysconf("SC_CLK_TCK") for field in file.readline().split()[1:9]]
    return Processors(spent[3] + spent[4], spent[7], sum(spent))


def say_costs(results: dict[str, Result], before: Processors, speed: float) -> None:
    measured = {
        name: costs.Cost(cpu=result.cpu, wall=result.seconds)
        for name, result in results.items()
        if result.ran and not result.failed
    }
    costs.MEASURED.write_text(json.dumps(costs.Costs(pace=speed, jobs=measured), indent=2), encoding="utf-8")
    factor = costs.slower(speed)
    for line in costs.over(measured, costs.budgets(), factor):
        say(line)
    idle, stolen, total = (now - then for now, then in zip(processor_seconds(), before, strict=True))
    used = sum(cost["cpu"] or 0 for cost in measured.values())
    say(
        f"CPU {used:.0f} s of {total:.0f} s of all cores in {time.monotonic() - STARTED:.0f} s; "
        f"idle: {100 * idle / max(total, 1):.0f} %, stolen by the machine's host: {100 * stolen / max(total, 1):.0f} %"
    )
    say(f"this machine takes {factor:.2f} times as long as the one that the budgets are from")


def close(results: dict[str, Result]) -> int:
    total = {"passed": 0, "failed": 0, "skipped": 0}
    for result in results.values():
        for kind in total:
            total[kind] += result.counts.get(kind, 0)
    for name, result in results.items():
        if result.counts.get("skipped") and not result.ran:
            say(f"skipped as a whole: {name}: {result.reason}")
    for name, result in results.items():
        if result.failed:
            for line in evidence(name):
                say(f"  {line}")
            say(f"failed: {name}: {result.reason or ', '.join(failures(name)) or 'as its log says'}")
    say(f"logs: {LOGS}")
    closing = ", ".join(f"{number} {kind}" for kind, number in total.items())
    (LOGS / "total").write_text(closing + "\n", encoding="utf-8")
    print(closing, flush=True)
    return 1 if total["failed"] or not total["passed"] else 0


def paced(jobs: tuple[Job, ...], factor: float) -> tuple[Job, ...]:
    """Jobs with the limits that they need on a machine that is slower by this factor than that of the budgets."""
    return tuple(dataclasses.replace(job, limit=round(job.limit * max(1.0, factor))) for job in jobs)


def run_all(runner: Runner, speed: float) -> dict[str, Result]:
    """Runs all jobs. After SIGTERM or SIGINT, jobs are terminated with all their processes. speed: what pace.py measured."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: STOPPED.set())
    LOGS.mkdir(parents=True, exist_ok=True)
    before = processor_seconds()
    with settings.enough_instances(environments.cache_folder()):
        results = runner.run()
    say_costs(results, before, speed)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs a suite of jobs")
    parser.add_argument("suite", choices=[name for name in SUITES if name != "soak"])
    parser.add_argument("--only", default="", help="only jobs whose name holds this text, with those that they need")
    parser.add_argument(
        "--changed",
        nargs="?",
        const="",
        metavar="BASE",
        help="only jobs that have an input which differs from this commit",
    )
    # Tests of servers wait for more than half of their time: two cores were idle for 54 % of the time with two jobs, and for 10 % with three.
    parser.add_argument("--slots", type=int, default=4)
    arguments = parser.parse_args()
    touched = None if arguments.changed is None else changed.select(arguments.changed)
    jobs = tuple(
        job
        for job in SUITES[arguments.suite]
        if arguments.only in job.name and (touched is None or job.name in touched)
    )
    if not jobs and touched is not None:
        print("no job has an input that changed")
        return 0
    speed = pace.seconds()
    needed = paced(with_needed(jobs, arguments.suite), costs.slower(speed))
    return close(run_all(Runner(needed, arguments.slots), speed))


if __name__ == "__main__":
    sys.exit(main())
