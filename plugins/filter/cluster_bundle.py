# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what the machines of a cluster need from elsewhere."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role

DOCUMENTATION = r"""
name: cluster_bundle
version_added: 0.2.0
short_description: What the machines of a cluster need from elsewhere
description:
  - Lists programs, archives of images, images and packages that machines need to become nodes, for networks without a way out.
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
  network:
    description: Manifests of the network plugin, as O(hwaccel.gpu.manifest_set#module:definition) takes them.
    type: raw
    default: []
  listed:
    description: Images that the installer, or a list of its release, has named. If there is none, those that follow from the version.
    type: list
    elements: str
    default: []
  sizes:
    description: Sizes of files in bytes, by their sources.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show what is needed
  hwaccel.gpu.show:
    lines: "{{ (settings | hwaccel.gpu.cluster_bundle('cluster_kubeadm')).lines }}"
"""

RETURN = r"""
_value:
  description: What is needed.
  type: dict
  contains:
    needs:
      description: Each with C(kind), C(name), C(source), C(architecture), C(checksum), C(bytes) and C(note).
      type: list
      elements: dict
    lines:
      description: The same as a table.
      type: list
      elements: str
"""


def cluster_bundle(
    settings: dict[str, t.Any],
    role: str,
    network: t.Any = (),
    listed: list[str] | None = None,
    sizes: dict[str, int] | None = None,
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import bundle
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import bundle as k3s
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import bundle as kubeadm

    needs = of_role("cluster_bundle", role, {"cluster_k3s": k3s.needs, "cluster_kubeadm": kubeadm.needs})

    def compute(*given: t.Any) -> dict[str, t.Any]:
        found = needs(*given)
        return {"needs": [dataclasses.asdict(one) for one in found], "lines": bundle.lines(found)}

    return t.cast("dict[str, t.Any]", computed("cluster_bundle", compute, settings, network, listed or [], sizes or {}))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_bundle": cluster_bundle}
