# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Permissions of an approver, and those that are missing: all of them in one error."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.profiles import KINDS
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import ApprovalPolicy
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import (
    CONFIG_MAP,
    CSR,
    MACHINE,
    MACHINES_NAMESPACE,
    NODE,
    SIGNER,
)

_NEXT = "bind a ClusterRole with it: examples/csr-approver has one"


def missing(client: Client, policy: ApprovalPolicy, *, watches: bool, authority: bool) -> list[Fault]:
    """One error for each permission that access reviews refuse.

    watches: whether the run waits. authority: whether it reads the CA of serving certificates.
    """
    signers = [KINDS[kind] for kind in sorted(policy.signers)]
    machines = [("list", MACHINE, MACHINES_NAMESPACE, "", "")] if policy.profile.machines else []
    namespace, name, _key = policy.profile.authority
    questions = [
        ("list", CSR, "", "", ""),
        ("get", CSR, "", "", ""),
        ("update", CSR, "", "", "approval"),
        *(("approve", SIGNER, "", signer, "") for signer in signers),
        ("list", NODE, "", "", ""),
        ("get", NODE, "", "", ""),
        *machines,
        *((("watch", CSR, "", "", ""), ("watch", NODE, "", "", "")) if watches else ()),
        *((("get", CONFIG_MAP, namespace, name, ""),) if authority else ()),
    ]
    found = []
    for verb, resource, space, named, subresource in questions:
        if not client.allowed(verb, resource, space, named, subresource):
            group = f".{resource.group}" if resource.group else ""
            full = f"{resource.plural}{'/' + subresource if subresource else ''}{group}{' ' + named if named else ''}"
            where = f"in namespace {space}" if space else "cluster-wide"
            found.append(Fault(f"permission to {verb} {full} is missing", where, "RBAC refuses it", _NEXT))
    return found
