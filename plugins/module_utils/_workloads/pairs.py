# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pairs of workloads, of which the second starts when the first has printed a certain line."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import runs as stages
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.runs import Progress
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads import runs
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import Run, RunOptions, Workload


@dataclasses.dataclass(frozen=True)
class Pair:
    """first: prints a line with `word` when the second one may start. places: only one of the pairs that share a place runs at a time."""

    first: Workload
    second: Workload
    word: str
    places: tuple[str, ...] = ()


SomePair = t.TypeVar("SomePair", bound=Pair)
SomeResult = t.TypeVar("SomeResult")


class Pairs(Run, t.Generic[SomePair]):
    """`parallel` counts pairs, because a first workload whose second one cannot start would wait forever."""

    def __init__(
        self, client: Client, pairs: c.Sequence[SomePair], options: RunOptions, clock: Clock, resume: dict[str, t.Any]
    ) -> None:
        workloads = [workload for pair in pairs for workload in (pair.first, pair.second)]
        super().__init__(client, workloads, dataclasses.replace(options, parallel=2 * options.parallel), clock, resume)
        self.pairs = pairs
        self.at_once = options.parallel
        #: Text that first workloads printed after the word, by name.
        self.said: dict[str, str] = dict(resume.get("said", {}))

    @property
    def waiting(self) -> list[str]:
        """Workloads that may start now. Second workloads of running pairs have priority over first workloads of others."""
        untouched = set(super().waiting)
        going_on = [pair for pair in self.pairs if pair.first.name in self.active or pair.second.name in self.active]
        seconds = [
            pair.second.name for pair in going_on if pair.first.name in self.active and pair.first.name in self.said
        ]
        taken = {place for pair in going_on for place in pair.places}
        firsts: list[str] = []
        for pair in self.pairs:
            if pair.first.name in untouched and not taken.intersection(pair.places):
                firsts.append(pair.first.name)
                taken.update(pair.places)
        return [name for name in seconds if name in untouched] + firsts[: max(0, self.at_once - len(going_on))]

    def pack(self) -> dict[str, t.Any]:
        return super().pack() | {"said": self.said}

    def _look(self) -> dict[str, Progress]:
        found = super()._look()
        for pair in self.pairs:
            first = found.get(pair.first.name)
            if first is not None and first.stage == stages.RUNNING and pair.first.name not in self.said:
                self._hear(pair, first)
            self._watch(pair, found)
        return found

    def _hear(self, pair: SomePair, first: Progress) -> None:
        for line in self._log(self.active[pair.first.name], first).splitlines():
            _before, word, rest = line.partition(pair.word)
            if word:
                self.said.setdefault(pair.first.name, rest.strip())

    def _watch(self, pair: SomePair, found: dict[str, Progress]) -> None:
        """The state of a pair. Settled workloads are removed from `found`."""
        raise NotImplementedError


def play(
    one: Pairs[SomePair], results: c.Callable[[], list[SomeResult]], *, check_mode: bool
) -> tuple[Outcome, list[SomeResult]]:
    """Runs one slice. The results are created when all have ended. They are empty in check mode, and while the outcome is pending."""
    if check_mode:
        return runs.check(one), []
    outcome = runs.go(one)
    return outcome, [] if outcome.pending is not None else results()
