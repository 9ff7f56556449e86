# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two workloads for one place: the second must have to wait while the first runs, and run when it has gone. Private to the collection."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._engine import runs
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.options import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.runs import Run, RunOptions, Workload
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import runs as stages
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.runs import Progress


@dataclasses.dataclass(frozen=True)
class Contest:
    """first: stays until it is ended, and prints `settled` when it holds what it came for. scarce: one of these is what the scheduler says of the second."""

    first: Workload
    second: Workload
    settled: str
    scarce: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Result:
    """first, second: rows as `workload_run` returns them, None where it did not run. refused: why the second had to wait, "" where it had not.

    beside: the second got its place while the first still held it.
    """

    first: dict[str, t.Any]
    second: dict[str, t.Any] | None
    refused: str
    beside: bool


class Contests(Run):
    """`parallel` counts contests: a first one that waits for a place of its second would wait for ever."""

    def __init__(self, client: Client, contests: c.Sequence[Contest], options: RunOptions, clock: Clock, resume: dict[str, t.Any]) -> None:
        workloads = [workload for contest in contests for workload in (contest.first, contest.second)]
        super().__init__(client, workloads, dataclasses.replace(options, parallel=2 * options.parallel), clock, resume)
        self.contests = contests
        self.at_once = options.parallel
        #: Names of first ones that have been seen to run, why second ones wait, and names of second ones that did not have to.
        self.held: list[str] = list(resume.get("held", ()))
        self.refused: dict[str, str] = dict(resume.get("refused", {}))
        self.beside: list[str] = list(resume.get("beside", ()))

    @property
    def waiting(self) -> list[str]:
        """Those that may start now; the second ones of contests that go on before the first ones of others."""
        untouched = set(super().waiting)
        seconds = [contest.second.name for contest in self.contests if contest.first.name in self.active and contest.first.name in self.held]
        going_on = sum(contest.first.name in self.active or contest.second.name in self.active for contest in self.contests)
        firsts = [contest.first.name for contest in self.contests if contest.first.name in untouched]
        return [name for name in seconds if name in untouched] + firsts[: max(0, self.at_once - going_on)]

    @property
    def longest(self) -> float:
        """The second one has to find a place twice."""
        return self.options.longest + self.options.schedule_timeout

    def pack(self) -> dict[str, t.Any]:
        return super().pack() | {"held": self.held, "refused": self.refused, "beside": self.beside}

    def results(self) -> list[Result]:
        """When all have ended, in the order of the contests."""
        return [
            Result(self.done[contest.first.name], self.done.get(contest.second.name), self.refused.get(contest.second.name, ""),
                   contest.second.name in self.beside)
            for contest in self.contests
        ]

    def _look(self) -> dict[str, Progress]:
        found = super()._look()
        for contest in self.contests:
            first = found.get(contest.first.name)
            if first is not None and first.stage == stages.RUNNING and self._referee(contest, first, found.get(contest.second.name)):
                del found[contest.first.name]
        return found

    def _referee(self, contest: Contest, first: Progress, second: Progress | None) -> bool:
        """What a contest has come to while its first one runs; whether that one was ended."""
        one, other = contest.first.name, contest.second.name
        if one not in self.held:
            if contest.settled in self._log(self.active[one], first):
                self.held.append(one)
            return False
        # One that has ended by now has come and gone between two looks.
        ended = self.done.get(other)
        if other not in self.beside and ((second is not None and second.node) or (ended is not None and ended["node"])):
            self.beside.append(other)
        if second is not None and second.stage == stages.PENDING and any(word in second.reason for word in contest.scarce):
            self.refused[other] = second.reason
            self.active[other].stage_since = self.clock.now()
        elif ended is None:
            return False
        self._judge(one, dataclasses.replace(first, stage=stages.SUCCEEDED))
        return True


def run(
    client: Client, contests: c.Sequence[Contest], options: RunOptions, clock: Clock, *, check_mode: bool = False, resume: dict[str, t.Any] | None = None,
) -> tuple[Outcome, list[Result]]:
    """Plays all and takes them away. The results are empty in check mode, and while the outcome is pending."""
    one = Contests(client, contests, options, clock, resume or {})
    if check_mode:
        return runs.check(one), []
    outcome = runs.go(one)
    return outcome, [] if outcome.pending is not None else one.results()
