# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of a cluster as the identities that the module node_csr_approve expects. Pure."""

from __future__ import annotations

import collections.abc as c
import ipaddress
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import inventory
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.inventory import Groups, Variables

#: Groups whose machines become nodes. A bootstrap machine never does.
_GROUPS = ("control_plane", "workers", "edge_nodes")


def read(groups: Groups, hostvars: Variables, host: str) -> dict[str, t.Any]:
    """host: the cluster's. Machines that leave the cluster are not expected."""
    clusters = groups.get("gpu_clusters", ())
    lone = clusters[0] if len(clusters) == 1 else ""
    names = dict.fromkeys(name for group in _GROUPS for name in groups.get(group, ()))
    members = [name for name in names if str(hostvars[name].get("hwaccel_cluster") or lone) == host]
    domain = str(hostvars[host].get("hwaccel_domain") or "")
    staying = [name for name in members if not inventory.leaves(hostvars[name])]
    nodes = {name: _expected(name, hostvars[name], domain) for name in staying}
    return {"expected_nodes": list(nodes.values()), "expected_node_of": nodes}


def _expected(host: str, variables: c.Mapping[str, t.Any], domain: str) -> dict[str, t.Any]:
    address = str(variables.get("hwaccel_address") or variables.get("ansible_host") or "")
    addresses = [address] if _is_address(address) else []
    return {
        "name": node_name(host, variables, domain),
        "ip_addresses": [*addresses, *(variables.get("hwaccel_further_addresses") or ())],
        "dns_names": list(variables.get("hwaccel_further_names") or ()),
    }


def node_name(host: str, variables: c.Mapping[str, t.Any], domain: str) -> str:
    """That of the reverse record, as dns_pxe writes it."""
    name = str(variables.get("hwaccel_node_name") or host)
    return name if "." in name or not domain else f"{name}.{domain}"


def _is_address(text: str) -> bool:
    """ansible_host can be a name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
