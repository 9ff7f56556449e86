# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the provider of each part of the GPU stack."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import brought

DOCUMENTATION = r"""
name: providers
version_added: 0.2.0
short_description: Provider of each part of the GPU stack of a cluster
description:
  - Reports for each part of the stack, and for the driver's parts by pool, whether this collection, another deployment, the host or none provides it.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: The plans of the roles, by role, from the filter P(hwaccel.gpu.stage_objects#filter). Plans of stages that did not run are ignored.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the provider of the driver
  ansible.builtin.debug:
    msg: "{{ {'driver': driver_plan} | hwaccel.gpu.providers }}"
"""

RETURN = r"""
_value:
  description:
    - One row for each part and provider, with C(component), C(pools) (none for all), C(provider) (V(hwaccel), V(existing), V(host) or V(none)) and
      C(objects) (those of another deployment).
  type: list
  elements: dict
"""


def providers(plans: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    """See DOCUMENTATION."""
    return brought.rows({role: plan for role, plan in plans.items() if plan})


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"providers": providers}
