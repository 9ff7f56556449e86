# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for one request, in the order in which they are checked. Pure.

They are those of cluster-machine-approver (openshift/cluster-machine-approver, pkg/controller/csr_check.go), with the inventory in place of Machine
objects, and stricter where its signers would refuse later, or where it relies on a Machine: see docs/approving-certificates.md.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval import identities
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.identities import ExpectedNodes, NodeIdentity
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.profiles import (
    AUTHENTICATED,
    KINDS,
    NODE_PREFIX,
    NODES,
    JoinProfile,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.requests import (
    RequestedCertificate,
    SigningRequest,
    read,
)

#: What a kubelet requests with an ECDSA key. With an RSA key it requests key encipherment as well (client-go, util/certificate).
_USAGES = {"client": ("client auth", "digital signature"), "serving": ("digital signature", "server auth")}
_ENCIPHERMENT = "key encipherment"
#: Set by the authenticators of newer API servers, not by whoever files the request (apiserver, pkg/authentication/user: CredentialIDKey).
_HARMLESS_EXTRA = "authentication.kubernetes.io/credential-id"
#: A year, which is the default of kube-controller-manager (--cluster-signing-duration). Kubelets request no duration.
LONGEST_EXPIRATION = 366 * 24 * 3600

Finding = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class ApprovalPolicy:
    """Options that decide. max_age: seconds. allow_rejoin: names of nodes whose Node may exist."""

    profile: JoinProfile
    expected: ExpectedNodes
    signers: frozenset[str] = frozenset(KINDS)
    max_age: float = 7200.0
    max_pending: int | None = None
    allow_rejoin: frozenset[str] = frozenset()
    strict_addresses: bool = False


@dataclasses.dataclass(frozen=True)
class ObservedCluster:
    """now: seconds since 1970 by the server's clock. nodes: names and addresses of each Node's status. machines: nodes that have a Machine object."""

    now: float
    nodes: c.Mapping[str, frozenset[str]]
    machines: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class RequestVerdict:
    """code: of `reasons`, "" if the request is to be approved. renewal: it has the names of the node's current serving certificate.

    machine: name of the expected node, or of the Node where the inventory has none.
    """

    request: SigningRequest
    node: str
    code: str = ""
    why: str = ""
    machine: str = ""
    fingerprint: str = ""
    renewal: bool = False

    @property
    def approved(self) -> bool:
        return not self.code

    def refused(self, code: str, why: str) -> RequestVerdict:
        return dataclasses.replace(self, code=code, why=why)


def judged(request: SigningRequest, policy: ApprovalPolicy, observed: ObservedCluster) -> RequestVerdict:
    """The verdict on one request without regard to others."""
    content = RequestedCertificate()
    finding = _undecided(request, policy)
    if finding is None:
        content = read(request.pem)
        finding = _requested(request, content, policy)
    node = _node(content, request)
    identity, unknown = policy.expected.find(node)
    finding = finding or _place(request, content, policy, observed, node, identity, unknown)
    code, why = finding or ("", "")
    return RequestVerdict(request, node, code, why, identity.name if identity else node, content.fingerprint)


def _node(content: RequestedCertificate, request: SigningRequest) -> str:
    """For messages and results: the node that it names, or that filed it."""
    named = content.common_name
    return named.removeprefix(NODE_PREFIX) if named.startswith(NODE_PREFIX) else request.requestor_node


def _undecided(request: SigningRequest, policy: ApprovalPolicy) -> Finding | None:
    if request.kind not in policy.signers:
        return "UNKNOWN_SIGNER", f"its signer is {request.signer or 'missing'}"
    for condition, code in (("Denied", "DENIED"), ("Failed", "FAILED")):
        if condition in request.conditions:
            return code, f"it has the condition {condition}"
    return None


def _requested(request: SigningRequest, content: RequestedCertificate, policy: ApprovalPolicy) -> Finding | None:
    """What the request is by itself, without the cluster and the inventory."""
    faults = content.faults
    if "BAD_PEM" in faults:
        return "BAD_PEM", faults["BAD_PEM"]
    checks = (
        _requestor(request, policy),
        _usages(request),
        _subject(request, content),
        *((code, faults[code]) for code in ("BAD_KEY", "BAD_SIGNATURE", "BAD_EXTENSION") if code in faults),
        _alternative(request, content),
        _expiration(request),
    )
    return next((found for found in checks if found is not None), None)


def _requestor(request: SigningRequest, policy: ApprovalPolicy) -> Finding | None:
    if strange := sorted(set(request.extra) - {_HARMLESS_EXTRA}):
        return "BAD_REQUESTOR", f"the identity of {request.username} has extra fields: {', '.join(strange)}"
    if request.kind == "client":
        if policy.profile.is_requestor(request.username, request.groups):
            return None
        if request.requestor_node:
            why = "only a node's first request is approved here, kube-controller-manager approves renewals itself"
            return "BAD_REQUESTOR", f"it was filed by {request.username}: {why}"
        groups = ", ".join(sorted(request.groups))
        return (
            "BAD_REQUESTOR",
            f"it was filed by {request.username} (groups {groups}), no bootstrap identity of profile {policy.profile.name}",
        )
    if not identities.is_node_name(request.requestor_node):
        return "BAD_REQUESTOR", f"it was filed by {request.username or 'nobody'}, which is no node"
    if missing := sorted({NODES, AUTHENTICATED} - set(request.groups)):
        return "BAD_REQUESTOR", f"{request.username} is not in the group {' and '.join(missing)}"
    return None


def _usages(request: SigningRequest) -> Finding | None:
    needed = _USAGES[request.kind]
    if sorted(request.usages) in (sorted(needed), sorted((*needed, _ENCIPHERMENT))):
        return None
    usages = ", ".join(sorted(request.usages)) or "none"
    return (
        "BAD_USAGE",
        f"it requests the usages {usages}; a kubelet's are {' and '.join(needed)}, and with RSA {_ENCIPHERMENT}",
    )


def _subject(request: SigningRequest, content: RequestedCertificate) -> Finding | None:
    if "BAD_SUBJECT" in content.faults:
        return "BAD_SUBJECT", content.faults["BAD_SUBJECT"]
    if content.organizations != (NODES,):
        groups = ", ".join(content.organizations) or "none"
        return "BAD_SUBJECT", f"its organizations are {groups}; a node's is {NODES} alone"
    name = content.common_name
    if not name.startswith(NODE_PREFIX) or not identities.is_node_name(name.removeprefix(NODE_PREFIX)):
        return "BAD_SUBJECT", f"its common name {name[:100]!r} is not {NODE_PREFIX} and the name of a node"
    if request.kind == "serving" and name != request.username:
        return "BAD_SUBJECT", f"{request.username} requests a certificate for {name}"
    return None


def _alternative(request: SigningRequest, content: RequestedCertificate) -> Finding | None:
    if request.kind == "client":
        return (
            ("SAN_NOT_ALLOWED", f"a client certificate has no names, and it requests {_listed(content)}")
            if content.has_names
            else None
        )
    if content.other_names:
        return (
            "SAN_NOT_ALLOWED",
            f"it requests {', '.join(content.other_names)}, and kubelets request DNS names and addresses only",
        )
    return None if content.has_names else ("NO_SAN", "it requests neither a DNS name nor an address")


def _expiration(request: SigningRequest) -> Finding | None:
    seconds = request.expiration
    if seconds is None or seconds <= LONGEST_EXPIRATION:
        return None
    return "BAD_EXPIRATION", f"it requests a certificate for {seconds // 86400} days; kubelets leave that to the signer"


def _place(
    request: SigningRequest,
    content: RequestedCertificate,
    policy: ApprovalPolicy,
    observed: ObservedCluster,
    node: str,
    identity: NodeIdentity | None,
    unknown: str,
) -> Finding | None:
    """Whether the cluster and the inventory have the node, under this name."""
    if node in observed.machines:
        return "MACHINE_EXISTS", "the node has a Machine object"
    if request.kind == "serving" and node not in observed.nodes:
        return "NODE_MISSING", f"there is no Node {node}"
    age = observed.now - request.created
    if age > policy.max_age:
        return "TOO_OLD", f"it was filed {age:.0f} s ago, and max_age is {policy.max_age:g} s"
    if identity is None:
        return "NOT_IN_INVENTORY", unknown
    if others := sorted(name for name in identity.node_names - {node} if name in observed.nodes):
        return "TWO_NAMES", f"Node {others[0]} is the same machine"
    if request.kind == "serving":
        return _names_allowed(content, identity, policy, observed.nodes[node])
    if node in observed.nodes and node not in policy.allow_rejoin:
        return "NODE_EXISTS", f"Node {node} exists, and has its client certificate"
    return None


def _names_allowed(
    content: RequestedCertificate, identity: NodeIdentity, policy: ApprovalPolicy, of_node: frozenset[str]
) -> Finding | None:
    names = [name for name in content.dns_names if name.lower() not in identity.names]
    addresses = [address for address in content.addresses if address not in identity.addresses]
    if names or addresses:
        has = ", ".join(sorted((*identity.names, *identity.addresses)))
        return "SAN_NOT_ALLOWED", f"it requests {', '.join((*names, *addresses))}; the inventory has {has}"
    if policy.strict_addresses:
        known = {identities.plain(value) for value in of_node}
        if beyond := [one for one in (*content.dns_names, *content.addresses) if one.lower() not in known]:
            return (
                "SAN_NOT_ALLOWED",
                f"it requests {', '.join(beyond)}; the status of its Node has {', '.join(sorted(of_node)) or 'nothing'}",
            )
    return None


def _listed(content: RequestedCertificate) -> str:
    return ", ".join((*content.dns_names, *content.addresses, *content.other_names))
