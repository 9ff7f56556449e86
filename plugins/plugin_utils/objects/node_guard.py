# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission policies that restrict node agents to their own node, as far as a Kubernetes version can enforce them."""

from __future__ import annotations

import collections.abc as c
import copy

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import Manifest, StagePlan

#: admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy, https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
_POLICIES_FROM = (1, 30)
#: ServiceAccountTokenPodNodeInfo: beta and enabled since 1.30, stable and locked since 1.32, so that a cluster may have disabled it before
#: (https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/).
_NODE_NAMED_FROM = (1, 32)
#: Expression of the policies for the node in a token, "" if there is none.
_NODE = "variables.node"
_GROUP = "admissionregistration.k8s.io/"


def fitted(manifests: c.Iterable[Manifest], version: tuple[int, int], agent: str, made: StagePlan) -> list[Manifest]:
    """The manifests without policies that this version cannot enforce. Notes of the plan report what is not enforced.

    agent: name of the restricted agent, for messages.
    """
    found = list(manifests)
    if not any(one["apiVersion"].startswith(_GROUP) for one in found) or version >= _NODE_NAMED_FROM:
        return found
    release = ".".join(map(str, version))
    if version < _POLICIES_FROM:
        made.notes.append(
            f"Kubernetes {release} has no admission policies: {agent} may write data of every node, and so may a stolen token"
        )
        return [one for one in found if not one["apiVersion"].startswith(_GROUP)]
    made.notes.append(
        f"Kubernetes {release}: {agent} is only restricted to its own node if the API server's tokens name the node (the default)"
    )
    return [_lenient(one) if one["kind"] == "ValidatingAdmissionPolicy" else one for one in found]


def _lenient(policy: Manifest) -> Manifest:
    """If a token does not name its node, any node is accepted."""
    policy = copy.deepcopy(policy)
    for rule in policy["spec"]["validations"]:
        if _NODE in rule["expression"]:
            rule["expression"] = f'{_NODE} == "" || ({rule["expression"]})'
    return policy
