# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions of the tasks of the role machine_boot, which the filter machine_boot answers. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import (
    boot_state,
    outcome,
    reach,
    request,
    watch,
)

_Data = c.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Given:
    """What a question is asked with. request: for the machine. more: variables by their names. versions: of collections. now: in seconds since the epoch."""

    request: _Data
    more: _Data
    versions: _Data
    now: float

    @property
    def watch(self) -> watch.Watch:
        """How the boot is watched. ansible-core before 2.19 converts numbers to text."""
        more = self.more["watch"]
        return watch.Watch(
            tuple(more["servers"]),
            more["wait_for"],
            int(more["interval"]),
            more["connected"],
            float(more["deadline"]),
            more["check"],
            more["reach"],
        )


def _faults(requests: c.Sequence[_Data], given: Given) -> list[dict[str, str]]:
    return [fault.as_dict() for fault in request.faults(requests, given.versions)]


def _nodes(answer: _Data, _given: Given) -> outcome.Nodes:
    return outcome.nodes(answer)


def _lines(power: _Data, given: Given) -> list[str]:
    return outcome.lines(power, given.more["planned"], given.more["check"])


def _due(plan: _Data, given: Given) -> watch.Due:
    # A request by name is the only one that overwrites a disk that is not empty, also that of a virtual machine.
    anew = given.request["named"] and given.request["boot"] == request.NETWORK
    return watch.due(given.watch, plan, given.more["power"], given.more["verdict"], anew)


def _round(verdict: _Data, given: Given) -> watch.Round:
    was_node = given.more["plan"]["joined"] == boot_state.YES
    joined = watch.has_joined(request.read(given.request), given.more["nodes"])
    return watch.following(given.watch, was_node, joined, verdict, given.now)


def _enough(result: _Data, given: Given) -> watch.Enough:
    reads, deadline = given.more["reads"], float(given.more["deadline"])
    machine, nodes = request.read(given.request), given.more["nodes"]
    return watch.enough(result, machine, nodes, reads["awaited"], int(reads["tries"]), deadline, given.now)


def _verdict(results: c.Sequence[_Data], given: Given) -> watch.Verdict:
    awaited = given.more["wait_for"] or "reported"
    return watch.judged(results, request.read(given.request), awaited, given.more["nodes"], given.more["before"])


def _expected(logs: c.Sequence[_Data], given: Given) -> dict[str, str]:
    """What the machine must answer by SSH. The host key of the inventory, otherwise the one that the machine has reported in this boot."""
    own = given.more["expected"]
    lines = [line for one in logs for line in one.get("stdout_lines", ()) if one["stdout_lines"][:1] != [watch.EARLIER]]
    key = reach.fingerprint(own["host_key"]) or reach.reported(request.read(given.request).machine, lines)
    return {**own, "host_key": key}


def _reached(result: _Data, given: Given) -> reach.Reached:
    """result: of reach.sh, empty before it has run."""
    expected, over = reach.Expected(**given.more["expected"]), given.now >= float(given.more["deadline"])
    return reach.judged(
        result.get("stdout_lines", ()), expected, given.more["verdict"], given.more["before"].get("text", ""), over
    )


def _unreachable(results: c.Sequence[_Data], given: Given) -> str:
    return outcome.unreachable(given.request["name"], results)


def _outcome(found: _Data, given: Given) -> outcome.Outcome:
    plan, power, verdict, reached = (found.get(key) or {} for key in ("plan", "power", "verdict", "reached"))
    return outcome.outcome(given.request["name"], plan, power, verdict, found.get("error"), reached)


QUESTIONS: dict[str, c.Callable[[t.Any, Given], t.Any]] = {
    "faults": _faults,
    "nodes": _nodes,
    "lines": _lines,
    "due": _due,
    "round": _round,
    "enough": _enough,
    "verdict": _verdict,
    "expected": _expected,
    "reached": _reached,
    "unreachable": _unreachable,
    "outcome": _outcome,
}
