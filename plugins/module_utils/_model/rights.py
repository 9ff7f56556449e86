# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Permissions that access reviews refuse, and the messages about them."""

from __future__ import annotations

import collections.abc as c

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource

#: verb, resource, group, namespace
Right = tuple[str, str, str, str]
#: verb, resource, subresource
Question = tuple[str, Resource, str]


def refused(client: Client, questions: c.Iterable[Question], namespace: str) -> list[Right]:
    """Permissions that access reviews refuse, one request each. namespace: "" means all namespaces."""
    found = []
    for verb, resource, subresource in questions:
        where = namespace if resource.namespaced else ""
        if not client.allowed(verb, resource, where, subresource=subresource):
            found.append(
                (verb, f"{resource.plural}/{subresource}" if subresource else resource.plural, resource.group, where)
            )
    return found


def faults(rights: c.Sequence[Right]) -> list[Fault]:
    """One error for each verb and resource, regardless of the number of objects that need it."""
    result = []
    for verb, resource, group, namespace in rights:
        full = f"{resource}.{group}" if group else resource
        where = f"in namespace {namespace}" if namespace else "cluster-wide"
        result.append(
            Fault(
                f"permission to {verb} {full} is missing",
                where,
                "RBAC refuses it",
                "bind a Role or ClusterRole with it",
            )
        )
    return result


def as_dicts(rights: c.Sequence[Right]) -> list[dict[str, str]]:
    return [
        {"verb": verb, "resource": resource, "group": group, "namespace": namespace}
        for verb, resource, group, namespace in rights
    ]
