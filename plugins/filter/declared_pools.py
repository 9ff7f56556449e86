# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: declared pools in the format of the modules."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: declared_pools
version_added: 0.1.0
short_description: Declared pools in the format of the modules
description:
  - Removes C(machines) from declared pools. It describes the nodes of a pool for plans without a cluster, and modules do not accept it.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: Declared pools, as in C(hwaccel_pools). An empty value counts as none.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Read the fleet by its declared pools
  hwaccel.gpu.node_info:
    pools: "{{ hwaccel_pools | hwaccel.gpu.declared_pools }}"
"""

RETURN = r"""
_value:
  description: The pools without C(machines).
  type: list
  elements: dict
"""


def declared_pools(pools: t.Any) -> list[dict[str, t.Any]]:
    """See DOCUMENTATION."""
    if pools is None or pools == "":
        return []
    if not isinstance(pools, (list, tuple)) or not all(isinstance(pool, dict) for pool in pools):
        raise AnsibleFilterError("hwaccel_pools must be a list of pools, each with name, and selector or nodes")
    return [{key: value for key, value in pool.items() if key != "machines"} for pool in pools]


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"declared_pools": declared_pools}
