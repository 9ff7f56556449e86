# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: clusters, machines and load balancers of an inventory, as the role load_balancer takes them."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import inventory, machines

DOCUMENTATION = r"""
name: load_balancer_inventory
version_added: 0.1.0
short_description: What a load balancer takes from an inventory
description:
  - Makes lists for the role C(load_balancer) from groups and host variables.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, hostvars, host
options:
  _input:
    description: Names of hosts by group.
    type: dict
    required: true
  hostvars:
    description: Variables by host.
    type: dict
    required: true
  host:
    description: The load balancer. Its C(hwaccel_cluster) names the cluster that it is for; where it has none, it is for all.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Take the role
  ansible.builtin.include_role:
    name: hwaccel.gpu.load_balancer
  vars:
    load_balancer_machines: "{{ (groups | hwaccel.gpu.load_balancer_inventory(hostvars, inventory_hostname)).machines }}"
"""

RETURN = r"""
_value:
  description: What the role takes.
  type: dict
  contains:
    clusters:
      description: Clusters that it is for.
      type: list
      elements: dict
    machines:
      description: Their machines.
      type: list
      elements: dict
    peers:
      description: Load balancers that are for the same clusters, itself among them.
      type: list
      elements: dict
"""


def load_balancer_inventory(groups: inventory.Groups, hostvars: inventory.Variables, host: str) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    served, mine = inventory.clusters_of(groups, hostvars, host), hostvars[host].get("hwaccel_cluster")
    peers = [
        name
        for name in groups.get("load_balancers", ())
        if (hostvars[name].get("hwaccel_cluster") or "") == (mine or "")
    ]
    return {
        "clusters": [_cluster(name, hostvars.get(name, {})) for name in served],
        "machines": inventory.machines_of(groups, hostvars, served),
        "peers": [
            {
                "name": name,
                "address": str(hostvars[name].get("hwaccel_address") or hostvars[name].get("ansible_host") or name),
            }
            for name in peers
        ],
    }


def _cluster(name: str, variables: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    asked = variables.get("hwaccel_bootstrap") or {}
    complete = asked.get("complete")
    if complete is None and machines.truth(variables.get("hwaccel_new_cluster")):
        # Silence means that its bootstrap is still to come, whatever a cluster of this name had before.
        complete = False
    return {
        "name": name,
        "profile": variables.get("hwaccel_distribution") or "",
        "address": variables.get("hwaccel_load_balancer_address") or "",
        "machine_network": variables.get("hwaccel_machine_network") or [],
        "bootstrap_complete": complete,
    }


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"load_balancer_inventory": load_balancer_inventory}
