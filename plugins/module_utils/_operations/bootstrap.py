# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far the bootstrap of a cluster is, according to the cluster itself."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Forbidden,
    NotFound,
    Overloaded,
    Unreachable,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import objects

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
VERSION = Resource("config.openshift.io", "v1", "ClusterVersion", "clusterversions", False)
ETCD = Resource("operator.openshift.io", "v1", "Etcd", "etcds", False)


def state(client: Client) -> dict[str, t.Any]:
    """complete, removable: None if the API server does not answer, for example before the first machine of the control plane has started.

    complete is when the load balancer does not need the bootstrap machine any more, removable when etcd does not: switched off before, the machine takes a
    vote of etcd's quorum with it.
    """
    try:
        complete, why = _complete(client)
    except (Unreachable, Overloaded) as error:
        return {"complete": None, "why": str(error), "removable": None, "removable_why": str(error)}
    removable, removable_why = _removable(client) if complete else (False, why)
    return {"complete": complete, "why": why, "removable": removable, "removable_why": removable_why}


def _complete(client: Client) -> tuple[bool, str]:
    status = _read(client, CONFIG_MAP, "bootstrap", "kube-system").get("data", {}).get("status", "")
    if status == "complete":
        return True, "the status in ConfigMap kube-system/bootstrap is complete"
    # The ConfigMap can be removed once a cluster is installed.
    history = _read(client, VERSION, "version", "").get("status", {}).get("history", [])
    if any(entry.get("state") == "Completed" for entry in history):
        return True, "ClusterVersion has a completed installation"
    if status:
        return False, f"the status in ConfigMap kube-system/bootstrap is {status}"
    return False, "there is no ConfigMap kube-system/bootstrap"


def _removable(client: Client) -> tuple[bool | None, str]:
    """Of a complete bootstrap. Who may read what the load balancer needs, but not Etcd, gets None, and can still take the machine out of it."""
    try:
        return objects.member_removed(_read(client, ETCD, "cluster", ""))
    except (Unreachable, Overloaded, Forbidden) as error:
        return None, str(error)


def _read(client: Client, resource: Resource, name: str, namespace: str) -> dict[str, t.Any]:
    """Empty if it does not exist, or its kind is unknown."""
    try:
        return client.get(resource, name, namespace)
    except NotFound:
        return {}
