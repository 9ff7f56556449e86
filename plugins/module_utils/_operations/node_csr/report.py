# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results and messages of an approver."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.identities import NodeIdentity
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.judgement import Judgement
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.reasons import REASONS
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import RequestVerdict
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some

#: Refused requests in a result. A flood has thousands, which nobody reads.
MOST_IGNORED = 200
_LONGEST_WHY = 500


@dataclasses.dataclass(frozen=True)
class Joining:
    """An expected node. node: the name of its Node, "" if there is none. waiting: why it is not done, "" if it is."""

    name: str
    node: str
    waiting: str

    @property
    def done(self) -> bool:
        return not self.waiting


def row(verdict: RequestVerdict) -> dict[str, t.Any]:
    """A request in results."""
    return {"name": verdict.request.name, "node": verdict.node, "signer": verdict.request.kind}


def approved(verdict: RequestVerdict) -> dict[str, t.Any]:
    return row(verdict) | {"renewal": verdict.renewal}


def refused(verdict: RequestVerdict) -> dict[str, t.Any]:
    return row(verdict) | {
        "reason_code": verdict.code,
        "detail": verdict.why[:_LONGEST_WHY],
        "text": str(fault(verdict)),
    }


def fault(verdict: RequestVerdict) -> Fault:
    what = f"{verdict.node or 'unknown node'}: {verdict.request.kind} request {verdict.request.name} is not approved"
    return Fault(what, verdict.code, verdict.why[:_LONGEST_WHY], REASONS[verdict.code].next_step)


def ignored(judgement: Judgement) -> dict[str, t.Any]:
    found = judgement.refused
    return {"ignored": [refused(verdict) for verdict in found[:MOST_IGNORED]], "ignored_count": len(found)}


def waiting_for(joining: Joining, judgement: Judgement, identity: NodeIdentity) -> Fault:
    """Why an expected node has not joined, with the refused request that is the cause if there is one."""
    causes = [verdict for verdict in judgement.refused if verdict.node in identity.node_names]
    if causes:
        cause = fault(causes[-1])
        return Fault(
            f"node {joining.name}: {joining.waiting}", cause.where, f"{cause.what}: {cause.why}", cause.next_step
        )
    step = "check the kubelet's log on the machine (journalctl -u kubelet), and run again to continue"
    return Fault(f"node {joining.name} is not complete", "", joining.waiting, step)


def line(judgement: Judgement, joining: c.Sequence[Joining], written: int, wait: bool) -> str:
    parts = [f"{written} {'request' if written == 1 else 'requests'} approved"]
    if refused_now := judgement.refused:
        codes = sorted({verdict.code for verdict in refused_now})
        parts.append(f"{len(refused_now)} not approved ({', '.join(codes)})")
    if wait:
        left = [f"{one.name}: {one.waiting}" for one in joining if not one.done]
        parts.append(f"{len(joining) - len(left)} of {len(joining)} expected nodes are complete")
        parts += [f"waiting for {some(left)}"] * bool(left)
    return ", ".join(parts)
