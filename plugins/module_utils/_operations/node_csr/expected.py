# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far expected nodes are: joined, Ready, and serving with a certificate of the cluster."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval import renewal
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.identities import NodeIdentity
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.report import Joining
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.session import Session

#: Kubelets that are asked in one round: two batches, which take ten seconds if none answers.
_MOST_ASKED = 32


class Kept(t.Protocol):
    """What rounds remember. serving: nodes that serve with a certificate of the signer. asked: nodes whose kubelets were asked, the last ones at the end."""

    serving: list[str]
    asked: list[str]


def joining(session: Session, kept: Kept | None) -> list[Joining]:
    """All expected nodes, by name. kept: None if they need no serving certificates."""
    nodes = {identity.name: _node_of(identity, session) for identity in session.policy.expected.identities}
    ready = [node for node in nodes.values() if node and not session.nodes[node].waiting]
    lacking = _lacking(session, ready, kept) if kept is not None else {}
    return [Joining(name, node, _waiting(session, node, lacking)) for name, node in sorted(nodes.items())]


def _node_of(identity: NodeIdentity, session: Session) -> str:
    return next((name for name in sorted(identity.node_names, key=len, reverse=True) if name in session.nodes), "")


def _lacking(session: Session, nodes: list[str], kept: Kept) -> dict[str, str]:
    """Nodes that do not serve with a certificate of the signer, as far as known, with the reason.

    A kubelet that does not answer takes seconds, so only some are asked in one round, those that have waited longest first.
    """
    left = [name for name in nodes if name not in kept.serving]
    if not left:
        return {}
    asked = sorted(left, key=lambda name: kept.asked.index(name) if name in kept.asked else -1)[:_MOST_ASKED]
    kept.asked = [name for name in kept.asked if name not in asked] + asked
    authorities, served = session.authorities(), session.served(asked)
    problems = {
        name: ""
        if served[name].unreachable and session.issued(name)
        else renewal.serves(served[name], authorities, session.now)
        for name in asked
    }
    kept.serving += [name for name, problem in problems.items() if not problem]
    return {name: problem for name in left if (problem := problems.get(name, "its kubelet is asked next"))}


def _waiting(session: Session, node: str, lacking: dict[str, str]) -> str:
    if not node:
        return "it has not joined"
    if reason := session.nodes[node].waiting:
        return f"it is not Ready: {reason}"
    return f"it has no serving certificate: {lacking[node]}" if node in lacking else ""
