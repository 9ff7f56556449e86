# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot server reads from an inventory. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import inventory
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import inventory as cluster_inventory
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.inventory import Groups, Variables

#: Variables of clusters by the keys of the role.
_CLUSTER = {
    "domain": "hwaccel_domain",
    "api": "hwaccel_load_balancer_address",
    "api_int": "hwaccel_api_int_address",
    "ingress": "hwaccel_ingress_address",
    "machine_networks": "hwaccel_machine_network",
    "cluster_networks": "hwaccel_cluster_network",
    "service_networks": "hwaccel_service_network",
    "srv": "hwaccel_srv_records",
}


def read(groups: Groups, hostvars: Variables, host: str) -> dict[str, t.Any]:
    """Clusters, machines and joined nodes of one boot server."""
    served = inventory.clusters_of(groups, hostvars, host)
    return {
        "clusters": [_cluster(groups, hostvars, name) for name in served],
        "machines": inventory.machines_of(groups, hostvars, served),
        "joined": {name: nodes for name in served if (nodes := _joined(hostvars.get(name, {}))) is not None},
    }


def _cluster(groups: Groups, hostvars: Variables, name: str) -> dict[str, t.Any]:
    known = inventory.values(hostvars.get(name, {}), _CLUSTER)
    lone = "" if "api" in known else cluster_inventory.lone_server(groups, hostvars, name)
    return {"name": name, **known, **({"api": lone} if lone else {}), **_rejoins(hostvars.get(name, {}))}


def _rejoins(variables: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Others than OpenShift let a machine in by a token, whatever its name."""
    openshift = variables.get("hwaccel_installer") == "openshift"
    return {"rejoins": inventory.listed(variables.get("cluster_openshift_allow_rejoin"))} if openshift else {}


def _joined(variables: c.Mapping[str, t.Any]) -> list[dict[str, str]] | None:
    """Nodes of a cluster with their boot IDs, None if they are unknown. Of a new cluster that does not answer there are none.

    Neither are there of one whose machines were all observed.
    """
    requested = variables.get("hwaccel_asked_nodes") or {}
    if "nodes" in requested:
        return [{"name": str(node["name"]), "boot": str(node.get("boot_id") or "")} for node in requested["nodes"]]
    return [] if inventory.is_new(variables) or variables.get("hwaccel_without_nodes") else None
