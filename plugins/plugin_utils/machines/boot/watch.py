# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a boot is watched: what the role machine_boot does next, and the verdict on what it has read. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import math
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import boot_log, boot_state
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import request as requests
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.request import BootRequest
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.step import POWER

_Data = c.Mapping[str, t.Any]
#: Number of reads of the logs before the cluster is queried again.
SLICE = 4
#: How often each of several boot servers has its turn. What another one logs meanwhile stays in its log.
TURNS = 4
#: First line of logs whose other lines may belong to an earlier boot.
EARLIER = "earlier"


@dataclasses.dataclass(frozen=True)
class Watch:
    """How a boot is watched. wait_for: the stage to reach, empty if boots are not watched. interval: for how many seconds a read waits for a line.

    connected: whether its cluster can be queried. deadline: in seconds since the epoch. check: whether the run only predicts.

    reach: whether the machine is waited for until it answers by SSH.
    """

    servers: tuple[str, ...] = ()
    wait_for: str = boot_log.REPORTED
    interval: int = 15
    connected: bool = False
    deadline: float = 0
    check: bool = False
    reach: bool = False


class Verdict(t.TypedDict):
    """What logs and nodes show of a machine. text: its progress, or what is missing. next_step: empty if nothing has to be done.

    done: whether it has reached the awaited stage. sending: boot servers that sent it more than an address. loaded: whether it has loaded its kernel, or
    runs from its media. ended: whether it has reported, or its node has joined. lines: its progress, if the verdict before had another one.
    """

    stage: str
    text: str
    next_step: str
    done: bool
    sending: list[str]
    loaded: bool
    ended: bool
    lines: list[str]


class Due(t.TypedDict):
    """Parts of the role that a machine needs. look: one read of its logs. mark: a record of where they end. mark_as: again if the machine has to be installed
    once more although the boot server has written it, otherwise mark. act: steps. watch. reset: of what was set for one boot. resume: a start from its disk
    once it is off after that. reach: a wait until it answers.
    """

    look: bool
    mark: bool
    mark_as: str
    act: bool
    watch: bool
    resume: bool
    reset: bool
    reach: bool


class Reads(t.TypedDict):
    """Reads of logs. what: seconds that each waits for a line. awaited: stage that ends them. servers: in turns. tries: of each turn."""

    what: int
    awaited: str
    servers: list[str]
    tries: int


class Round(t.TypedDict):
    """One round of the watch. query: whether the nodes of the cluster are queried. read: whether logs are read. settled: whether no other round follows."""

    query: bool
    read: bool
    settled: bool
    reads: Reads


class Enough(t.TypedDict):
    """Whether a read of a log was the last one of its boot server's turn, and of all turns."""

    turn: bool
    all: bool


def due(watch: Watch, plan: _Data, power: _Data, verdict: _Data, anew: bool = False) -> Due:
    """plan, power: the first and the last result of machine_power. verdict: empty if there is none yet. anew: whether a start from the network is explicitly
    requested for this machine.
    """
    logged, acts = bool(watch.servers), not watch.check
    is_on, joined = plan["power"] == requests.ON, plan["joined"] == boot_state.YES
    return {
        "look": logged and is_on and not plan["started"] and not joined,
        "mark": logged and acts and any(step["kind"] == POWER for step in plan["steps"]),
        "mark_as": "again" if anew and plan["started"] else "mark",
        "act": acts and bool(plan["steps"]),
        "watch": logged and acts and plan["started"] and watch.wait_for != "",
        # A machine that was started by an earlier run may still be installed. One that has not come as far as it should has its verdict already.
        "reach": acts and watch.reach and not joined and (verdict.get("done", True) if plan["started"] else is_on),
        "resume": acts and plan["ends"] and bool(verdict.get("loaded")),
        "reset": bool(verdict.get("loaded") or power.get("back")),
    }


def following(watch: Watch, was_node: bool, joined: bool, verdict: _Data, now: float) -> Round:
    """The next round. was_node: whether the machine ran a node before its start. joined: whether its node has joined since. verdict: empty before the first
    round. now: in seconds since the epoch.
    """
    queried = watch.connected and not was_node
    done = joined or bool(verdict.get("done"))
    servers = list(verdict.get("sending") or watch.servers)
    turns, interval = TURNS if len(servers) > 1 else 1, max(watch.interval, 1)
    # At least two, as each waits for a change; but few if the cluster has to be queried in between.
    tries = max(2, math.ceil((watch.deadline - now) / interval))
    if queried and watch.wait_for == boot_log.REPORTED:
        tries = min(tries, SLICE)
    return {
        "query": queried and not done,
        # Once in any case: the start may have used up the timeout, and without logs there is no verdict.
        "read": not done and (not verdict or now < watch.deadline),
        "settled": done or now >= watch.deadline,
        "reads": {
            "what": interval,
            "awaited": _awaited(watch.wait_for, str(verdict.get("stage", boot_log.NOTHING))),
            "servers": servers * turns,
            "tries": math.ceil(tries / (turns * max(len(servers), 1))),
        },
    }


def _awaited(wait_for: str, reached: str) -> str:
    """The stage after the one that was reached, so that each is shown when it is reached."""
    stages = boot_log.STAGES
    return stages[min(max(stages.index(reached) + 1, stages.index(boot_log.ADDRESS)), stages.index(wait_for))]


def enough(
    result: _Data, request: BootRequest, nodes: _Data, awaited: str, tries: int, deadline: float, now: float
) -> Enough:
    """result: of one read; of all reads, or empty, before the first one. tries: of one turn. deadline: 0 if there is none."""
    if not result or "results" in result:
        return {"turn": False, "all": False}
    done = bool(result.get("skipped")) or judged([result], request, awaited, nodes, {})["done"]
    return {"turn": done or int(result.get("attempts", 1)) >= tries or 0 < deadline < now, "all": done}


def judged(read: c.Sequence[_Data], request: BootRequest, awaited: str, nodes: _Data, before: _Data) -> Verdict:
    """Progress of a machine. read: results of the task that has read logs; the last of each boot server counts. nodes: of its cluster since the start.

    before: the verdict before, empty if there is none.
    """
    logs = {one.get("item", ""): one["stdout_lines"] for one in read if "stdout_lines" in one}
    joined = has_joined(request, nodes)
    media = request.boot == requests.MEDIA
    found = boot_log.verdict(request.machine, [line for lines in logs.values() for line in lines], joined, media)
    # Only lines of the present boot lead to actions: an old report would end an installation in progress.
    present = boot_log.verdict(
        request.machine, [line for lines in logs.values() if lines[:1] != [EARLIER] for line in lines], joined, media
    )
    text = found.text + ("" if found.stage == present.stage else ", in this boot or an earlier one")
    is_new = found.at_least(boot_log.ADDRESS) and text != before.get("text")
    return {
        "stage": found.stage,
        "text": text,
        "next_step": found.next_step,
        "done": found.at_least(awaited),
        # All boot servers offer an address, but the one that has sent a boot loader also sends the rest.
        "sending": [
            name for name, lines in logs.items() if boot_log.verdict(request.machine, lines).at_least(boot_log.LOADER)
        ],
        "loaded": present.at_least(boot_log.ADDRESS if media else boot_log.KERNEL),
        "ended": present.at_least(boot_log.REPORTED),
        "lines": [text] if is_new else [],
    }


def has_joined(request: BootRequest, nodes: _Data) -> bool:
    """Whether the machine's node is among these nodes of its cluster, as far as they are known."""
    return boot_state.joined(request.nodes, nodes).state == boot_state.YES
