# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the input of a load balancer or boot server from an inventory."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import of_role
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import approving, phases
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import inventory as cluster
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import inventory as dns_pxe
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.inventory import Once
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import inventory as load_balancer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import booting
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import inventory as openshift

DOCUMENTATION = r"""
name: machine_inventory
version_added: 0.2.0
short_description: Input of a load balancer or boot server from an inventory
description:
  - Builds lists for one of the roles from groups and host variables.
  - For machines it reads C(hwaccel_cluster), C(hwaccel_node_name), C(hwaccel_role), C(hwaccel_address), C(hwaccel_mac), C(hwaccel_firmware),
    C(hwaccel_architecture), C(hwaccel_install), C(hwaccel_install_device) and C(hwaccel_kernel_arguments).
  - For clusters it reads C(hwaccel_distribution), C(hwaccel_domain), C(hwaccel_load_balancer_address), C(hwaccel_api_int_address),
    C(hwaccel_ingress_address), C(hwaccel_machine_network), C(hwaccel_cluster_network), C(hwaccel_service_network), C(hwaccel_srv_records)
    and C(hwaccel_new_cluster). It does not count where C(cluster_plan) shows that the cluster is there.
  - For clusters that are installed it also reads C(hwaccel_installer), C(hwaccel_api_endpoint) and C(hwaccel_even_servers), and for their machines
    C(hwaccel_node_labels), C(hwaccel_node_taints), C(hwaccel_retired) and C(hwaccel_lost). Load balancers read the last two, too.
  - For machines of OpenShift it also reads C(hwaccel_root_device_hints), C(hwaccel_network_config), C(hwaccel_interface), C(hwaccel_disks) and
    C(hwaccel_hypervisor).
  - For machines that are added to OpenShift it also reads C(dns_pxe_install_again) and C(dns_pxe_installs) of boot servers, and for boot servers
    C(cluster_openshift_allow_rejoin).
  - For nodes whose certificate requests are approved it also reads C(hwaccel_further_addresses) and C(hwaccel_further_names).
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role, hostvars, host
options:
  _input:
    description: Names of hosts by group.
    type: dict
    required: true
  role:
    description: The role that uses the result, V(cluster) for the roles that install one on machines, V(installers) for the hosts of all of these,
      V(phases) for the machines that C(site) takes in, V(approvals) for nodes that M(hwaccel.gpu.node_csr_approve) expects, or V(evidence) for what is
      asked of boot servers, load balancers and hypervisors while an installation is waited for.
    type: str
    required: true
    choices: [approvals, cluster, cluster_openshift, dns_pxe, evidence, installers, load_balancer, phases]
  hostvars:
    description: Variables by host.
    type: dict
    required: true
  host:
    description: >-
      The load balancer or boot server, for V(approvals), V(cluster), V(cluster_openshift) and V(evidence) the host of the cluster, and for V(installers)
      and V(phases) names of clusters, or nothing for all. C(hwaccel_cluster) of a load balancer or boot server names the cluster that it serves.
      Without it, it serves all clusters.
    type: raw
    required: true
  installer:
    description: For V(installers), the one whose clusters are meant. Empty for all.
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: Run the role
  ansible.builtin.include_role:
    name: hwaccel.gpu.dns_pxe
  vars:
    dns_pxe_machines: "{{ (groups | hwaccel.gpu.machine_inventory('dns_pxe', hostvars, inventory_hostname)).machines }}"
"""

RETURN = r"""
_value:
  description: Input of the role.
  type: dict
  contains:
    clusters:
      description: Clusters that it serves.
      type: list
      elements: dict
    machines:
      description: Their machines.
      type: list
      elements: dict
    balancers:
      description: For C(cluster_openshift), addresses of its API and applications, by the names of their variables.
      type: dict
    joining:
      description: For C(cluster_openshift), machines that may be installed now, each with C(host), C(node), C(again) and C(text).
      type: list
      elements: dict
    retired:
      description: For C(cluster), machines that are to leave it.
      type: list
      elements: dict
    expected_nodes:
      description: For C(approvals), the option of that name.
      type: list
      elements: dict
    expected_node_of:
      description: For C(approvals), the same by machine.
      type: dict
    joined:
      description: For C(dns_pxe), names of nodes that have joined, by cluster. A cluster that could not be reached has no entry.
      type: dict
    artifacts:
      description: For C(dns_pxe), that variable of the role, with what follows from the files that C(cluster_openshift) has made. C(ignitions) and C(profiles)
        too.
      type: list
      elements: dict
    witnesses:
      description: For C(evidence), hosts that are asked, each with C(host), C(kind), C(reads) and C(requests). C(cluster) is the host of the cluster.
      type: list
      elements: dict
    peers:
      description: For C(load_balancer), load balancers of the same clusters, including itself.
      type: list
      elements: dict
    PHASE:
      description: For C(phases), C(serves), C(hosts) in the order of their batches, C(batches), the sizes of these, and C(least), the smallest size.
      type: dict
"""


def _booted(groups: dict[str, list[str]], hostvars: t.Any, host: t.Any) -> dict[str, t.Any]:
    found = {**dns_pxe.read(groups, hostvars, host), **booting.of_server(groups, hostvars, host)}
    # No machine is installed of a cluster whose nodes are unknown.
    joined = {name: one for name, one in found["joined"].items() if not booting.is_unmade(hostvars.get(name, {}))}
    return {**found, "joined": joined}


def _witnesses(groups: dict[str, list[str]], hostvars: t.Any, host: t.Any) -> dict[str, t.Any]:
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import witnesses

    return witnesses.read(groups, hostvars, host)


_READERS: dict[str, t.Callable[..., dict[str, t.Any]]] = {
    "approvals": approving.read,
    "cluster": cluster.read,
    "cluster_openshift": openshift.read,
    "dns_pxe": _booted,
    "evidence": _witnesses,
    "installers": cluster.installers,
    "load_balancer": load_balancer.read,
    "phases": phases.planned,
}


def machine_inventory(
    groups: dict[str, list[str]], role: str, hostvars: t.Any, host: t.Any, installer: str = ""
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    more = (installer,) if installer else ()
    return of_role("machine_inventory", role, _READERS)(groups, Once(hostvars), host, *more)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"machine_inventory": machine_inventory}
