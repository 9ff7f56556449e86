# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: objects that bring the driver to a fleet."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.objects.driver import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._manifests import parse_manifests

DOCUMENTATION = r"""
name: driver_objects
version_added: 0.1.0
short_description: Objects that bring the driver to a fleet
description:
  - Makes one driver DaemonSet for each class of nodes (pool, kernel, operating system, architecture, driver version), one for kernels not seen yet,
    the container toolkit for each container runtime, and the validator.
  - Chooses the driver's image from a table of published images, and says for each class which one and why.
  - Pools whose driver is the host's get toolkit and validator, pools with another deployment or none get nothing.
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
      build:
        description: For builds in place, C(http_proxy), C(https_proxy), C(no_proxy), and names of ConfigMaps C(repositories) and C(certificates).
        type: dict
      build_images:
        description: Tags of images of one's own that build in place.
        type: list
        elements: str
      cluster_uid:
        description: The uid of the namespace C(kube-system) that the inventory means.
        type: str
      extra_versions:
        description: Versions that run beside a pool's own, by pool.
        type: dict
      image_pull_secrets:
        description: Names of Secrets in the pods' namespace.
        type: list
        elements: str
      image_registry:
        description: Takes the place of the registry's host in each image reference.
        type: str
      kernel_module_type:
        description: V(auto), V(open) or V(proprietary).
        type: str
      pools:
        description: Declared pools, as in C(hwaccel_pools).
        type: list
        elements: dict
      precompiled_images:
        description: Tags of precompiled images of one's own.
        type: list
        elements: str
      provider:
        description: Who brings the component. Empty, what is there decides.
        type: str
      repository:
        description: Repository of driver images, without tag.
        type: str
      runtime_socket:
        description: Socket of the container runtime, where it is not at the distribution's place.
        type: str
      source:
        description: V(precompiled), V(build), or empty for precompiled where one is known.
        type: str
      toolkit_env:
        description: Further environment of the toolkit.
        type: dict
      validator_image:
        description: Image of the validator.
        type: str
      version:
        description: Driver version of pools that name none.
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
- name: Compute what the fleet's drivers need
  ansible.builtin.set_fact:
    plan: "{{ manifests | hwaccel.gpu.driver_objects(settings={'pools': hwaccel_pools, 'version': '595.91.07'}, fleet=fleet) }}"
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


def driver_objects(manifests: list[str], settings: dict[str, t.Any], fleet: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    try:
        return plan(parse_manifests(manifests), settings, fleet)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise AnsibleFilterError(f"hwaccel.gpu.driver_objects cannot read what it was given: {error}") from error


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"driver_objects": driver_objects}
