# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: objects of Node Feature Discovery for a cluster."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._manifests import planned
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.feature_discovery import plan

DOCUMENTATION = r"""
name: feature_discovery_objects
version_added: 0.1.0
short_description: Objects of Node Feature Discovery for a cluster
description:
  - Makes the objects that the role P(hwaccel.gpu.feature_discovery#role) applies.
    Where another Node Feature Discovery is there, these are none.
author:
  - hwaccel.gpu contributors (@hwaccel)
extends_documentation_fragment:
  - hwaccel.gpu.objects
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
    namespace:
      description: Namespace of the component's pods, where another brings it and it was found.
      type: str
    namespaces:
      description: Names of the Namespaces among the objects.
      type: list
      elements: str
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
    told:
      description: What people want to know of it, a line each - notes, what was assumed, what is unknown.
      type: list
      elements: str
    faults:
      description: Reasons not to begin, each with C(what), C(where), C(why), C(next_step), and all of them as C(text).
      type: list
      elements: dict
"""


def feature_discovery_objects(manifests: list[str], settings: dict[str, t.Any], fleet: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    return planned("feature_discovery_objects", plan, manifests, settings, fleet)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"feature_discovery_objects": feature_discovery_objects}
