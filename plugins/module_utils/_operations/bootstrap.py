# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the bootstrap of a cluster is complete, according to the cluster itself."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound, Overloaded, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource

_CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
_VERSION = Resource("config.openshift.io", "v1", "ClusterVersion", "clusterversions", False)


def state(client: Client) -> dict[str, t.Any]:
    """complete: None if the API server does not answer, for example before the first machine of the control plane has started."""
    try:
        status = _read(client, _CONFIG_MAP, "bootstrap", "kube-system").get("data", {}).get("status", "")
        if status == "complete":
            return {"complete": True, "why": "the status in ConfigMap kube-system/bootstrap is complete"}
        # The ConfigMap can be removed once a cluster is installed.
        history = _read(client, _VERSION, "version", "").get("status", {}).get("history", [])
    except (Unreachable, Overloaded) as error:
        return {"complete": None, "why": str(error)}
    if any(entry.get("state") == "Completed" for entry in history):
        return {"complete": True, "why": "ClusterVersion has a completed installation"}
    return {
        "complete": False,
        "why": f"the status in ConfigMap kube-system/bootstrap is {status}"
        if status
        else "there is no ConfigMap kube-system/bootstrap",
    }


def _read(client: Client, resource: Resource, name: str, namespace: str) -> dict[str, t.Any]:
    """Empty if it does not exist, or its kind is unknown."""
    try:
        return client.get(resource, name, namespace)
    except NotFound:
        return {}
