# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One gate over a fleet and all slices: current verdicts of every node, and their age while nodes may still pass."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime
import functools
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.chain import Verdict
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Overloaded, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import report
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.ages import Ages
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.fleet import Fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.judge import Judge
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.rollouts import Rollouts
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.snapshot import GateSnapshot

#: Seconds for which a read of the whole fleet confirms verdicts.
_RECENT = 10.0


class Gate:
    """started: time.time(), as slices are processes of their own. softened: nodes whose taint was changed to PreferNoSchedule."""

    def __init__(self, settings: Settings, client: Client, fleet: Fleet, started: float) -> None:
        self.settings, self.client, self.fleet, self.started = settings, client, fleet, started
        self.verdicts: dict[str, Verdict] = {}
        self.held: dict[str, Verdict] = {}
        self.softened: list[str] = []
        self.rollouts = Rollouts(settings, client, fleet)
        self._judge, self._ages, self._lines = Judge(settings, fleet), Ages(), report.Lines()
        self._waiting: set[str] = set()
        #: When a node of a pool was last observed waiting, time.time() by pool.
        self._waited: dict[str, float] = {}

    @property
    def timeout(self) -> float:
        return self.settings.timeout_of(len(self.verdicts))

    @property
    def left(self) -> float:
        return max(0.0, self.started + self.timeout - time.time())

    def snapshot(self, *, broken: bool = False) -> GateSnapshot:
        return GateSnapshot(
            self.settings,
            self.client,
            self.fleet,
            dict(self.verdicts),
            dict(self.held),
            self.started,
            dict(self._waited),
            broken,
        )

    def judge(self) -> None:
        """Judges nodes with new facts, then applies the grace times. Raises ApiError if an overdue node cannot be read again."""
        self.judge_changed()
        if self._overdue():
            self.confirm()
            for name in self._overdue():
                self._set(name, dataclasses.replace(self.verdicts[name], state=chain.FAILED))

    def confirm(self) -> None:
        """Reads the fleet again before nodes fail by time: a watch over a dead connection is silent, as one without changes is."""
        if time.time() - self.fleet.read_at >= _RECENT:
            self.fleet.read(self.client)
            self.judge_changed()

    def _overdue(self) -> list[str]:
        """Waiting nodes whose grace time has passed."""
        now, found = time.time(), []
        for name in sorted(self._waiting):
            verdict = self.verdicts[name]
            self._waited[self.fleet.pool_names[name]] = now
            if not verdict.grace:
                self._ages.forget(name)
            elif self._ages.over(
                name, verdict, now, functools.partial(self._began, verdict.since, now), self.fleet.grown
            ):
                found.append(name)
        return found

    def judge_changed(self) -> None:
        """Its cost depends on the changes, not on the size of the fleet, because it is called after every event."""
        for name in self.fleet.take_changed():
            self.held.pop(name, None)
            verdict, held = self._judge.of_node(name) if name in self.fleet.nodes else (None, None)
            if held is not None:
                self.held[name] = held
            if verdict is not None:
                self._set(name, verdict)
            else:
                self.verdicts.pop(name, None)
                self._ages.forget(name)
                self._waiting.discard(name)

    def all_passed(self) -> bool:
        """Whether every node that is judged has passed, and none is held."""
        self.judge_changed()
        return not self.held and all(verdict.state == chain.PASSED for verdict in self.verdicts.values())

    def waiting(self) -> bool:
        return bool(self._waiting)

    def look(self, seconds: float, done: c.Callable[[], bool]) -> None:
        """Observes changes. Time in which the server was unavailable does not count. Raises ApiError if it stays unavailable."""
        began = time.time()
        try:
            self.fleet.watch(self.client, seconds, done)
        except (Unreachable, Overloaded):
            # A watch is retried for a shorter time than a request.
            self.rollouts.go_on()
            self._skip(time.time() - began)

    def meet(self) -> None:
        """The first request of a slice, which waits for a server that is unavailable."""
        began = time.time()
        self.client.resource("v1", "Node")
        self._skip(time.time() - began)

    def settle(self, state: str, prefix: str) -> None:
        """Waiting nodes end as `state`, or as unknown if only the observer was waiting."""
        for name in sorted(self._waiting):
            verdict = self.verdicts[name]
            self._set(
                name,
                dataclasses.replace(
                    verdict, state=chain.UNKNOWN if verdict.observer else state, reason=prefix + verdict.reason
                ),
            )

    def progress(self) -> list[str]:
        """At most one line."""
        return self._lines.new(report.progress_line(self.settings.gate, self.verdicts, self.left))

    def pack(self) -> dict[str, t.Any]:
        """State for the next slice."""
        return {
            "fleet": self.fleet.pack(),
            "started": self.started,
            "stuck": self._ages.stuck,
            "failed": self._judge.failed,
            "excused": self._judge.excused,
            "rollout": (self.rollouts.open, self.rollouts.since),
            "waited": self._waited,
            "softened": self.softened,
            "line": self._lines.last,
            "line_at": self._lines.at,
        }

    @classmethod
    def unpacked(cls, settings: Settings, client: Client, fleet: Fleet, packed: dict[str, t.Any]) -> Gate:
        fleet.unpack(packed["fleet"])
        gate = cls(settings, client, fleet, packed["started"])
        gate.softened, gate._waited = packed["softened"], packed["waited"]
        gate.rollouts.open, gate.rollouts.since = list(packed["rollout"][0]), float(packed["rollout"][1])
        gate._judge = Judge(settings, fleet, packed["failed"], packed["excused"])
        gate._ages = Ages({name: (state, since) for name, (state, since) in packed["stuck"].items()})
        gate._lines = report.Lines(packed["line"], packed["line_at"])
        return gate

    def _set(self, name: str, verdict: Verdict) -> None:
        self.verdicts[name] = verdict
        if verdict.state == chain.WAITING:
            self._waiting.add(name)
        else:
            if name in self._waiting:
                self._waiting.discard(name)
                self._waited[self.fleet.pool_names[name]] = time.time()
            self._ages.forget(name)

    def _skip(self, seconds: float) -> None:
        self._ages.skip(seconds)
        self.rollouts.skip(seconds)

    def _began(self, when: str, now: float) -> float:
        """Converts a time of the server's clock to this machine's clock; `now` if the server's clock is unknown."""
        server = self.client.server_time()
        try:
            return now if server is None else now - max(0.0, server - datetime.datetime.fromisoformat(when).timestamp())
        except ValueError:
            return now
