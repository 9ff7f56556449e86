# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role machine_boot reports of a machine: lines during the run, the outcome, and what could not be reached. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.power import OBSERVED, RESUMED, SETTLED

_Data = c.Mapping[str, t.Any]
#: What follows a boot.
AFTER = (SETTLED, RESUMED)


class Outcome(t.TypedDict):
    """The outcome of a machine."""

    failed: bool
    text: str


class Nodes(t.TypedDict):
    """Observed nodes of a cluster. why: the reason if they are unknown."""

    known: bool
    names: list[str]
    why: str


def nodes(answer: _Data) -> Nodes:
    """answer: the result of node_info for the cluster, also if it was skipped, has failed or could not be run. It has names, or rows of nodes."""
    why = answer.get("msg", "its cluster does not answer")
    return {
        "known": "result" in answer or "nodes" in answer,
        "names": list(answer.get("result") or (node["name"] for node in answer.get("nodes") or ())),
        "why": "its cluster has no hwaccel_connection" if answer.get("skipped") else str(why),
    }


def lines(power: _Data, planned: bool, check: bool) -> list[str]:
    """Lines about a result of machine_power: of each plan, and of what follows a boot, which is not planned. check: whether the run only predicts."""
    state = power.get("state")
    if state == OBSERVED or not (planned or state in AFTER):
        return []
    return [*power["messages"], *(f"{'would ' if check else ''}{step['text']}" for step in power["steps"])]


def outcome(
    name: str, plan: _Data, power: _Data, verdict: _Data, error: object = None, reached: _Data | None = None
) -> Outcome:
    """name: of the machine. plan: whose steps were taken; that of a teardown may have no started. power: the last result of machine_power.

    verdict: empty if its boot was not observed. error: message of the failed task, None if no task has failed. reached: what it answers by SSH, None or empty
    if nobody has waited for this.
    """
    if error is not None:
        return {"failed": True, "text": _failure(name, str(error or "a task failed").strip())}
    if plan.get("started") and verdict and not verdict["done"]:
        return {"failed": True, "text": f"machine {name}: {verdict['text']}. Next: {verdict['next_step']}"}
    if reached and not reached["done"]:
        return {"failed": True, "text": f"machine {name}: {reached['text']}. Next: {reached['next_step']}"}
    after = power if power.get("state") in AFTER else {}
    left = after["messages"] if after.get("state") == RESUMED else []
    steps = [*(step["text"] for step in (*plan["steps"], *after.get("steps", ()))), *left]
    progress = [one["text"] for one in (verdict, reached) if one]
    return {"failed": False, "text": f"machine {name}: {'; '.join([*plan['messages'], *steps, *progress])}"}


def _failure(name: str, message: str) -> str:
    if message.startswith("machine "):
        return message
    return (
        f"machine {name}: {message.removesuffix('.')}. Next: correct what the failed task above reports, and run again"
    )


def unreachable(name: str, results: c.Iterable[_Data]) -> str:
    """The message about boot servers that cannot be reached, empty if all of them can. results: of a task on them."""
    gone = [result for result in results if result.get("unreachable")]
    if not gone:
        return ""
    servers = ", ".join(dict.fromkeys(str(result["item"]) for result in gone))
    why = str(gone[0].get("msg") or "").strip()
    next_step = "verify that it is on and that Ansible can connect to it, and run again"
    return f"machine {name}: the boot server {servers} cannot be reached ({why}). Next: {next_step}"
