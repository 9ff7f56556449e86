# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two workloads that need the same resource: the second must wait while the first is running, and run when it has ended."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import runs as stages
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.runs import Progress
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.pairs import Pair, Pairs, play
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions


@dataclasses.dataclass(frozen=True)
class Contest(Pair):
    """first: runs until it is ended, and prints its word when it holds the resource. scarce: the scheduler's message about the second must be one of these."""

    scarce: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Result:
    """first, second: rows in the format of `workload_run`, None if it did not run. refused: why the second had to wait, "" if it did not.

    beside: the second got the resource while the first still held it.
    """

    first: dict[str, t.Any]
    second: dict[str, t.Any] | None
    refused: str
    beside: bool


class Contests(Pairs[Contest]):
    """Ends each first workload once it is known whether its second one had to wait."""

    def __init__(
        self, client: Client, contests: c.Sequence[Contest], options: RunOptions, clock: Clock, resume: dict[str, t.Any]
    ) -> None:
        super().__init__(client, contests, options, clock, resume)
        #: Why second workloads wait, and names of those that did not have to.
        self.refused: dict[str, str] = dict(resume.get("refused", {}))
        self.beside: list[str] = list(resume.get("beside", ()))

    @property
    def longest(self) -> float:
        """The second workload is scheduled after the first one has ended, so it gets the timeout twice."""
        return self.options.longest + self.options.schedule_timeout

    def pack(self) -> dict[str, t.Any]:
        return super().pack() | {"refused": self.refused, "beside": self.beside}

    def results(self) -> list[Result]:
        """Results once all have ended, in the order of the contests."""
        return [
            Result(
                self.done[contest.first.name],
                self.done.get(contest.second.name),
                self.refused.get(contest.second.name, ""),
                contest.second.name in self.beside,
            )
            for contest in self.pairs
        ]

    def _watch(self, pair: Contest, found: dict[str, Progress]) -> None:
        one, other = pair.first.name, pair.second.name
        first, second = found.get(one), found.get(other)
        if first is None or first.stage != stages.RUNNING or one not in self.said:
            return
        # A workload that has ended by now was created and ended between two observations.
        ended = self.done.get(other)
        if other not in self.beside and ((second is not None and second.node) or (ended is not None and ended["node"])):
            self.beside.append(other)
        if second is not None and second.stage == stages.PENDING and any(word in second.reason for word in pair.scarce):
            self.refused[other] = second.reason
            self.active[other].stage_since = self.clock.now()
        elif ended is None:
            return
        self._judge(one, dataclasses.replace(first, stage=stages.SUCCEEDED))
        del found[one]


def run(
    client: Client,
    contests: c.Sequence[Contest],
    options: RunOptions,
    clock: Clock,
    *,
    check_mode: bool = False,
    resume: dict[str, t.Any] | None = None,
) -> tuple[Outcome, list[Result]]:
    """Runs all and deletes them. The results are empty in check mode, and while the outcome is pending."""
    one = Contests(client, contests, options, clock, resume or {})
    return play(one, one.results, check_mode=check_mode)
