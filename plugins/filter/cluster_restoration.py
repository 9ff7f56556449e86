# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what brings etcd of a cluster back from a snapshot."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role

DOCUMENTATION = r"""
name: cluster_restoration
version_added: 0.2.0
short_description: What brings etcd of a cluster back from a snapshot
description:
  - Computes which server restores the snapshot, and which join again, from what was found on all of them.
  - It writes nothing.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role
options:
  _input:
    description: What C(restore.py look) of the role has printed, by the names of the servers. Empty for one that could not be observed.
    type: dict
    required: true
  role:
    description: The role that installs the cluster.
    type: str
    required: true
    choices: [cluster_k3s, cluster_kubeadm]
  wish:
    description: >-
      C(cluster), its name in the inventory; C(snapshot), as C(HOST:PATH) or a path on the controller; C(verified), its SHA-256, or otherwise C(why) it is none;
      C(encrypted), whether Secrets are to be, and C(keys), names of those with which they are in the snapshot, for V(cluster_kubeadm);
      C(confirm), the fingerprint of the certificate authority; C(moment), for the name of the folder that keeps the data of before. For V(cluster_k3s), also
      C(keys), the names of bootstrap data in the snapshot; C(token), the one that is set; C(digest), the SHA-256 of the file, and the C(checksum) that is set.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Find out what would be restored
  ansible.builtin.set_fact:
    restoration: "{{ looks | hwaccel.gpu.cluster_restoration('cluster_kubeadm', wish=wish) }}"
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
    target:
      description: The server that restores.
      type: str
    source:
      description: Path of the snapshot on that server, or on the controller if it is C(sent).
      type: str
    sent:
      description: Whether the snapshot is copied from the controller.
      type: bool
    kept:
      description: Folder that keeps the data of before.
      type: str
    record:
      description: What a later run has to know, with C(snapshot) and C(kept).
      type: dict
    others:
      description: Servers that join again.
      type: list
      elements: str
    keeper:
      description: The server that has the token of the snapshot, empty if it is set. Of V(cluster_k3s) only.
      type: str
    acts:
      description: Whether it is confirmed, and was not done before.
      type: bool
    changes:
      description: What is done.
      type: list
      elements: str
"""


def cluster_restoration(looks: dict[str, str], role: str, wish: dict[str, t.Any]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import restoration as by_k3s
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import restoration as by_kubeadm

    choices = {"cluster_k3s": by_k3s.restoration, "cluster_kubeadm": by_kubeadm.restoration}
    restores = of_role("cluster_restoration", role, choices)
    return t.cast("dict[str, t.Any]", computed("cluster_restoration", restores, looks, wish))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_restoration": cluster_restoration}
