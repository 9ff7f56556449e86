# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NVIDIA's driver manager, which our driver pods run, leaves on nodes: taken back when the driver stack goes.

At each start it writes back the GPU Operator's switches (nvidia.com/gpu.deploy.<component>). One that a node has not comes to be with an
empty value, which says the same as none; and it marks a node with a driver of its own (NVIDIA/k8s-driver-manager v0.12.0,
cmd/driver-manager/main.go, rescheduleGPUOperatorComponents and disableContainerizedDriver).
Private to the collection: it can change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet_existing, quarantine

#: Name of its program, and so of the field manager of its writes.
_DRIVER_MANAGER = "driver-manager"
_PREFIX = names.VENDOR + "gpu.deploy."


def take_back(client: Client, *, check_mode: bool = False) -> list[str]:
    """Names of the nodes from which such labels went, or would go. A value that says something stays, whoever wrote it last.

    Where somebody else deploys a driver, their manager writes the same: nothing is taken.
    """
    others = fleet_existing.components(client)
    if others["driver"] or others["cluster_policy"]:
        return []
    resource = client.resource("v1", "Node")
    found = sorted(node["metadata"]["name"] for page in client.pages(resource) for node in page.items if _left(node))
    return [name for name in found if check_mode or quarantine.rewrite(client, resource, name, _without)]


def _left(node: dict[str, t.Any]) -> list[str]:
    owned = fieldsets.of_object(node, _DRIVER_MANAGER, operation="Update")
    labels = node["metadata"].get("labels") or {}
    return sorted(
        key for key, value in labels.items()
        if key.startswith(_PREFIX) and (value == "" or (key, value) == (names.DEPLOY_DRIVER_LABEL, names.PRE_INSTALLED))
        and ("f:metadata", "f:labels", f"f:{key}") in owned
    )


def _without(node: dict[str, t.Any]) -> dict[str, t.Any] | None:
    left = _left(node)
    if not left:
        return None
    return {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"], "labels": dict.fromkeys(left)}}
