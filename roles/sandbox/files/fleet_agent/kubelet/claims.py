# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ResourceClaims of a pod, as kubelet prepares them (kubernetes v1.36.4, pkg/kubelet/cm/dra/manager.go).

No simulated program registers a DRA driver, so a pod whose claim was allocated does not start.
"""

from __future__ import annotations

import functools
from typing import Any

from fleet_agent.cluster.api import ApiError, Unreachable, node_identity
from fleet_agent.loop import Call, Process


def names(item: dict[str, Any]) -> tuple[str, ...]:
    """Of the claims that the pod names, that were created for it, or that stand behind an extended resource."""
    status = item.get("status") or {}
    created = {row["name"]: row.get("resourceClaimName") for row in status.get("resourceClaimStatuses") or []}
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    rows = (item.get("spec") or {}).get("resourceClaims") or []
    found = [row.get("resourceClaimName") or created.get(row["name"]) for row in rows] + [extended]
    return tuple(name for name in found if name)


def unprepared(kubelet: Any, namespace: str, claims: tuple[str, ...]) -> Process:
    """Returns kubelet's message why the claims cannot be prepared, empty if there is nothing to prepare."""
    for name in claims:
        path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"
        try:
            ask = functools.partial(kubelet.api.request, "GET", path, identity=node_identity(kubelet.name))
            claim = yield Call(ask)
        except (ApiError, Unreachable) as error:
            return f"prepare dynamic resources: fetch ResourceClaim {name}: {error}"
        results = ((claim.get("status") or {}).get("allocation") or {}).get("devices", {}).get("results") or []
        if results:
            return f"prepare dynamic resources: DRA driver {min(row['driver'] for row in results)} is not registered"
    return ""
