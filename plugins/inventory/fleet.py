# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventory: the nodes of a cluster as hosts, grouped by properties that matter to GPU workloads."""

from __future__ import annotations

DOCUMENTATION = r"""
name: fleet
version_added: 0.2.0
short_description: Nodes of a cluster as hosts, by pool, GPU product, kernel and gate state
description:
  - Creates an inventory host for each node of a Kubernetes cluster. It only reads, and needs permission to list nodes.
  - Its configuration is a YAML file whose name ends in C(fleet.hwaccel.yml) or C(fleet.hwaccel.yaml).
  - "Each host is in C(pool_<pool>); in C(kernel_<kernel>); in C(product_<product>) if GPU feature discovery has labeled its GPUs;
    and in C(cluster_<cluster>) if O(cluster) is set."
  - Each node with detected or declared GPUs is in C(gpu_schedulable) if all of them can be allocated now, or else in C(gpu_unschedulable).
  - A node that M(hwaccel.gpu.node_gate) has quarantined is in C(quarantined) and in C(quarantined_features), C(quarantined_driver) or
    C(quarantined_devices), by the gate that it failed at.
  - In group names, every character except letters, digits and underscores becomes an underscore. The groups of declared pools, C(gpu_schedulable),
    C(gpu_unschedulable) and C(quarantined) exist even without hosts.
  - "The variable C(hwaccel_node) of each host has the keys of RV(hwaccel.gpu.node_info#module:nodes) (C(name), C(pool), C(ready), C(not_ready),
    C(unschedulable), C(quarantined), C(kernel), C(os_id), C(os_version), C(os_image), C(architecture), C(runtime), C(runtime_version),
    C(gpu_present), C(gpu_assumed), C(gpu) with C(product), C(count) and C(memory_mib), C(host_driver), C(driver_version), C(allocatable)),
    and C(labels), C(addresses) (lists by type), C(quarantine_gate), C(quarantine_reason), C(gpu_schedulable) and C(obstacles), a list of reasons why
    its GPUs cannot be allocated."
  - Values from the cluster are never evaluated as templates.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  plugin:
    description: Identifies the file as one of this plugin.
    type: str
    required: true
    choices: [hwaccel.gpu.fleet]
  pools:
    description:
      - Declared pools, as in the inventory variable C(hwaccel_pools).
      - GPU nodes outside of every declared pool belong to pool C(default), nodes without GPUs to pool C(cpu).
      - Pools that overlap are an error. A node that is named but is not in the cluster is a warning.
    type: list
    elements: dict
    default: []
  label_selector:
    description: Only nodes that match this label selector become hosts, as for C(kubectl -l).
    type: str
    default: ""
  labels:
    description:
      - Keys of the node labels in C(hwaccel_node.labels). C(*) matches any characters.
      - V(["*"]) selects all. Node Feature Discovery alone writes about a hundred to each node.
    type: list
    elements: str
    default: [topology.kubernetes.io/*, node.kubernetes.io/instance-type, node-role.kubernetes.io/*, nvidia.com/gpu.*, hwaccel.gpu/*]
  host_address:
    description:
      - Type of the node's address that becomes C(ansible_host). If there are several, the first one is used.
      - Without it, and on nodes without such an address, C(ansible_host) is not set, and Ansible connects to the host by its name.
    type: str
    choices: [InternalIP, ExternalIP, InternalDNS, ExternalDNS, Hostname]
  host_prefix:
    description: Prefix of each node's name in the host name. It distinguishes nodes of several clusters that have the same names.
    type: str
    default: ""
  cluster:
    description: Name of the host in C(gpu_clusters) that represents this cluster. Each node has it as the variable C(hwaccel_cluster).
    type: str
    default: ""
extends_documentation_fragment:
  - hwaccel.gpu.cluster
  - constructed
  - inventory_cache
notes:
  - Connection options, O(pools), O(label_selector), O(labels), O(host_prefix) and O(cluster) may be templates, for example with a lookup.
  - Ansible continues without the hosts of an inventory source that fails, unless C(any_unparsed_is_failed) in the section C([inventory]) of C(ansible.cfg)
    is set.
  - With O(cache), the cluster is read again if the server or this plugin's own options changed, and always with C(--flush-cache).
seealso:
  - module: hwaccel.gpu.node_info
  - module: hwaccel.gpu.node_gate
"""

