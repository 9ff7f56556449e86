# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on all requests together: a flood, copies, and several requests of one machine. Pure, except for the function that asks kubelets."""

from __future__ import annotations

import collections
import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval import renewal, rules
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.renewal import RENEWABLE, Authorities, Served
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.requests import SigningRequest
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import (
    ApprovalPolicy,
    ObservedCluster,
    RequestVerdict,
)

#: As cluster-machine-approver: pending requests of the last hour beyond the number of machines (pkg/controller/csr_check.go, maxPendingDelta).
_RECENT, _BEYOND_MACHINES = 3600.0, 100


@dataclasses.dataclass(frozen=True)
class Kubelets:
    """How kubelets are asked which certificate they serve with: by names of Nodes. authorities: of the certificates that they should have."""

    ask: c.Callable[[c.Collection[str]], c.Mapping[str, Served]]
    authorities: c.Callable[[], Authorities]


@dataclasses.dataclass(frozen=True)
class Judgement:
    """verdicts: on all requests that are not approved yet, oldest first. flood: number and limit of pending requests, None if there are not too many."""

    verdicts: tuple[RequestVerdict, ...]
    flood: tuple[int, int] | None = None

    @property
    def approved(self) -> tuple[RequestVerdict, ...]:
        """Client requests first: between the list of Nodes and their approval there is the least time."""
        found = (verdict for verdict in self.verdicts if verdict.approved)
        return tuple(sorted(found, key=lambda verdict: verdict.request.kind != "client"))

    @property
    def refused(self) -> tuple[RequestVerdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.approved)


def judge(
    requests: c.Iterable[SigningRequest], policy: ApprovalPolicy, observed: ObservedCluster, kubelets: Kubelets
) -> Judgement:
    """requests: all of the two signers, also those that are decided."""
    every = sorted(requests, key=_age)
    if flood := _flood(every, policy, observed):
        why = f"{flood[0]} requests are pending, more than the limit of {flood[1]}"
        pending = (request for request in every if request.pending)
        return Judgement(
            tuple(RequestVerdict(request, request.requestor_node, "FLOOD", why) for request in pending), flood
        )
    verdicts = [rules.judged(request, policy, observed) for request in every]
    verdicts = _with_renewals(verdicts, observed, kubelets)
    for resolve in (_keys, _names, _newest):
        verdicts = resolve(verdicts)
    return Judgement(tuple(verdict for verdict in verdicts if not _is_approved(verdict.request)))


def _age(request: SigningRequest) -> tuple[float, bool, str]:
    """Times have no more than seconds: of the same second, a request that is pending was filed after one that is approved."""
    return request.created, not _is_approved(request), request.name


def _is_approved(request: SigningRequest) -> bool:
    return "Approved" in request.conditions or request.issued


def _flood(
    requests: c.Sequence[SigningRequest], policy: ApprovalPolicy, observed: ObservedCluster
) -> tuple[int, int] | None:
    limit = policy.max_pending
    if limit is None:
        limit = max(len(policy.expected), len(observed.nodes)) + _BEYOND_MACHINES
    count = sum(request.pending and observed.now - request.created <= _RECENT for request in requests)
    return (count, limit) if count > limit else None


def _with_renewals(
    verdicts: c.Sequence[RequestVerdict], observed: ObservedCluster, kubelets: Kubelets
) -> list[RequestVerdict]:
    candidates = {
        verdict.node
        for verdict in verdicts
        if _is_renewable(verdict) and verdict.request.pending and verdict.node in observed.nodes
    }
    if not candidates:
        return list(verdicts)
    served, authorities = kubelets.ask(candidates), kubelets.authorities()
    return [
        renewal.renewed(verdict, served[verdict.node], authorities, observed.now)
        if _is_renewable(verdict) and verdict.node in served
        else verdict
        for verdict in verdicts
    ]


def _is_renewable(verdict: RequestVerdict) -> bool:
    return verdict.request.kind == "serving" and verdict.code in RENEWABLE


def _keys(verdicts: c.Sequence[RequestVerdict]) -> list[RequestVerdict]:
    """A key belongs to one node. Approved requests count as well. Other refusals keep their reason."""
    owners: dict[str, set[str]] = collections.defaultdict(set)
    for verdict in verdicts:
        if verdict.fingerprint:
            owners[verdict.fingerprint].add(verdict.node)
    return [
        verdict.refused("KEY_REUSED", f"requests of {', '.join(sorted(owners[verdict.fingerprint]))} have the same key")
        if verdict.approved and len(owners[verdict.fingerprint]) > 1
        else verdict
        for verdict in verdicts
    ]


def _names(verdicts: c.Sequence[RequestVerdict]) -> list[RequestVerdict]:
    """One machine is one node: the name that was approved before, or that asked first, stays."""
    first: dict[str, str] = {}
    for verdict in sorted(verdicts, key=lambda one: not _is_approved(one.request)):
        if verdict.approved or _is_approved(verdict.request):
            first.setdefault(verdict.machine, verdict.node)
    return [
        verdict.refused("TWO_NAMES", f"the same machine has requested a certificate as {first[verdict.machine]}")
        if _is_candidate(verdict) and first[verdict.machine] != verdict.node
        else verdict
        for verdict in verdicts
    ]


def _newest(verdicts: c.Sequence[RequestVerdict]) -> list[RequestVerdict]:
    """The kubelet files another request after its time-out, with another key, and forgets the older one.

    An approved request counts as well: a pending one that is older is not of a kubelet that waits for it.
    """
    newest = {
        (verdict.node, verdict.request.kind): verdict.request
        for verdict in verdicts
        if verdict.approved or _is_approved(verdict.request)
    }
    return [
        verdict.refused("SUPERSEDED", f"{newest[verdict.node, verdict.request.kind].name} is newer")
        if _is_candidate(verdict) and newest[verdict.node, verdict.request.kind] is not verdict.request
        else verdict
        for verdict in verdicts
    ]


def _is_candidate(verdict: RequestVerdict) -> bool:
    return verdict.approved and not _is_approved(verdict.request)
