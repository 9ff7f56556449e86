# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several runs of `ensure` on one cluster in memory, one request at a time, in any order, for test_hold.py.

Each run is a thread that runs alone from one answer of the server, or one sleep, to the next, so a schedule is deterministic.
The engine itself is real. Its environment is simulated: time, hosts with their clocks and processes, the controller that runs
slices, and the connection to the server. Violations are detected from the requests that reach the server.
"""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import json
import threading
import types
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import holder, record
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.ensure import ensure
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import Report
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import parallel
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Conflict,
    HwaccelError,
    NotFound,
    Unreachable,
)
from ansible_collections.hwaccel.gpu.plugins.modules.manifest_set import ARGUMENT_SPEC
from ansible_collections.hwaccel.gpu.tests.unit.manifest_set.set_server import ASKS, NAME, Server, is_member, is_record

SLICE = 10.0
DEFAULTS = {name: spec.get("default") for name, spec in ARGUMENT_SPEC.items()}
_WRITES = ("apply", "create", "replace", "patch", "delete")
_REQUESTS = (*_WRITES, "get", "list", "pages", "allowed")


class Violation(AssertionError):
    """A state that must never occur."""


class Killed(BaseException):
    """Simulates SIGKILL for a thread: the connection transmits no more requests of it."""


@dataclasses.dataclass
class Host:
    """A machine that runs modules. `skew`: seconds that its wall clock is ahead; `booted`: start of its monotonic clock; `hidden`: /proc hides other users."""

    name: str
    skew: float
    booted: float
    hidden: bool = False
    #: User by process ID.
    processes: dict[int, str] = dataclasses.field(default_factory=dict)


class Connection:
    """The connection of one run to the server: requests and answers can be lost, and every executed write is checked."""

    def __init__(self, world: World, run: Run) -> None:
        self._world = world
        self._run = run

    def __getattr__(self, name: str) -> t.Any:
        method = getattr(self._world.server, name)
        if name not in _REQUESTS:
            return method

        def call(*args: t.Any, **options: t.Any) -> t.Any:
            run, world = self._run, self._world
            run.alive()
            fault, run.fault = run.fault, ""
            world.time += 25.0 if fault == "slow" else 0.0
            if fault == "request lost":
                return self._unanswered()
            world.server.tick()
            write = name in _WRITES and not options.get("dry_run")
            holds = (
                {found.kind: found.hold.holder for found in world.server.records() if found.hold is not None}
                if write
                else {}
            )
            try:
                result = method(*args, **options)
                if fault == "sent twice" and write:
                    result = _again(method, args, options, result)
            except HwaccelError:
                run.pass_on()
                raise
            if write:
                world.check(run, name, args, holds)
            if fault == "answer lost":
                return self._unanswered()
            run.pass_on()
            return iter(list(result)) if name == "pages" else result

        return call

    def _unanswered(self) -> t.NoReturn:
        self._run.cut_off = True
        self._run.pass_on()
        raise Unreachable("no answer from the API server")


def _again(method: c.Callable[..., t.Any], args: tuple[t.Any, ...], options: dict[str, t.Any], first: t.Any) -> t.Any:
    """The answer was lost, and the transport has retried the request: a conflict shows that the first attempt was executed."""
    try:
        return method(*args, **options)
    except (Conflict, NotFound):
        return first


class Run:
    """One task in its own thread: a controller that runs slices, or one call without slices."""

    def __init__(
        self,
        world: World,
        ask: str,
        host: Host,
        *,
        sliced: bool = True,
        user: str = "root",
        controller: Host | None = None,
    ) -> None:
        self.world, self.ask, self.host = world, ask, host
        self.controller = controller or host
        self.user = user
        self.sliced = sliced
        self.wake = 0.0
        self.over = self.killed = self.orphaned = False
        #: Fault of the next request.
        self.fault = ""
        #: A request of it had no answer, so it need not have released the set.
        self.cut_off = False
        self.report: Report | None = None
        self.failure: HwaccelError | None = None
        self.identity = ""
        self.wrote = self.superseded = False
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self.pid = self.worker = 0
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Continue until its next answer, or its next sleep."""
        if self.over:
            return
        self.world.time = max(self.world.time, self.wake)
        self.world.current = self
        self._go.release()
        self._back.acquire()

    def kill(self, what: str = "all") -> None:
        """`all`: slice and worker; `module`: the current slice; `worker`: only the worker, so the slice continues to its end."""
        if what in ("all", "worker") and self.sliced:
            self.orphaned = True
            self.controller.processes.pop(self.worker, None)
        if what in ("all", "module") or not self.sliced:
            self.killed = True
            self.host.processes.pop(self.pid, None)
            self.step()

    def alive(self) -> None:
        if self.killed:
            raise Killed

    def pass_on(self) -> None:
        self._back.release()
        self._go.acquire()
        self.alive()

    def sleep(self, seconds: float) -> None:
        self.wake = self.world.time + seconds
        self.pass_on()

    def _main(self) -> None:
        self._go.acquire()
        try:
            self.alive()
            self._task()
        except Killed:
            pass
        except HwaccelError as error:
            self.failure = error
        except Exception as error:
            # Without this, an unexpected error would end the thread without a report, and the schedule would hang.
            self.world.violations.append(error)
        self.over = True
        self.host.processes.pop(self.pid, None)
        self.controller.processes.pop(self.worker, None)
        self.world.ended(self)
        self._back.release()

    def _task(self) -> None:
        task, resume = "", {}
        if self.sliced:
            self.worker = self.world.process(self.controller, self.user)
            task = self.world.as_process(self.controller, self.worker, holder.this_process)
        while not self.orphaned:
            self.pid = self.world.process(self.host, self.user)
            deadline = self.monotonic() + SLICE if self.sliced else None
            clock = Clock(
                deadline,
                now=lambda: 1_000_000.0 + self.world.time + self.host.skew,
                monotonic=self.monotonic,
                sleep=self.sleep,
            )
            desired = ASKS[self.ask]
            params = DEFAULTS | {
                "name": NAME,
                "definition": copy.deepcopy(desired),
                "max_prune": "100%",
                "state": "present" if desired else "absent",
            }
            connection: t.Any = Connection(self.world, self)
            self.report = ensure(connection, params, clock, resume, check_mode=False, diff=False, task=task)
            self.failure = self.report.failure
            self.host.processes.pop(self.pid, None)
            if self.report.pending is None:
                return
            resume = json.loads(json.dumps(self.report.pending))
            self.sleep(1.0)

    def monotonic(self) -> float:
        return self.world.time - self.host.booted


