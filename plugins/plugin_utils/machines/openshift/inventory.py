# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of a cluster of OpenShift, from an inventory. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import inventory, machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.inventory import Groups, Variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import joining

#: What machines of a group become.
GROUPS = {**inventory.GROUPS, "edge_nodes": machines.WORKER}
#: Variables of machines by the keys of the role.
_MACHINE = {
    **{key: f"hwaccel_{key}" for key in ("mac", "firmware", "architecture", "install_device", "interface", "disks")},
    "hints": "hwaccel_root_device_hints",
    "network": "hwaccel_network_config",
    "hypervisor": "hwaccel_hypervisor",
}
#: Of the cluster: addresses at which its API and its applications are reached.
_BALANCERS = ("hwaccel_load_balancer_address", "hwaccel_api_int_address", "hwaccel_ingress_address")


def read(groups: Groups, hostvars: Variables, cluster: str) -> dict[str, t.Any]:
    """machines: of the cluster, without those that leave it, each with host and the keys of machines.KEYS. One of bootstrap and
    of workers is in it twice, also later: what the installer has got does not change.
    balancers: addresses by their variables. joining: as joining.read."""
    names = list(groups.get("gpu_clusters", ()))
    lone = names[0] if len(names) == 1 else ""
    found = [
        _machine(name, hostvars[name], role, cluster)
        for group, role in GROUPS.items()
        for name in groups.get(group, ())
        if (hostvars[name].get("hwaccel_cluster") or lone) == cluster and not inventory.leaves(hostvars[name])
    ]
    rows = joining.read(groups, hostvars, cluster)
    return {"machines": found, "balancers": _balancers(hostvars[cluster]), "joining": rows}


def _balancers(variables: c.Mapping[str, t.Any]) -> dict[str, str]:
    """With two stacks an address may be a list. The first one of each is that of the name."""
    found = {}
    for name in _BALANCERS:
        given = variables.get(name)
        first = (given or [""])[0] if isinstance(given, (list, tuple)) else given
        if first:
            found[name] = str(first)
    return found


def _machine(name: str, variables: c.Mapping[str, t.Any], role: str, cluster: str) -> dict[str, t.Any]:
    return {
        "host": name,
        "name": str(variables.get("hwaccel_node_name") or name),
        "cluster": cluster,
        "role": role if role == machines.BOOTSTRAP else str(variables.get("hwaccel_role") or role),
        "address": str(variables.get("hwaccel_address") or variables.get("ansible_host") or ""),
        **inventory.values(variables, _MACHINE),
    }
