# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approves the requests of expected nodes, and waits until these have joined."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.judgement import Judgement
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import ApprovalPolicy
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Fault,
    Forbidden,
    Gone,
    HwaccelError,
    ManyFaults,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import expected, reads, report, rights
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.report import Joining
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.session import Ask, Session, writable
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.settings import Settings, policy

#: Seconds for which each of three watches waits in turn: requests of both signers, and Nodes.
_TURN = 1.5


class NotJoined(HwaccelError):
    """Expected nodes have not joined. faults: why, for each of them."""

    def __init__(self, what: str, faults: list[Fault]) -> None:
        super().__init__(what, next_step="run again to continue")
        self.faults = tuple(faults)
        self.args = ("\n".join([f"{what}:", *(f"- {fault}" for fault in faults)]),)


@dataclasses.dataclass
class Progress:
    """State that one slice passes to the next. until: time.time().

    serving: nodes that serve with a certificate of the signer. asked: nodes whose kubelets were asked, the last ones at the end.
    """

    until: float
    approved: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    denied: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    serving: list[str] = dataclasses.field(default_factory=list)
    asked: list[str] = dataclasses.field(default_factory=list)
    reported: str = ""


def approve(
    settings: Settings,
    client: Client,
    clock: Clock,
    ask: Ask,
    *,
    check_mode: bool = False,
    resume: dict[str, t.Any] | None = None,
) -> Outcome:
    """ask: the certificate that a kubelet serves with, by address and port. resume: the `pending` of the previous slice."""
    decided = policy(settings)
    if not resume:
        fleet.refuse_another(client, settings.cluster_uid or "")
    try:
        if check_mode:
            return _planned(settings, decided, client, clock, ask)
        progress = Progress(**resume) if resume else Progress(clock.now() + settings.wait_timeout)
        return _rounds(settings, decided, client, clock, ask, progress)
    except Forbidden as error:
        # The server refuses one request at a time. All missing permissions are reported at once.
        found = rights.missing(client, decided, watches=settings.wait, authority=_authority(settings))
        raise ManyFaults(found or list(error.faults)) from None


def _authority(settings: Settings) -> bool:
    return not settings.serving_ca and settings.wait and settings.require_serving


def _planned(settings: Settings, decided: ApprovalPolicy, client: Client, clock: Clock, ask: Ask) -> Outcome:
    """What a run would do now. It needs the permissions of the run, and does not wait."""
    session = Session(client, clock, decided, ask, settings.serving_ca)
    judgement = session.judge()
    if faults := rights.missing(client, decided, watches=settings.wait, authority=_authority(settings)):
        raise ManyFaults(faults)
    progress = Progress(0.0)
    progress.approved = [report.approved(verdict) for verdict in judgement.approved if verdict.request.pending]
    progress.denied = [
        report.refused(verdict)
        for verdict in judgement.refused
        if settings.deny_refused and writable(verdict, deny=True)
    ]
    outcome = _outcome(settings, session, judgement, progress, [])
    outcome.failure = _flood(judgement)
    line = report.line(judgement, [], len(progress.approved), wait=False)
    outcome.progress = [line.replace("approved", "would be approved", 1)]
    return outcome


def _rounds(
    settings: Settings, decided: ApprovalPolicy, client: Client, clock: Clock, ask: Ask, progress: Progress
) -> Outcome:
    """Approves what there is, until all expected nodes have joined, the timeout has passed, or the slice is over."""
    lines: list[str] = []
    changed = False
    while True:
        session = Session(client, clock, decided, ask, settings.serving_ca)
        judgement = session.judge()
        done = session.write(judgement, deny=settings.deny_refused)
        changed = changed or bool(done.approved or done.denied)
        progress.approved += map(report.approved, done.approved)
        progress.denied += map(report.refused, done.denied)
        kept = progress if settings.require_serving else None
        joining = expected.joining(session, kept) if settings.wait else []
        line = report.line(judgement, joining, len(progress.approved), settings.wait)
        if line != progress.reported:
            lines.append(line)
            progress.reported = line
        outcome = _outcome(settings, session, judgement, progress, lines)
        outcome.changed = changed
        outcome.failure = _flood(judgement)
        if outcome.failure or all(one.done for one in joining):
            return outcome
        if clock.now() >= progress.until:
            outcome.failure = _not_joined(settings, session, judgement, joining)
            return outcome
        if clock.slice_over(_TURN):
            outcome.pending, outcome.progress = dataclasses.asdict(progress), lines or [line]
            return outcome
        _await(session, {one.name: one for one in joining}, clock, progress.until)


def _outcome(
    settings: Settings, session: Session, judgement: Judgement, progress: Progress, lines: list[str]
) -> Outcome:
    nodes = {name for identity in session.policy.expected.identities for name in identity.node_names} & set(
        session.nodes
    )
    values = {
        "approved": progress.approved,
        "denied": progress.denied,
        "missing_nodes": sorted(
            identity.name for identity in session.policy.expected.identities if not identity.node_names & nodes
        ),
        **report.ignored(judgement),
    }
    return Outcome(bool(progress.approved or progress.denied), values, progress=lines)


def _not_joined(settings: Settings, session: Session, judgement: Judgement, joining: list[Joining]) -> NotJoined:
    by_name = {identity.name: identity for identity in session.policy.expected.identities}
    left = [one for one in joining if not one.done]
    what = f"{len(left)} of {len(joining)} expected nodes are not complete after {settings.wait_timeout:g} s"
    return NotJoined(what, [report.waiting_for(one, judgement, by_name[one.name]) for one in left])


def _flood(judgement: Judgement) -> HwaccelError | None:
    if judgement.flood is None:
        return None
    pending, limit = judgement.flood
    why = f"{pending} requests of the last hour are pending, and the limit is {limit}"
    step = "find out who files so many requests (kubectl get csr); raise max_pending if so many machines join at once"
    return HwaccelError("no request is approved", "max_pending", why, step)


def _await(session: Session, joining: dict[str, Joining], clock: Clock, until: float) -> None:
    """Returns at the first event that can matter: a request, or a change of an expected node that is not complete."""
    names = {
        name for one in joining.values() if not one.done for name in (one.name, one.node, one.name.partition(".")[0])
    }
    for kind in sorted(session.policy.signers):
        if _event(session, reads.CSR, session.found.versions[kind], reads.selector(kind), None, clock, until):
            return
    _event(session, reads.NODE, session.nodes_version, "", names, clock, until)


def _event(
    session: Session,
    resource: Resource,
    version: str,
    selector: str,
    names: set[str] | None,
    clock: Clock,
    until: float,
) -> bool:
    """Whether an object of these names (None: any) has changed since the list, within a turn."""
    deadline = clock.monotonic() + min(_TURN, max(0.0, until - clock.now()))
    if clock.deadline is not None:
        deadline = min(deadline, clock.deadline)
    try:
        events = session.client.watch(
            resource, resource_version=version, field_selector=selector, metadata_only=True, deadline=deadline
        )
        return any(
            event.type != "BOOKMARK" and (names is None or event.object["metadata"]["name"] in names)
            for event in events
        )
    except Gone:
        return True