class World:
    """The cluster, the hosts, and the true time in seconds."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.server = Server(lambda: self.time)
        self.hosts = [Host("one", 0.0, 0.0, hidden=True), Host("two", 100.0, -5000.0), Host("three", -100.0, 900.0)]
        self.runs: list[Run] = []
        self.current: Run | None = None
        #: Violations, and unexpected errors of runs.
        self.violations: list[Exception] = []
        self._pids = 100
        #: Identity to the time of its last write of the record.
        self._renewed: dict[str, float] = {}
        self._patched: list[tuple[t.Any, str, t.Any]] = []

    def __enter__(self) -> World:
        for place, name, value in (
            (holder, "_place", lambda: f"{self._here().name} pid:[1]"),
            (holder, "_started", self._start_of),
            (holder, "os", types.SimpleNamespace(getpid=lambda: self._current_process()[1], kill=self._signal)),
            (holder, "socket", types.SimpleNamespace(gethostname=lambda: self._here().name)),
            (parallel, "concurrent", types.SimpleNamespace(futures=types.SimpleNamespace(ThreadPoolExecutor=_InOrder))),
        ):
            self._patched.append((place, name, getattr(place, name)))
            setattr(place, name, value)
        return self

    def __exit__(self, *_error: object) -> None:
        for run in self.runs:
            run.kill()
        for place, name, value in self._patched:
            setattr(place, name, value)

    def begin(self, ask: str, host: Host, **options: t.Any) -> Run:
        self.runs.append(Run(self, ask, host, **options))
        return self.runs[-1]

    def finish(self, *runs: Run, steps: int = 6000) -> None:
        """Run all in parallel, one step at a time, until they have ended."""
        remaining = list(runs)
        while remaining and not self.violations:
            # The run with the earliest wake-up time is the next one, like in real time.
            run = min(remaining, key=lambda one: one.wake)
            run.step()
            remaining = [one for one in remaining if not one.over]
            steps -= 1
            if not steps:
                raise Violation("a run does not end")

    def process(self, host: Host, user: str) -> int:
        self._pids += 1
        host.processes[self._pids] = user
        return self._pids

    _process: tuple[Host, int] | None = None

    def as_process(self, host: Host, pid: int, work: c.Callable[[], str]) -> str:
        """The result of `work` in a process of another host than that of the current run's module."""
        self._process = (host, pid)
        try:
            return work()
        finally:
            self._process = None

    def check(self, run: Run, verb: str, args: tuple[t.Any, ...], holds: c.Mapping[str, str]) -> None:
        """Check an executed write. `holds`: holders by the kind of the record, before the write."""
        if is_record(verb, args):
            self._take_over(run, holds.get(args[0].kind if verb == "delete" else args[0]["kind"], ""))
            held = "" if verb == "delete" else (args[0]["metadata"].get("annotations") or {}).get(record.HELD_BY, "")
            if held:
                run.identity = held
                self._renewed[held] = self.time
        elif is_member(verb, args):
            if run.identity not in holds.values():
                raise Violation(
                    f"{run.ask} writes without holding the set: {verb}, held by {', '.join(holds.values()) or 'no run'}"
                )
            if run.superseded:
                raise Violation(f"{run.ask} writes after another has written: {verb}")
            run.wrote = True
            for other in self.runs:
                other.superseded = other.superseded or (other is not run and other.wrote)
        known = {key for found in self.server.records() for key in found.members}
        lost = self.server.members().keys() - known
        if lost:
            raise Violation(f"{', '.join(map(str, lost))} is in no record")

    def _take_over(self, run: Run, identity: str) -> None:
        """Check a write to a record that another run holds: that run must be dead, or its hold must have expired."""
        for other in self.runs:
            if not identity or other.identity != identity or other is run:
                continue
            silent = self.time - self._renewed[identity]
            if not (other.over or other.killed or other.orphaned or silent >= record.HOLD_SECONDS):
                raise Violation(
                    f"{run.ask} takes the set from {other.ask}, which is alive and has renewed its hold {silent:.0f} s ago"
                )

    def ended(self, run: Run) -> None:
        """Check that a task that could still write has released the set."""
        if run.killed or run.orphaned or run.cut_off or self.violations:
            return
        if any(found.hold is not None and found.hold.holder == run.identity for found in self.server.records()):
            self.violations.append(Violation(f"{run.ask} has ended and holds the set: {run.failure}"))

    def _current_process(self) -> tuple[Host, int]:
        if self._process is not None:
            return self._process
        if self.current is None:
            return self.hosts[0], 1
        return self.current.host, self.current.pid

    def _here(self) -> Host:
        return self._current_process()[0]

    def _user(self) -> str:
        host, pid = self._current_process()
        return host.processes.get(pid, "root")

    def _start_of(self, pid: int) -> str:
        host = self._here()
        if pid not in host.processes or (host.hidden and host.processes[pid] != self._user()):
            return ""
        return f"started-{pid}"

    def _signal(self, pid: int, _number: int) -> None:
        user = self._here().processes.get(pid)
        if user is None:
            raise ProcessLookupError
        if user != self._user():
            raise PermissionError


class _InOrder:
    """A pool without threads, which runs everything in order."""

    def __init__(self, **_options: t.Any) -> None:
        return

    def __enter__(self) -> _InOrder:
        return self

    def __exit__(self, *_error: object) -> None:
        return

    def map(self, work: c.Callable[[t.Any], t.Any], items: c.Iterable[t.Any]) -> c.Iterator[t.Any]:
        return map(work, items)
