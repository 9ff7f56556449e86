# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The admission policy that holds the driver manager to a few labels of its own node, as far as a Kubernetes version can enforce it.

Private to the collection: it can change in any release.
"""

from __future__ import annotations

import collections.abc as c
import copy

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.objects.common import Manifest, Plan

#: admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy, https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
_POLICIES_FROM = (1, 30)
#: ServiceAccountTokenPodNodeInfo: beta and on from 1.30, stable and locked from 1.32, so that before a cluster may have switched it off.
_NODE_NAMED_FROM = (1, 32)
_NODE_NAMED = '"authentication.kubernetes.io/node-name" in request.userInfo.extra'
_GROUP = "admissionregistration.k8s.io/"


def fitted(manifests: c.Iterable[Manifest], version: tuple[int, int], made: Plan) -> list[Manifest]:
    """The manifests without what this version cannot enforce; notes of the plan tell what then is not enforced."""
    found = list(manifests)
    if not any(one["apiVersion"].startswith(_GROUP) for one in found) or version >= _NODE_NAMED_FROM:
        return found
    told = ".".join(map(str, version))
    if version < _POLICIES_FROM:
        made.notes.append(f"Kubernetes {told} has no admission policies: the driver manager, which may patch nodes, is not held to labels of its own node")
        return [one for one in found if not one["apiVersion"].startswith(_GROUP)]
    made.notes.append(f"Kubernetes {told}: the driver manager is held to its own node only where the API server's tokens name the node (by default they do)")
    return [_lenient(one) if one["kind"] == "ValidatingAdmissionPolicy" else one for one in found]


def _lenient(policy: Manifest) -> Manifest:
    """Where a token does not name its node, any node is accepted."""
    policy = copy.deepcopy(policy)
    for rule in policy["spec"]["validations"]:
        if _NODE_NAMED in rule["expression"]:
            rule["expression"] = f"!({_NODE_NAMED}) || ({rule['expression']})"
    return policy
