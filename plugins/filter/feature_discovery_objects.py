# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: objects of Node Feature Discovery for a cluster."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.objects.feature_discovery import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._manifests import parse_manifests

DOCUMENTATION = r"""
name: feature_discovery_objects
version_added: 0.1.0
short_description: Objects of Node Feature Discovery for a cluster
description:
  - Makes the objects that the role P(hwaccel.gpu.feature_discovery#role) applies.
    Where another Node Feature Discovery is there, these are the namespaces only.
  - It is a pure function. It asks no cluster and changes none.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: The role's manifests, YAML documents as they are in its templates folder, values filled in.
    type: list
    elements: str
    required: true
  settings:
    description: The role's settings.
    type: dict
    required: true
    suboptions:
      cluster_uid:
        description: The uid of the namespace C(kube-system) that the inventory means.
        type: str
      image_pull_secrets:
        description: Names of Secrets in the pods' namespace.
        type: list
        elements: str
      image_registry:
        description: Takes the place of the registry's host in each image reference.
        type: str
      pools:
        description: Declared pools, as in C(hwaccel_pools).
        type: list
        elements: dict
      provider:
        description: Who brings the component. Empty, what is there decides.
        type: str
  fleet:
    description:
      - What M(hwaccel.gpu.node_info) returned of the cluster. Read are C(classes), C(platform), C(existing) and C(cluster_uid).
      - Where it is left out, no cluster was asked, and the declared pools with C(machines) are taken as the fleet.
    type: dict
seealso:
  - module: hwaccel.gpu.manifest_set
  - module: hwaccel.gpu.node_info
"""

EXAMPLES = r"""
- name: Compute what feature discovery needs
  ansible.builtin.set_fact:
    plan: "{{ manifests | hwaccel.gpu.feature_discovery_objects(settings={'pools': hwaccel_pools}, fleet=fleet) }}"
"""

RETURN = r"""
_value:
  description: What is to be, and what is to be said of it.
  type: dict
  contains:
    provider:
      description: Who brings the component, as declared or found.
      type: str
    objects:
      description: The objects, in the order in which they are applied.
      type: list
      elements: dict
    assumed:
      description: What was predicted from declarations only.
      type: list
      elements: str
    unknown:
      description: What cannot be predicted yet, and the stage after which it can.
      type: list
      elements: str
    notes:
      description: What was decided, and why.
      type: list
      elements: str
    faults:
      description: Reasons not to begin, each with C(what), C(where), C(why), C(next_step), and all of them as C(text).
      type: list
      elements: dict
"""


def feature_discovery_objects(manifests: list[str], settings: dict[str, t.Any], fleet: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    try:
        return plan(parse_manifests(manifests), settings, fleet)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise AnsibleFilterError(f"hwaccel.gpu.feature_discovery_objects cannot read what it was given: {error}") from error


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"feature_discovery_objects": feature_discovery_objects}
