# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: objects that bring the driver to a fleet."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._manifests import planned
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.driver import plan

DOCUMENTATION = r"""
name: driver_objects
version_added: 0.1.0
short_description: Objects that bring the driver to a fleet
description:
  - Makes one driver DaemonSet for each class of nodes (pool, kernel, operating system, architecture, driver version), one for kernels not seen yet,
    the container toolkit for each container runtime, and the validator.
  - Chooses the driver's image from a table of published images, and says for each class which one and why.
  - A driver DaemonSet that runs in the cluster stays with the nodes that it has, whatever is declared later, and the others leave it these nodes.
    Where another version is declared, a node takes that one by the label C(hwaccel.gpu/driver-version).
  - Pools whose driver is the host's get toolkit and validator, pools with another deployment or none get nothing.
author:
  - hwaccel.gpu contributors (@hwaccel)
extends_documentation_fragment:
  - hwaccel.gpu.objects
options:
  settings:
    description: The role's settings, these beside O(hwaccel.gpu.feature_discovery_objects#filter:settings).
    type: dict
    required: true
    suboptions:
      build:
        description:
          - For builds in place, C(http_proxy), C(https_proxy), C(no_proxy), names of ConfigMaps C(repositories) and C(certificates),
            and C(proxy_secret), name of a Secret whose keys are environment variables.
          - A user or password in a URL is a fault.
        type: dict
      build_images:
        description: Tags of images of one's own that build in place.
        type: list
        elements: str
      extra_versions:
        description: Versions that run beside a pool's own, by pool.
        type: dict
      kernel_module_type:
        description: V(auto), V(open) or V(proprietary).
        type: str
      precompiled_images:
        description: Tags of precompiled images of one's own.
        type: list
        elements: str
      repository:
        description: Repository of driver images, without tag.
        type: str
      runtime_config:
        description: containerd's configuration file on the nodes, where it is not at the usual place.
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
"""

EXAMPLES = r"""
- name: Compute what the fleet's drivers need
  ansible.builtin.set_fact:
    plan: "{{ manifests | hwaccel.gpu.driver_objects(settings={'pools': hwaccel_pools, 'version': '595.91.07'}, fleet=fleet) }}"
"""

RETURN = r"""
_value:
  description: As RV(hwaccel.gpu.feature_discovery_objects#filter:_value), and of the pools.
  type: dict
  contains:
    pools:
      description: Who brings the driver to each pool, by the pool's name.
      type: dict
"""


def driver_objects(manifests: list[str], settings: dict[str, t.Any], fleet: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    return planned("driver_objects", plan, manifests, settings, fleet)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"driver_objects": driver_objects}
