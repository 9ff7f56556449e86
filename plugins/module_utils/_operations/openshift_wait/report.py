# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results, lines and messages of a wait for an install. Pure."""

from __future__ import annotations

import collections.abc as c
import datetime
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import causes, install_state, progress
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import snapshot as s
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.install_state import InstallState
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.lifetimes import moment, span
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import Snapshot
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait.settings import (
    API,
    BOOTSTRAP,
    INSTALL,
    NODES,
)

#: What a phase waits for.
AWAITED = {
    API: "the API",
    BOOTSTRAP: "the end of bootstrap",
    NODES: "all expected nodes",
    INSTALL: "the first version and all operators",
}
#: What is the matter in states that no waiting ends.
_BLOCKED = {
    install_state.FOREIGN: "what answers is another cluster",
    install_state.UNREACHABLE: "the cluster may be installed, and does not answer",
}


class NotComplete(HwaccelError):
    """An install has not come as far as it should in time, or cannot."""

    def __init__(self, what: str, cause: Fault, observed: c.Sequence[str]) -> None:
        super().__init__(what)
        self.faults = (cause,)
        # Summaries show the first lines, which have what matters.
        seen = [f"Last observation: {observed[0]}", *(f"- {line}" for line in observed[1:])] if observed else []
        self.args = ("\n".join([f"{what}.", f"Most likely: {cause}", *seen]),)


def expired(found: Snapshot, state: InstallState, phase: str, since: datetime.datetime, limit: float) -> NotComplete:
    """limit: seconds."""
    after = span(datetime.timedelta(seconds=limit))
    what = (
        f"{found.name}: {AWAITED[phase]} was waited for in vain for {after}, since {moment(since)} "
        f"(phase {phase}, {state.name}: {state.why})"
    )
    return NotComplete(what, causes.likely(found), progress.lines(found))


def blocked(found: Snapshot, state: InstallState) -> NotComplete:
    """Of a state that no waiting ends."""
    what = f"{found.name} is {state.name}, and nothing is waited for"
    return NotComplete(
        what, Fault(_BLOCKED[state.name], found.api.where, state.why, state.next_step), progress.lines(found)
    )


def left(state: InstallState, phase: str, seconds: float) -> str:
    """The line that shows that a wait goes on."""
    return f"{state.name}: waiting for {AWAITED[phase]}, {span(datetime.timedelta(seconds=max(0.0, seconds)))} left"


def values(found: Snapshot, state: InstallState, phase: str) -> dict[str, t.Any]:
    answers = found.answers
    return {
        "state": state.name,
        "why": state.why,
        "next_step": state.next_step,
        "phase": phase,
        "answers": found.api.answer == s.ANSWERS,
        "infrastructure": answers.infrastructure,
        "bootstrapped": answers.bootstrapped,
        "removable": answers.removable,
        "machines": [{"name": one.name, "role": one.role, "step": progress.step(one, found)} for one in found.machines],
        "lagging": [{"name": one.name, "reason": one.reason} for one in progress.lagging(answers.operators)],
        "observed": progress.lines(found),
    }
