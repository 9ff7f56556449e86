# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One thread runs every simulated process: generators that yield what they wait for, driven by a time-ordered queue."""

from __future__ import annotations

import collections
import dataclasses
import heapq
import queue
import sys
import time
import traceback
from collections.abc import Callable, Generator
from typing import Any

from fleet_agent.clock import Clock

Process = Generator[Any, Any, Any]


@dataclasses.dataclass(frozen=True)
class Sleep:
    """Wait a number of seconds of a real node."""

    seconds: float


@dataclasses.dataclass(frozen=True)
class Poll:
    """Sleep of a loop that only reads the node. It continues at its next period after a change of the node."""

    seconds: float
    host: Any


@dataclasses.dataclass(frozen=True)
class Call:
    """Run something that blocks (a request) in another thread, and return its result or exception."""

    function: Callable[[], Any]


class Park:
    """Wait until the task is woken, or a signal arrives."""


class Signal(BaseException):
    """A signal for a process. It is not an Exception, so that a program's error handling does not catch it."""


class Terminated(Signal):
    """SIGTERM; a program may catch it."""


class Killed(Signal):
    """SIGKILL; no program catches it."""


class Task:
    """A generator and what it currently waits for. A late wake-up finds another token and has no effect."""

    __slots__ = ("loop", "generator", "done", "result", "_token", "_on_done", "_running")

    def __init__(self, loop: Loop, generator: Process, on_done: Callable[[Any], None] | None = None) -> None:
        self.loop = loop
        self.generator = generator
        self.done = False
        self.result: Any = None
        self._token = 0
        self._on_done = on_done
        self._running = False

    def step(self, token: int, value: Any = None, error: BaseException | None = None) -> None:
        if self.done or token != self._token:
            return
        self._token += 1
        self._running = True
        try:
            effect = self.generator.throw(error) if error is not None else self.generator.send(value)
        except StopIteration as stop:
            return self._finish(stop.value)
        except Signal:
            return self._finish(None)
        except Exception:  # A bug in one simulated program must not stop the fleet. It is reported in the agent's log.
            traceback.print_exc(file=sys.stderr)
            return self._finish(None)
        finally:
            self._running = False
        self._wait(effect)

    def _wait(self, effect: Any) -> None:
        token = self._token
        if isinstance(effect, Sleep):
            self.loop.later(self.loop.clock.real(effect.seconds), self.step, token)
        elif isinstance(effect, Poll):
            started = time.monotonic()
            effect.host.when_changed(lambda: self._poll_turn(token, effect, started))
        elif isinstance(effect, Call):
            self.loop.in_thread(effect.function, lambda value, error: self.step(token, value, error))

    def _poll_turn(self, token: int, effect: Poll, started: float) -> None:
        period = max(self.loop.clock.real(effect.seconds), 0.001)
        gone = time.monotonic() - started
        self.loop.later(period - gone % period, self.step, token)

    def wake(self, value: Any = None) -> None:
        """Wake a parked task; must only be called if the task is known to be parked."""
        self.loop.soon(self.step, self._token, value)

    def interrupt(self, signal: Signal) -> None:
        if self._running:
            self.loop.soon(self.interrupt, signal)
        else:
            self.step(self._token, None, signal)

    def cancel(self) -> None:
        """Drops the task without notification."""
        if self._running:
            self.loop.soon(self.cancel)
        elif not self.done:
            self.done = True
            self.generator.close()

    def _finish(self, result: Any) -> None:
        self.done = True
        self.result = result
        if self._on_done:
            self._on_done(result)


class Loop:
    """The time-ordered queue, an inbox for other threads, and a bounded pool for blocking calls."""

    def __init__(self, clock: Clock, pool: Any) -> None:
        self.clock = clock
        self._pool = pool
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._ready: collections.deque[tuple[Callable[..., None], tuple[Any, ...]]] = collections.deque()
        self._inbox: queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = queue.SimpleQueue()
        self._sequence = 0
        self._stopped = False

    @staticmethod
    def now() -> float:
        """Seconds of this process, for differences."""
        return time.monotonic()

    def spawn(self, generator: Process, on_done: Callable[[Any], None] | None = None) -> Task:
        task = Task(self, generator, on_done)
        self.soon(task.step, 0)
        return task

    def soon(self, function: Callable[..., None], *args: Any) -> None:
        self._ready.append((function, args))

    def later(self, seconds: float, function: Callable[..., None], *args: Any) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (time.monotonic() + seconds, self._sequence, function, args))

    def post(self, function: Callable[..., None], *args: Any) -> None:
        """May be called from any thread."""
        self._inbox.put((function, args))

    def in_thread(
        self, function: Callable[[], Any], then: Callable[[Any, BaseException | None], None], pool: Any = None
    ) -> None:
        """Runs a blocking call in the pool, or in the caller's own pool. `then` runs in the loop."""

        def work() -> None:
            try:
                value = function()
            except Exception as error:  # It is passed to the waiting task.
                self.post(then, None, error)
            else:
                self.post(then, value, None)

        (pool or self._pool).submit(work)

    def stop(self) -> None:
        self.post(self._stop)

    def _stop(self) -> None:
        self._stopped = True

    def run(self) -> None:
        while not self._stopped:
            self.turn()

    def turn(self) -> None:
        """Runs items of other threads, due tasks, and tasks that these made ready."""
        self._take_inbox()
        now = time.monotonic()
        while self._heap and self._heap[0][0] <= now:
            _when, _sequence, function, args = heapq.heappop(self._heap)
            self._run_one(function, args)
        while self._ready:
            function, args = self._ready.popleft()
            self._run_one(function, args)

    def _take_inbox(self) -> None:
        timeout = 0.0 if self._ready else max(0.0, min(0.5, self._heap[0][0] - time.monotonic())) if self._heap else 0.5
        try:
            function, args = self._inbox.get(timeout=timeout) if timeout > 0 else self._inbox.get_nowait()
            for _count in range(2000):
                self._run_one(function, args)
                function, args = self._inbox.get_nowait()
            self._run_one(function, args)
        except queue.Empty:
            return

    @staticmethod
    def _run_one(function: Callable[..., None], args: tuple[Any, ...]) -> None:
        try:
            function(*args)
        except Exception:  # A failed event must not stop the fleet.
            traceback.print_exc(file=sys.stderr)