EXAMPLES = r"""
# production.fleet.hwaccel.yml. The first line is enough, with the kubeconfig of the environment.
plugin: hwaccel.gpu.fleet

# The cluster, by a kubeconfig
kubeconfig: ~/.kube/production.yaml
context: admin

# or by a token
# host: https://api.example.com:6443
# api_key: "{{ lookup('ansible.builtin.file', '/run/secrets/fleet-token') }}"
# ca_cert: /etc/ssl/fleet-ca.pem

# Nodes are reached over the network, and grouped by declared pools
host_address: InternalIP
pools:
  - name: training
    selector: node.example.com/pool=training
    gpu: {product: NVIDIA-H100-80GB-HBM3, count: 8, memory_mib: 81559}
  - name: dgx
    nodes: [dgx-01, dgx-02]

# Custom groups and variables
keyed_groups:
  - key: hwaccel_node.labels['topology.kubernetes.io/zone'] | default('')
    prefix: zone
  - key: hwaccel_node.driver_version
    prefix: driver
groups:
  old_kernel: hwaccel_node.kernel == '6.8.0-111-generic'
compose:
  ansible_user: "'ubuntu'"
  gpus: (hwaccel_node.gpu or {}).count | default(0)

# A cache of ten minutes
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/fleet
cache_timeout: 600
"""

import dataclasses
import json
import typing as t

from ansible.errors import AnsibleParserError
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ansible_collections.hwaccel.gpu.plugins.filter.declared_pools import declared_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.version import VERSION
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import digest
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.printable import printable, printable_data
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.spec import CLUSTER_SPEC
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.inventory import Ask, inventory
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._untemplated import untemplated

ENDINGS = ("fleet.hwaccel.yml", "fleet.hwaccel.yaml")
_OPTIONS = tuple(field.name for field in dataclasses.fields(Ask))
_ALIASES = tuple(alias for option in CLUSTER_SPEC.values() for alias in option.get("aliases", ()))


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """See DOCUMENTATION."""

    NAME = "hwaccel.gpu.fleet"

    def verify_file(self, path: str) -> bool:
        """Whether the file is for this plugin, according to its name."""
        return super().verify_file(path) and path.endswith(ENDINGS)

    def parse(self, inventory: t.Any, loader: t.Any, path: str, cache: bool = True) -> None:
        """Fills the inventory. Everything is read before the first host is created, so that a failure does not leave an incomplete fleet."""
        super().parse(inventory, loader, path, cache)
        self._read_options(path)
        secrets: set[str] = set()
        try:
            found = self._found(path, cache, secrets)
        except HwaccelError as error:
            raise AnsibleParserError(remove_values(str(error), secrets)) from None
        for group in found["groups"]:
            self.inventory.add_group(group)
        for host in found["hosts"]:
            self._add(untemplated(host))

    def _read_options(self, path: str) -> None:
        config = self._read_config_data(path)
        templates = (*CLUSTER_SPEC, *_ALIASES, *_OPTIONS)
        values = {name: self.templar.template(value) if name in templates else value for name, value in config.items()}
        self.set_options(direct=values, var_options=self._vars)

    def _found(self, path: str, may_be_old: bool, secrets: set[str]) -> dict[str, t.Any]:
        client = connect(self._plain(CLUSTER_SPEC), check_mode=True, hide=secrets.update)
        options = self._plain(_OPTIONS)
        # The server is part of the key, because the environment or the kubeconfig can change the server of the same file.
        key = f"{self.get_cache_key(path)}_{digest([VERSION, client.where, options])}"
        if self.get_option("cache") and may_be_old:
            try:
                return self._cache[key]
            except KeyError:
                self.display.vvv(f"the cache has no entry, or it has expired: {key}")
        ask = Ask(**{**options, "pools": declared_pools(options["pools"]), "labels": tuple(options["labels"])})
        found = printable_data(
            inventory(
                client,
                ask,
                safe_name=self._sanitize_group_name,
                warn=lambda text: self.display.warning(printable(text)),
            )
        )
        if self.get_option("cache"):
            self._cache[key] = found
        return found

    def _plain(self, names: t.Iterable[str]) -> dict[str, t.Any]:
        """Options without the tags that Ansible attaches to values, such as their origin."""
        return json.loads(json.dumps({name: self.get_option(name) for name in names}, default=str))

    def _add(self, host: dict[str, t.Any]) -> None:
        name, variables, strict = host["name"], host["variables"], self.get_option("strict")
        self.inventory.add_host(name)
        for variable, value in variables.items():
            self.inventory.set_variable(name, variable, value)
        for group in host["groups"]:
            self.inventory.add_child(group, name)
        self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, name, strict=strict)
