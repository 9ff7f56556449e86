# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission policies that hold node agents to what is of their own node, as far as a Kubernetes version can enforce them."""

from __future__ import annotations

import collections.abc as c
import copy

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import Manifest, StagePlan

#: admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy, https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
_POLICIES_FROM = (1, 30)
#: ServiceAccountTokenPodNodeInfo: beta and on from 1.30, stable and locked from 1.32, so that before a cluster may have switched it off
#: (https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/).
_NODE_NAMED_FROM = (1, 32)
#: How the policies write the node that a token names, "" where it names none.
_NODE = "variables.node"
_GROUP = "admissionregistration.k8s.io/"


def fitted(manifests: c.Iterable[Manifest], version: tuple[int, int], agent: str, made: StagePlan) -> list[Manifest]:
    """The manifests without what this version cannot enforce; notes of the plan tell what then is not enforced.

    agent: whom the policies hold, for people.
    """
    found = list(manifests)
    if not any(one["apiVersion"].startswith(_GROUP) for one in found) or version >= _NODE_NAMED_FROM:
        return found
    release = ".".join(map(str, version))
    if version < _POLICIES_FROM:
        made.notes.append(
            f"Kubernetes {release} has no admission policies: {agent} may write about every node, with a token stolen from one of them as well"
        )
        return [one for one in found if not one["apiVersion"].startswith(_GROUP)]
    made.notes.append(
        f"Kubernetes {release}: {agent} is held to its own node only where the API server's tokens name the node (by default they do)"
    )
    return [_lenient(one) if one["kind"] == "ValidatingAdmissionPolicy" else one for one in found]


def _lenient(policy: Manifest) -> Manifest:
    """Where a token does not name its node, any node is accepted."""
    policy = copy.deepcopy(policy)
    for rule in policy["spec"]["validations"]:
        if _NODE in rule["expression"]:
            rule["expression"] = f'{_NODE} == "" || ({rule["expression"]})'
    return policy
