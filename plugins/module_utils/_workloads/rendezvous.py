# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two workloads that work together: the second gets the address on which the first listens."""

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
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import FAILED, SUCCEEDED, RunOptions

#: Environment variable of the second one with the text that the first printed after the word.
PEER = "PEER_ADDRESS"
#: Reason of a workload that did not fail itself.
ENDED = "ended, because the other one had failed"


@dataclasses.dataclass(frozen=True)
class Result:
    """first, second: rows in the format of `workload_run`; second is None if the first ended before it printed its address."""

    first: dict[str, t.Any]
    second: dict[str, t.Any] | None


class Rendezvous(Pairs[Pair]):
    """Ends the other workload if one of two fails, because it would wait forever."""

    @property
    def longest(self) -> float:
        """The first workload keeps running while the second one is scheduled, starts and runs."""
        return 2 * self.options.longest

    def job(self, name: str) -> dict[str, t.Any]:
        job = super().job(name)
        first = next((pair.first.name for pair in self.pairs if pair.second.name == name), None)
        if first is not None:
            for container in job["spec"]["template"]["spec"]["containers"][:1]:
                container["env"] = [*(container.get("env") or ()), {"name": PEER, "value": self.said.get(first, "")}]
        return job

    def results(self) -> list[Result]:
        """Results once all have ended, in the order of the pairs."""
        return [Result(self.done[pair.first.name], self.done.get(pair.second.name)) for pair in self.pairs]

    def _watch(self, pair: Pair, found: dict[str, Progress]) -> None:
        one, other = pair.first.name, pair.second.name
        for name, peer in ((one, other), (other, one)):
            if peer in found and name in self.done and self.done[name]["state"] != SUCCEEDED:
                observed = found.pop(peer)
                self._settle(
                    peer, FAILED, dataclasses.replace(observed, reason=ENDED), self._log(self.active[peer], observed)
                )
        if (
            one in found
            and one in self.said
            and other not in self.done
            and (other not in found or found[other].stage != stages.RUNNING)
        ):
            # Its timeout starts when both are running, because until then it waits for an image to be pulled.
            self.active[one].stage_since = self.clock.now()


def run(
    client: Client,
    pairs: c.Sequence[Pair],
    options: RunOptions,
    clock: Clock,
    *,
    check_mode: bool = False,
    resume: dict[str, t.Any] | None = None,
) -> tuple[Outcome, list[Result]]:
    """Runs all pairs and deletes them. The results are empty in check mode, and while the outcome is pending."""
    one = Rendezvous(client, pairs, options, clock, resume or {})
    return play(one, one.results, check_mode=check_mode)
