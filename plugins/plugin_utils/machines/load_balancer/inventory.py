# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a load balancer reads from an inventory. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import inventory
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.inventory import Groups, Variables


def read(groups: Groups, hostvars: Variables, host: str) -> dict[str, t.Any]:
    """Clusters, machines and peers of one load balancer."""
    served, mine = inventory.clusters_of(groups, hostvars, host), hostvars[host].get("hwaccel_cluster")
    peers = [
        name
        for name in groups.get("load_balancers", ())
        if (hostvars[name].get("hwaccel_cluster") or "") == (mine or "")
    ]
    # Servers that are to leave their cluster get no more connections.
    staying = {
        group: [name for name in groups.get(group, ()) if not inventory.leaves(hostvars[name])]
        for group in inventory.GROUPS
    }
    return {
        "clusters": [_cluster(name, hostvars.get(name, {})) for name in served],
        "machines": inventory.machines_of({**groups, **staying}, hostvars, served),
        "peers": [
            {
                "name": name,
                "address": str(hostvars[name].get("hwaccel_address") or hostvars[name].get("ansible_host") or name),
            }
            for name in peers
        ],
    }


def _cluster(name: str, variables: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    requested = variables.get("cluster_openshift_bootstrap") or variables.get("hwaccel_bootstrap") or {}
    complete = requested.get("complete")
    if complete is None and (inventory.is_new(variables) or _is_created(variables)):
        # If the cluster does not answer, its bootstrap is not complete, even if an earlier cluster had this name.
        complete = False
    return {
        "name": name,
        "profile": variables.get("hwaccel_installer") or variables.get("hwaccel_distribution") or "",
        "address": variables.get("hwaccel_load_balancer_address") or "",
        "machine_network": variables.get("hwaccel_machine_network") or [],
        "bootstrap_complete": complete,
    }


def _is_created(variables: c.Mapping[str, t.Any]) -> bool:
    """Whether this run creates the files of an installation of OpenShift, with which its machines become another cluster."""
    plan = variables.get("cluster_plan") or {}
    return any(step["do"] == "files" for step in plan.get("steps") or ())
