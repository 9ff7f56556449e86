# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Permissions of a wait, and those that are missing: all of them in one error."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import ApprovalPolicy
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import rights
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait import world

_NEXT = "use auth/kubeconfig of the installation, or bind the roles of examples/csr-approver"


def missing(client: Client, policy: ApprovalPolicy | None) -> list[Fault]:
    """One error for each permission that access reviews refuse."""
    found = []
    for verb, resource, namespace, name in world.needed():
        if not client.allowed(verb, resource, namespace, name):
            kind = f"{resource.plural}{'.' + resource.group if resource.group else ''}"
            where = f"in namespace {namespace}" if namespace else "cluster-wide"
            found.append(Fault(f"permission to {verb} {kind} is missing", where, "RBAC refuses it", _NEXT))
    if policy is not None:
        known = {fault.what for fault in found}
        found += [one for one in rights.missing(client, policy, watches=True, authority=True) if one.what not in known]
    return found
