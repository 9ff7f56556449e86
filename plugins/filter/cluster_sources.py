# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: files on the controller that machines of a cluster get, and what is wrong with them."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role

DOCUMENTATION = r"""
name: cluster_sources
version_added: 0.2.0
short_description: Files on the controller that machines of a cluster get
description:
  - Returns which files are to be read, or compares what was read of them with the settings of the cluster.
  - Archives of images are compared with the images that the release needs, which is set.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role
options:
  _input:
    description: Settings of the cluster, by the names of the role's variables without the name of the role.
    type: dict
    required: true
  role:
    description: The role that installs the cluster.
    type: str
    required: true
    choices: [cluster_k3s, cluster_kubeadm]
  read:
    description: What C(sources.py) of the role C(cluster) has printed. Without it, what it is to read is returned.
    type: dict
"""

EXAMPLES = r"""
- name: Compare archives with what is set
  ansible.builtin.set_fact:
    sources: "{{ settings | hwaccel.gpu.cluster_sources('cluster_k3s', read=printed | from_json) }}"
"""

RETURN = r"""
_value:
  description: What is to be read, or the result of the comparison.
  type: dict
  contains:
    files:
      description: Paths of files that have a checksum. C(archives) and C(texts) are the same of others. Without O(read) only.
      type: list
      elements: str
    faults:
      description: Problems that prevent the run, each with C(text). With O(read) only.
      type: list
      elements: dict
    messages:
      description: What is not known of them. With O(read) only.
      type: list
      elements: str
"""


def cluster_sources(settings: dict[str, t.Any], role: str, read: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import role as k3s
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import role as kubeadm

    roles = {"cluster_k3s": k3s, "cluster_kubeadm": kubeadm}
    does = {name: one.wanted if read is None else one.compared for name, one in roles.items()}
    compute = of_role("cluster_sources", role, does)
    return t.cast("dict[str, t.Any]", computed("cluster_sources", compute, settings, read))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_sources": cluster_sources}
