# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the steps after which a cluster has other certificate authorities, or servers another token or key."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role

DOCUMENTATION = r"""
name: cluster_rotation
version_added: 0.2.0
short_description: The steps after which a cluster has other certificate authorities, or another token or key
description:
  - Computes the steps that are left, from what was found on all machines of the cluster.
  - It writes nothing.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role
options:
  _input:
    description: Machines of the cluster, as P(hwaccel.gpu.machine_inventory#filter) returns them.
    type: list
    elements: dict
    required: true
  role:
    description: The role that installs the cluster.
    type: str
    required: true
    choices: [cluster_k3s, cluster_kubeadm]
  looks:
    description: What C(rotate.py) of the role has printed, by the names of the machines. Empty for one that could not be observed.
    type: dict
    required: true
  wish:
    description: >-
      C(cluster), its name in the inventory; C(nodes), the names of those that it has, empty if it could not be asked; C(lost), those of machines that are
      gone for good; C(confirm), the fingerprint of the certificate authority that is replaced; C(at_a_time), a number or a percentage of agents; C(what),
      V(certificate authorities) or V(encryption keys), for V(cluster_k3s) also V(token), and C(token), the one that servers are to have; C(confirm) is the
      name of the key, if that is replaced. For V(cluster_kubeadm) also C(members), of etcd, and C(retired), machines that leave.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Find out which steps are left
  ansible.builtin.set_fact:
    rotation: "{{ cluster.machines | hwaccel.gpu.cluster_rotation('cluster_kubeadm', looks=looks, wish=wish) }}"
"""

RETURN = r"""
_value:
  description: What is done.
  type: dict
  contains:
    faults:
      description: Why nothing is done, each with C(text).
      type: list
      elements: dict
    lines:
      description: What would be done, and how it is confirmed.
      type: list
      elements: str
    old:
      description: Fingerprint of the authority, or name of the key, that is replaced.
      type: str
    owner:
      description: The server that has the new authorities, or makes them; for V(cluster_k3s) the one that replaces the token or the key.
      type: str
    begins:
      description: Machines that do not have the new authorities yet.
      type: list
      elements: str
    steps:
      description: >-
        In order, each with C(do), a phase (V(trust), V(reissue), V(request) or V(drop); V(add), V(promote), V(rewrite) or V(drop) of a key, and C(copies),
        whether the server gets the keys of the owner; for V(cluster_k3s) V(rotate), V(write), V(make), V(save) or
        V(restart)); C(hosts), its machines; C(serves), whether these are servers; C(pods), static pods that are restarted; and C(text).
      type: list
      elements: dict
    hash:
      description: For V(cluster_k3s), what tokens have of the new authorities. Empty before they are made.
      type: str
    acts:
      description: Whether it is confirmed, and was not done before.
      type: bool
    changes:
      description: What is done, for the summary.
      type: list
      elements: str
"""


def cluster_rotation(
    machines: list[dict[str, t.Any]], role: str, looks: dict[str, str], wish: dict[str, t.Any]
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import rotation as by_k3s
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import rotation as by_kubeadm

    choices = {"cluster_k3s": by_k3s.rotation, "cluster_kubeadm": by_kubeadm.rotation}
    rotates = of_role("cluster_rotation", role, choices)
    return t.cast("dict[str, t.Any]", computed("cluster_rotation", rotates, machines, looks, wish))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_rotation": cluster_rotation}
