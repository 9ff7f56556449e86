# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU Operator's component labels of nodes (nvidia.com/gpu.deploy.<component>), by which NVIDIA's driver manager evicts GPU clients.

Before it loads another driver, it sets a label to "paused-for-driver-upgrade" only if its value is "true": without the labels the modules stay in use,
and a deleted driver pod never starts again. For a missing label it adds one with an empty value, which has the same meaning,
and it labels a node that has its own driver (NVIDIA/k8s-driver-manager v0.12.0, cmd/driver-manager/main.go,
evictGPUOperatorComponents, rescheduleGPUOperatorComponents and disableContainerizedDriver).
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet_existing, quarantine

#: Name of its program, which is the field manager of its writes.
_DRIVER_MANAGER = "driver-manager"
_PREFIX = names.VENDOR + "gpu.deploy."


def provide(client: Client, name: str) -> bool:
    """Adds missing labels of the driver's clients to a node. True if something was written."""
    return quarantine.rewrite(client, client.resource("v1", "Node"), name, _with)


def take_back(client: Client, *, check_mode: bool = False) -> list[str]:
    """Removes labels that this collection or the driver manager wrote last. Returns the names of the nodes, or those that would change.

    If another deployment has a driver, its manager writes the same labels, so none is removed.
    """
    others = fleet_existing.components(client)
    if others["driver"] or others["cluster_policy"]:
        return []
    resource = client.resource("v1", "Node")
    found = sorted(node["metadata"]["name"] for page in client.pages(resource) for node in page.items if _left(node))
    return [name for name in found if check_mode or quarantine.rewrite(client, resource, name, _without)]


def _with(node: dict[str, t.Any]) -> dict[str, t.Any] | None:
    labels = node["metadata"].get("labels") or {}
    lacking = [switch for switch in names.CLIENT_SWITCHES if not labels.get(switch)]
    return _labels(node, dict.fromkeys(lacking, "true"))


def _without(node: dict[str, t.Any]) -> dict[str, t.Any] | None:
    return _labels(node, dict.fromkeys(_left(node)))


def _labels(node: dict[str, t.Any], labels: dict[str, str | None]) -> dict[str, t.Any] | None:
    return {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"], "labels": labels}} if labels else None


def _left(node: dict[str, t.Any]) -> list[str]:
    labels = node["metadata"].get("labels") or {}
    ours = fieldsets.union([_owned(node, _DRIVER_MANAGER), _owned(node, quarantine.FIELD_MANAGER)])
    return sorted(
        key
        for key, value in labels.items()
        if key.startswith(_PREFIX)
        and ("f:metadata", "f:labels", f"f:{key}") in ours
        and (
            value == ""
            or key in names.CLIENT_SWITCHES
            or (key, value) == (names.DEPLOY_DRIVER_LABEL, names.PRE_INSTALLED)
        )
    )


def _owned(node: dict[str, t.Any], manager: str) -> fieldsets.FieldSet:
    return fieldsets.of_object(node, manager, operation="Update")
