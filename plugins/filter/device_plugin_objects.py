# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: objects that offer a fleet's GPUs to the scheduler."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._manifests import planned
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.device_plugin import plan

DOCUMENTATION = r"""
name: device_plugin_objects
version_added: 0.1.0
short_description: Objects that offer a fleet's GPUs to the scheduler
description:
  - Makes a device plugin and a GPU feature discovery for each configuration that a pool asks for, on the nodes of these pools.
  - Where another's device plugin is there, nothing.
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
      configs:
        description: Configurations by name, as the plugin reads them. V(default) is there without being given.
        type: dict
"""

EXAMPLES = r"""
- name: Compute what the device plugins need
  ansible.builtin.set_fact:
    plan: "{{ manifests | hwaccel.gpu.device_plugin_objects(settings={'pools': hwaccel_pools}, fleet=fleet) }}"
"""

RETURN = r"""
_value:
  description: As RV(hwaccel.gpu.feature_discovery_objects#filter:_value).
  type: dict
"""


def device_plugin_objects(manifests: list[str], settings: dict[str, t.Any], fleet: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    return planned("device_plugin_objects", plan, manifests, settings, fleet)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"device_plugin_objects": device_plugin_objects}
