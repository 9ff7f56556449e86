# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approves requests of expected nodes while an install is waited for: a round of node_csr_approve when something has changed."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.judgement import Judgement
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.renewal import Authorities
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import ApprovalPolicy
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import Request
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import expected, reads, report
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.session import Ask, Session


class _Session(Session):
    """Before the operators have started, nobody can have a serving certificate of the cluster, and that must not end the wait."""

    def authorities(self) -> Authorities:
        try:
            return super().authorities()
        except reads.UnknownAuthority:
            return Authorities("")


@dataclasses.dataclass
class Approvals:
    """State between slices, in JSON. serving, asked: as in `expected.Kept`. at: time.time() of the last round, 0 before the first one.

    approved: rows of the result. ignored, ignored_count: of the last round. waiting: why expected nodes are not complete, by name. requests: fields of Request.
    """

    serving: list[str] = dataclasses.field(default_factory=list)
    asked: list[str] = dataclasses.field(default_factory=list)
    at: float = 0.0
    approved: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    ignored: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    ignored_count: int = 0
    waiting: dict[str, str] = dataclasses.field(default_factory=dict)
    missing: list[str] = dataclasses.field(default_factory=list)
    complete: list[str] = dataclasses.field(default_factory=list)
    requests: list[dict[str, str]] = dataclasses.field(default_factory=list)

    def round(
        self, policy: ApprovalPolicy, client: Client, clock: Clock, ask: Ask, serving_ca: str, *, check_mode: bool
    ) -> None:
        """Approves what there is, and in check mode only collects it. What was approved before an error ends a round is kept."""
        session = _Session(client, clock, policy, ask, serving_ca)
        judgement = session.judge()
        if check_mode:
            self.approved += [report.approved(one) for one in judgement.approved if one.request.pending]
        else:
            try:
                session.write(judgement, deny=False)
            finally:
                self.approved += map(report.approved, session.done.approved)
        ignored = report.ignored(judgement)
        self.ignored, self.ignored_count = ignored["ignored"], ignored["ignored_count"]
        self.requests = [dataclasses.asdict(one) for one in _requests(judgement)]
        joining = expected.joining(session, self)
        self.waiting = {one.name: one.waiting for one in joining if not one.done}
        self.missing = [one.name for one in joining if not one.node]
        self.complete = [one.name for one in joining if one.done]
        self.at = clock.now()


def _requests(judgement: Judgement) -> list[Request]:
    """Those that are not approved, of which a flood has thousands."""
    refused = judgement.refused[: report.MOST_IGNORED]
    return [Request(one.request.name, one.node, one.code, str(report.fault(one))) for one in refused]
