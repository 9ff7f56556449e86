# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at the cluster, the verdicts on its requests, and their approval: one write for each."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import time

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.judgement import Judgement, Kubelets, judge
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.reasons import REASONS
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.renewal import Authorities, Served
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import (
    ApprovalPolicy,
    ObservedCluster,
    RequestVerdict,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import parallel
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Conflict, HwaccelError, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import reads
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import CSR, NODE, ObservedNode

FIELD_MANAGER = "hwaccel-gpu-node-csr-approve"
#: Reasons of conditions are one word (apimachinery, meta/v1). cluster-machine-approver's is NodeCSRApprove.
APPROVED_REASON, DENIED_REASON = "HwaccelNodeCSRApprove", "HwaccelNodeCSRDeny"
#: Conflicts with other writers of the same request in a row before the run fails.
_ATTEMPTS = 8
#: Seconds after which Nodes are read again before a client request is approved: one of that name may have appeared.
NODES_AGE = 5.0
_DIALS = 16
#: Seconds that a kubelet may file its first serving request before its Node is created.
BEFORE_NODE = 60.0

Ask = c.Callable[[str, int], bytes]


@dataclasses.dataclass
class Done:
    """Verdicts that were written."""

    approved: list[RequestVerdict] = dataclasses.field(default_factory=list)
    denied: list[RequestVerdict] = dataclasses.field(default_factory=list)


class Session:
    """What one round has read. ask: a kubelet's serving certificate by address and port, see `_api.kubelets`."""

    def __init__(self, client: Client, clock: Clock, policy: ApprovalPolicy, ask: Ask, serving_ca: str = "") -> None:
        self.client, self.clock, self.policy, self._ask = client, clock, policy, ask
        self._authorities = Authorities(serving_ca) if serving_ca else None
        self._served: dict[str, Served] = {}
        #: By the name of the request, from the last judgement.
        self._verdicts: dict[str, RequestVerdict] = {}
        self.done = Done()
        self.found = reads.requests(client, policy.signers)
        self.machines = reads.machines(client, policy.profile)
        # Last, so that no request is judged by Nodes that are older than the request.
        self.read_nodes()

    def read_nodes(self) -> None:
        self.nodes, self.nodes_version = reads.nodes(self.client)
        self._nodes_at = self.clock.monotonic()

    @property
    def now(self) -> float:
        """By the server's clock, which has dated the requests."""
        server = self.client.server_time()
        return self.clock.now() if server is None else server

    def authorities(self) -> Authorities:
        if self._authorities is None:
            self._authorities = reads.authorities(self.client, self.policy.profile)
        return self._authorities

    def judge(self) -> Judgement:
        observed = ObservedCluster(self.now, {name: node.addresses for name, node in self.nodes.items()}, self.machines)
        kubelets = Kubelets(self.served, self.authorities)
        judgement = judge(self.found.requests.values(), self.policy, observed, kubelets)
        self._verdicts = {verdict.request.name: verdict for verdict in judgement.verdicts}
        return judgement

    def served(self, names: c.Collection[str]) -> dict[str, Served]:
        """What kubelets of these nodes serve with. Each is asked once."""
        missing = sorted(name for name in names if name in self.nodes and name not in self._served)
        answers = parallel.map_all(self._dial, [self.nodes[name] for name in missing], _DIALS)
        for name, answer in zip(missing, answers, strict=True):
            self._served[name] = answer if isinstance(answer, Served) else Served(unreachable=str(answer.faults[0]))
        return {name: self._served[name] for name in names if name in self._served}

    def _dial(self, node: ObservedNode) -> Served:
        if not node.address:
            return Served(unreachable="the status of the Node has no InternalIP")
        return Served(self._ask(node.address, node.port))

    def issued(self, name: str) -> bool:
        """Whether the signer has issued a serving certificate for this Node, and not for an earlier one of its name."""
        since = self.nodes[name].created - BEFORE_NODE
        return any(
            request.issued and request.kind == "serving" and request.requestor_node == name and request.created >= since
            for request in self.found.requests.values()
        )

    def write(self, judgement: Judgement, *, deny: bool) -> Done:
        """Writes verdicts, of which each is judged again if something has changed since. `done` has those that were written also if an error ends it."""
        done = self.done = Done()
        for verdict in judgement.approved:
            if written := self._write(verdict.request.name, deny=False):
                done.approved.append(written)
        for verdict in judgement.refused if deny else ():
            if written := self._write(verdict.request.name, deny=True):
                done.denied.append(written)
        return done

    def _write(self, name: str, *, deny: bool) -> RequestVerdict | None:
        """The verdict that was written, None if there is none any more: the request is gone or decided, or has another verdict."""
        for _attempt in range(_ATTEMPTS):
            verdict = self._current(name)
            if verdict is None or not writable(verdict, deny=deny):
                return None
            try:
                # The uid and the resourceVersion are preconditions: what is approved is what was judged.
                written = self.client.replace(
                    self._decided(verdict, deny=deny), CSR, field_manager=FIELD_MANAGER, subresource="approval"
                )
            except (Conflict, NotFound):
                self._read_again(name, verdict.node)
            else:
                reads.keep(self.found, written.object)
                return verdict
        why = f"another client wrote it each time, {_ATTEMPTS} times in a row"
        raise HwaccelError(
            f"deciding request {name}", "", why, "find out what writes the request so often, and run again"
        )

    def _current(self, name: str) -> RequestVerdict | None:
        """The verdict by what is known now, None if the request is approved or gone."""
        verdict = self._verdicts.get(name)
        is_client = verdict is not None and verdict.request.kind == "client"
        if is_client and self.clock.monotonic() - self._nodes_at > NODES_AGE:
            self.read_nodes()
            self.judge()
        return self._verdicts.get(name)

    def _read_again(self, name: str, node: str) -> None:
        """The request and its Node, and all verdicts that depend on them."""
        self.found.requests.pop(name, None)
        try:
            reads.keep(self.found, self.client.get(CSR, name))
        except NotFound:
            self.found.pending.pop(name, None)
        try:
            self.nodes[node] = reads.node(self.client.get(NODE, node))
        except NotFound:
            self.nodes.pop(node, None)
        self.judge()

    def _decided(self, verdict: RequestVerdict, *, deny: bool) -> reads.Obj:
        """The object as it was read, with one condition more."""
        obj = self.found.pending[verdict.request.name]
        status = obj.get("status") or {}
        machine = f"of {verdict.machine} " if verdict.machine else ""
        basis = "renews the node's current certificate" if verdict.renewal else "is as the inventory has it"
        condition = {
            "type": "Denied" if deny else "Approved",
            "status": "True",
            "reason": DENIED_REASON if deny else APPROVED_REASON,
            "message": f"hwaccel.gpu.node_csr_approve: {verdict.code}: {verdict.why}"
            if deny
            else f"hwaccel.gpu.node_csr_approve: the {verdict.request.kind} request {machine}{basis}",
            "lastUpdateTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now)),
        }
        return obj | {"status": status | {"conditions": [*(status.get("conditions") or ()), condition]}}


def writable(verdict: RequestVerdict, *, deny: bool) -> bool:
    """Only reasons that last are denied: a denial cannot be taken back."""
    if not verdict.request.pending:
        return False
    return REASONS[verdict.code].permanent if deny and verdict.code else verdict.approved and not deny
