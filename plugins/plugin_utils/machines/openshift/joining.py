# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that are added to a cluster that is installed, or that replace others under their names. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import approving, inventory, machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.inventory import Groups, Variables

Row = c.Mapping[str, t.Any]
#: Fact of a boot server: the machines that it installs.
INSTALLS = "dns_pxe_installs"


def read(groups: Groups, hostvars: Variables, cluster: str) -> list[dict[str, t.Any]]:
    """Machines that may be installed now: each with host, node, the name of its Node, again, whether it is named to be installed again, and text, the step.

    They have hwaccel_install, or are named. As soon as the boot servers of the cluster know which ones they install, only those: what has been a node before
    is kept from installation there, whatever the inventory says.
    """
    servers = [name for name in groups.get("boot_servers", ()) if _serves(hostvars[name], cluster)]
    named = {one for name in servers for one in inventory.listed(hostvars[name].get("dns_pxe_install_again"))}
    known = [set(hostvars[name][INSTALLS]) for name in servers if INSTALLS in hostvars[name]]
    nodes = approving.read(groups, hostvars, cluster)["expected_node_of"]
    found = []
    for host, node in nodes.items():
        variables = hostvars[host]
        name = str(variables.get("hwaccel_node_name") or host)
        again = bool(named & {name, f"{cluster}/{name}"})
        wanted = again or bool(machines.truth(variables.get("hwaccel_install")))
        if wanted and (not known or any(f"{cluster}/{name}" in one for one in known)):
            text = f"add {node['name']} to the cluster"
            found.append({"host": host, "node": node["name"], "again": again, "text": text})
    return found


def awaited(found: c.Iterable[Row], missing: c.Collection[str]) -> list[str]:
    """Hosts of those that are no nodes yet, or are replaced. missing: names of expected nodes that are not there."""
    return [str(one["host"]) for one in found if one["again"] or one["node"] in missing]


def _serves(variables: Row, cluster: str) -> bool:
    return str(variables.get("hwaccel_cluster") or cluster) == cluster
