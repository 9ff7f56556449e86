# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for an install by watches, approves requests of expected nodes meanwhile, and says at its end why it does not go on."""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import datetime
import itertools
import math
import pathlib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval import identities
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import ApprovalPolicy
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    CertificateRejected,
    Forbidden,
    HwaccelError,
    ManyFaults,
    Overloaded,
    Unauthorized,
    Unreachable,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import install_state, places, progress
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import snapshot as s
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.install_state import InstallState
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.lifetimes import moment
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import Request, Snapshot
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.session import Ask
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait import report, rights, world
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait.approvals import Approvals
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait.settings import (
    API,
    BOOTSTRAP,
    INSTALL,
    NODES,
    Decided,
    Settings,
    decided,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait.world import World

#: Seconds between two requests while nothing happens: with a round of approvals now and then, at most 12 in a minute.
IDLE = 9.0
#: The same for a minute after something has happened: a node that joins files its next request within seconds.
_BUSY, _BUSY_FOR = 1.5, 60.0
#: Seconds after which requests and nodes are judged again although no watch has reported them: a kubelet can have become reachable.
_AGAIN, _AGAIN_BUSY = 180.0, 15.0
#: Seconds for which nothing must progress, as of `openshift-install wait-for install-complete`.
SETTLED = 30.0
_TIMES = ("not yet valid", "has expired")


@dataclasses.dataclass
class Waited:
    """State between slices, in JSON; times are time.time(). phase: what is waited for, since when. heard: when something changed last.

    due: when the next request may be sent. turn: which list is watched next. installed: whether it was installed when the wait began, None before anything was
    read. added: nodes that are waited for although it was. settled: since when nothing progresses, 0 if something does. shown: lines of the last observation.
    ends: when this leg ends, 0 if it has no end.
    """

    phase: str
    since: float
    heard: float = 0.0
    due: float = 0.0
    turn: int = 0
    answer: str = ""
    why: str = ""
    installed: bool | None = None
    added: list[str] = dataclasses.field(default_factory=list)
    settled: float = 0.0
    ends: float = 0.0
    shown: list[str] = dataclasses.field(default_factory=list)
    world: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    approvals: dict[str, t.Any] = dataclasses.field(default_factory=dict)


def wait(
    settings: Settings,
    client: Client,
    clock: Clock,
    ask: Ask,
    *,
    check_mode: bool = False,
    resume: dict[str, t.Any] | None = None,
) -> Outcome:
    """ask: the certificate that a kubelet serves with, by address and port. resume: the `pending` of the previous slice.

    client: one that does not repeat requests, because an API that is silent is nothing unusual here.
    """
    path = settings.installation.get("path") or ""
    chosen = decided(settings, places.record_of(pathlib.Path(path)) if path else None)
    kept = Waited(**resume) if resume else _begun(settings, clock.now())
    try:
        return _Wait(settings, chosen, client, clock, ask, kept).run(check_mode, begins=not resume)
    except Forbidden as error:
        # The server refuses one request at a time. All missing permissions are reported at once.
        raise ManyFaults(rights.missing(client, chosen.policy) or list(error.faults)) from None


def _begun(settings: Settings, now: float) -> Waited:
    """The first leg of a wait, or the one after that of `waited`, whose limits count on. Raises HwaccelError."""
    try:
        kept = Waited(**settings.waited) if settings.waited else Waited(API, now)
    except TypeError:
        what, step = "the wait cannot be continued", "pass what the call before has returned as waited, or nothing"
        raise HwaccelError(what, "waited", "it is not of this version of the module", step) from None
    kept.ends = now + settings.leg if settings.leg else 0.0
    return kept


class _Wait:
    def __init__(
        self, settings: Settings, chosen: Decided, client: Client, clock: Clock, ask: Ask, kept: Waited
    ) -> None:
        self._settings, self._policy, self._base = settings, chosen.policy, chosen.base
        self._client, self._clock, self._ask, self._kept = client, clock, ask, kept
        self._world, self._approvals = World(**kept.world), Approvals(**kept.approvals)
        self._changed = False
        self._lines: list[str] = []

    def run(self, check_mode: bool, *, begins: bool) -> Outcome:
        """begins: whether a leg begins, so that what is known of machines and surroundings is of this moment."""
        first = self._kept.installed is None
        if first:
            self._look(self._kept.phase, check_mode=check_mode)
            self._kept.installed = self._snapshot().answers.installed
            self._kept.added = self._added()
        while True:
            self._advance(self._snapshot())
            found = self._snapshot()
            state = install_state.state(found)
            self._tell(found)
            if _is_final(state, found, first):
                return self._outcome(found, state, report.blocked(found, state))
            if check_mode or self._finished(self._kept.phase, found):
                return self._outcome(found, state)
            if self._left() <= 0 and (begins or not self._kept.ends):
                return self._timed_out()
            if self._leg_left() <= 0:
                return self._paused(found, state)
            if self._clock.slice_over(_BUSY):
                return self._pending(found, state)
            first = begins = False
            self._step()

    def _snapshot(self) -> Snapshot:
        kept, approvals = self._kept, self._approvals
        serving = frozenset(approvals.complete) if self._policy is not None and approvals.at else None
        requests = [Request(**one) for one in approvals.requests]
        return dataclasses.replace(
            self._base,
            now=datetime.datetime.fromtimestamp(self._clock.now(), datetime.UTC),
            api=s.Api(kept.answer or s.SILENT, self._client.where, kept.why),
            answers=self._world.answers(requests, serving) if self._world.versions else s.Answers(),
        )

    # Phases.

    def _advance(self, found: Snapshot) -> None:
        """To the first phase that is not finished, never back: an API that is silent for a moment is no reason to begin anew."""
        phases = self._settings.phases
        while self._kept.phase != phases[-1] and self._finished(self._kept.phase, found):
            self._kept.phase = phases[phases.index(self._kept.phase) + 1]
            self._kept.since = self._clock.now()
            if found.api.answer == s.ANSWERS:
                self._look(self._kept.phase, approving=False)
                found = self._snapshot()

    def _finished(self, phase: str, found: Snapshot) -> bool:
        if found.api.answer != s.ANSWERS:
            return False
        if phase == API:
            return True
        if phase == BOOTSTRAP:
            # What was installed before has had its bootstrap, whatever a condition says that its release did not have.
            return found.answers.removable or bool(self._kept.installed)
        if phase == NODES:
            return self._policy is None or bool(self._approvals.at and not self._awaited(self._policy))
        return self._is_settled(found)

    def _added(self) -> list[str]:
        """Of the nodes that are added, those that are not there yet. One that may join again is there, as the node of the machine before."""
        again, wanted = (
            set(map(identities.plain, names)) for names in (self._settings.allow_rejoin, self._settings.added_nodes)
        )
        known = self._policy.expected.identities if self._policy else ()
        added = [one for one in known if one.node_names & wanted]
        return [one.name for one in added if one.name in self._approvals.missing or one.node_names & again]

    def _awaited(self, policy: ApprovalPolicy) -> set[str]:
        """Expected nodes that are not complete and are waited for. An installed cluster waits for those only that have just come, or are to come."""
        waiting = set(self._approvals.waiting)
        if not self._kept.installed:
            return waiting
        approved = {one["node"] for one in self._approvals.approved}
        come = {one.name for one in policy.expected.identities if one.node_names & approved}
        return waiting & (come | {*self._kept.added})

    def _is_settled(self, found: Snapshot) -> bool:
        """An installed cluster waits for nobody: whether it is degraded is its state."""
        kept, version = self._kept, found.answers.version
        done = version is not None and version.completed and version.available
        quiet = version is not None and not (version.failing or version.progressing)
        if not (done and quiet) or progress.lagging(found.answers.operators):
            kept.settled = 0.0
            return bool(kept.installed) and found.answers.installed
        kept.settled = kept.settled or self._clock.now()
        return bool(kept.installed) or self._clock.now() - kept.settled >= SETTLED

    def _left(self) -> float:
        return self._kept.since + self._settings.limit(self._kept.phase) - self._clock.now()

    def _leg_left(self) -> float:
        """Seconds until the leg ends, at the latest with the phase, whose failure is reported by what is observed then."""
        return min(self._left(), self._kept.ends - self._clock.now()) if self._kept.ends else math.inf

    # Requests.

    def _look(self, phase: str, *, check_mode: bool = False, approving: bool = True) -> None:
        """Reads what was not read yet, and approves what there is. An API that does not answer is one observation more."""
        try:
            read = self._read(self._world.unread(self._listed(phase), self._clock.now()))
            # What depends on an answer that has just come, as Etcd does on a complete bootstrap.
            read += self._read(name for name in self._listed(phase) if name not in self._world.known)
            if approving and self._policy is not None:
                self._approve(self._policy, check_mode)
        except (Unreachable, Overloaded, Unauthorized) as error:
            self._heard(_answer(error), str(error.faults[0].why or error))
        else:
            self._heard(s.ANSWERS, "", news=bool(read))

    def _read(self, names: c.Iterable[str]) -> list[str]:
        return self._world.read(self._client, names, self._clock.now())

    def _approve(self, policy: ApprovalPolicy, check_mode: bool) -> None:
        before = len(self._approvals.approved)
        serving_ca = self._settings.serving_ca
        try:
            self._approvals.round(policy, self._client, self._clock, self._ask, serving_ca, check_mode=check_mode)
        finally:
            self._changed = self._changed or len(self._approvals.approved) > before

    def _heard(self, answer: str, why: str, *, news: bool = False) -> None:
        """news: whether something has changed besides the answer. The first look is no change."""
        kept = self._kept
        if kept.answer and (news or kept.answer != answer):
            kept.heard = self._clock.now()
        kept.answer, kept.why = answer, why

    def _listed(self, phase: str) -> tuple[str, ...]:
        names: tuple[str, ...] = (world.INFRASTRUCTURE, world.BOOTSTRAP, world.VERSION, world.NODES)
        if self._world.bootstrapped[0]:
            names += (world.ETCD,)
        if phase in (NODES, INSTALL):
            names += (world.OPERATORS,)
        return (*names, world.CLIENT, world.SERVING) if self._policy is not None else names

    def _watched(self) -> list[str]:
        """Lists that were read, in the order of their turns: one that the phase waits for has more of them."""
        # Before there is a Node, nobody asks for a serving certificate.
        joining = (world.CLIENT, world.NODES, *([world.SERVING] if self._world.found.get(world.NODES) else []))
        if self._kept.phase in (API, BOOTSTRAP):
            names: tuple[str, ...] = (*joining, world.ETCD if self._world.bootstrapped[0] else world.BOOTSTRAP)
        elif self._kept.phase == NODES:
            names = (*joining, world.VERSION, *joining, world.OPERATORS)
        else:
            names = tuple(itertools.chain(*((world.VERSION, world.OPERATORS, one) for one in joining)))
        return [name for name in names if name in self._world.versions]

    def _step(self) -> None:
        """One turn: a pause, and then either a round of approvals, or a list that was not there before, or a watch of one that was read."""
        kept, clock = self._kept, self._clock
        busy = clock.now() - kept.heard < _BUSY_FOR
        self._pause(min(kept.due - clock.now(), self._left(), self._leg_left()))
        if clock.slice_over() or min(self._left(), self._leg_left()) <= 0:
            return
        length = _BUSY if busy else IDLE
        kept.due = clock.now() + length
        overdue, names = self._overdue(_AGAIN_BUSY if busy else _AGAIN), self._watched()
        if overdue or not names or self._world.unread(self._listed(kept.phase), clock.now()):
            self._look(kept.phase, approving=overdue)
            return
        name = names[kept.turn % len(names)]
        kept.turn += 1
        try:
            changed = self._world.watch(self._client, name, self._until(length))
        except (Unreachable, Overloaded, Unauthorized) as error:
            self._heard(_answer(error), str(error.faults[0].why or error))
            return
        self._heard(s.ANSWERS, "", news=changed)
        if changed:
            self._look(kept.phase, approving=name in (world.CLIENT, world.SERVING, world.NODES))

    def _overdue(self, again: float) -> bool:
        """Whether requests are judged although no watch has reported one. The first round can have failed."""
        if self._policy is None:
            return False
        if not self._approvals.at:
            return True
        waits = bool(self._approvals.waiting or self._approvals.requests)
        return waits and self._clock.now() - self._approvals.at >= again

    def _until(self, length: float) -> float:
        end = self._clock.monotonic() + max(0.0, min(length, self._left(), self._leg_left()))
        return end if self._clock.deadline is None else min(end, self._clock.deadline)

    def _pause(self, seconds: float) -> None:
        if self._clock.deadline is not None:
            seconds = min(seconds, self._clock.deadline - self._clock.monotonic())
        if seconds > 0:
            self._clock.sleep(seconds)

    # Results.

    def _tell(self, found: Snapshot) -> None:
        """Lines that the last observation did not have."""
        now = progress.lines(found)
        self._lines += [line for line in now if line not in self._kept.shown]
        self._kept.shown = now

    def _timed_out(self) -> Outcome:
        """With everything read once more, because operators of an earlier phase say why it does not end, too."""
        phase = self._kept.phase
        if self._kept.answer == s.ANSWERS:
            before = copy.deepcopy(self._world)
            self._world.forget()
            self._look(INSTALL)
            if self._kept.answer != s.ANSWERS:
                self._world = before
        found = self._snapshot()
        state = install_state.state(found)
        return self._outcome(
            found, state, report.expired(found, state, phase, self._since, self._settings.limit(phase))
        )

    @property
    def _since(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self._kept.since, datetime.UTC)

    def _outcome(self, found: Snapshot, state: InstallState, failure: HwaccelError | None = None) -> Outcome:
        approvals = self._approvals
        values = report.values(found, state, self._kept.phase) | {
            "since": moment(self._since),
            "waited": {},
            "complete": failure is None and self._finished(self._settings.phases[-1], found),
            "cause": failure.faults[0].as_dict() if failure else {},
            "approved": approvals.approved,
            "ignored": approvals.ignored,
            "ignored_count": approvals.ignored_count,
            "missing_nodes": approvals.missing,
            "unexpected_nodes": self._unexpected(found),
        }
        warned = state.name == install_state.DEGRADED and failure is None
        warnings = [f"{found.name} is degraded: {state.why}. Next: {state.next_step}"] if warned else []
        return Outcome(self._changed, values, warnings, failure=failure, progress=self._lines)

    def _unexpected(self, found: Snapshot) -> list[str]:
        """None as long as nobody is expected."""
        if self._policy is None:
            return []
        return progress.unexpected(found.answers.nodes, (one.name for one in self._policy.expected.identities))

    def _pending(self, found: Snapshot, state: InstallState) -> Outcome:
        outcome = self._continued(found, state)
        outcome.pending = self._state()
        return outcome

    def _paused(self, found: Snapshot, state: InstallState) -> Outcome:
        """The end of a leg."""
        outcome = self._continued(found, state)
        outcome.values["waited"] = self._state()
        return outcome

    def _continued(self, found: Snapshot, state: InstallState) -> Outcome:
        outcome = self._outcome(found, state)
        outcome.warnings = []
        outcome.progress = [*self._lines, report.left(state, self._kept.phase, self._left())]
        return outcome

    def _state(self) -> dict[str, t.Any]:
        kept = self._kept
        kept.world, kept.approvals = dataclasses.asdict(self._world), dataclasses.asdict(self._approvals)
        return dataclasses.asdict(kept)


def _is_final(state: InstallState, found: Snapshot, first: bool) -> bool:
    """Whether no waiting changes a state. A cluster that answers under another name does not become this one, but what only is silent may come back."""
    if state.name == install_state.FOREIGN:
        return first or found.api.answer == s.ANSWERS
    return first and state.name == install_state.UNREACHABLE


def _answer(error: HwaccelError) -> str:
    if isinstance(error, Unauthorized):
        return s.LOCKED
    if not isinstance(error, CertificateRejected):
        return s.SILENT
    text = str(error)
    if "client certificate" in text:
        return s.LOCKED
    return s.UNTIMELY if any(words in text for words in _TIMES) else s.UNTRUSTED
