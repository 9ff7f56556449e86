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
    """Wait so many seconds of a real node."""

    seconds: float


@dataclasses.dataclass(frozen=True)
class Poll:
    """Sleep of a loop that only looks at the node: woken at its next turn after something changed there."""

    seconds: float
    host: Any


@dataclasses.dataclass(frozen=True)
class Call:
    """Do something that blocks (a request) in another thread; its result or exception comes back."""

    function: Callable[[], Any]


class Park:
    """Wait until somebody wakes the task, or a signal comes."""


class Signal(BaseException):
    """A signal as a process gets it. Not an Exception: a program's error handling must not swallow it."""


class Terminated(Signal):
    """SIGTERM; a program may catch it."""


class Killed(Signal):
    """SIGKILL; no program catches it."""


class Task:
    """A generator and what it waits for now. A wake-up that comes too late finds another token and does nothing."""

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
        except Exception:  # a bug in one simulated program must not stop the fleet; it is reported in the agent's log
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
        """Wake a parked task; harmless for one that waits for something else only if its owner knows that it is parked."""
        self.loop.soon(self.step, self._token, value)

    def interrupt(self, signal: Signal) -> None:
        if self._running:
            self.loop.soon(self.interrupt, signal)
        else:
            self.step(self._token, None, signal)

    def cancel(self) -> None:
        """Drop the task without a word to anyone."""
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
    """The time-ordered queue, an inbox for other threads, and a bounded pool for what blocks."""

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
        """From any thread."""
        self._inbox.put((function, args))

    def in_thread(
        self, function: Callable[[], Any], then: Callable[[Any, BaseException | None], None], pool: Any = None
    ) -> None:
        """Do something that blocks in the pool, or in a pool of the caller's own; `then` runs in the loop."""

        def work() -> None:
            try:
                value = function()
            except Exception as error:  # handed to whoever waits for it
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
        """What other threads brought, what is due, and what these made ready."""
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
        except Exception:  # one event that cannot be handled must not stop the fleet
            traceback.print_exc(file=sys.stderr)
