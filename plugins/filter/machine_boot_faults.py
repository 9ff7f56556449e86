# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: problems in the requests for machines."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._installed import version
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import request, virtual

DOCUMENTATION = r"""
name: machine_boot_faults
version_added: 0.2.0
short_description: Problems in the requests for machines
description:
  - Validates the requests of the role C(machine_boot) for all machines at once, before it connects to any of them.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: The request for each machine, from the role's C(machine_boot_asked).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Collect problems
  ansible.builtin.set_fact:
    faults: "{{ ansible_play_hosts | map('extract', hostvars, 'machine_boot_asked') | list | hwaccel.gpu.machine_boot_faults }}"
"""

RETURN = r"""
_value:
  description: The problems, each with C(text).
  type: list
  elements: dict
"""


def machine_boot_faults(entries: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """See DOCUMENTATION."""
    versions = {name: version(name) for name in (request.COLLECTION, virtual.COLLECTION)}
    return t.cast(
        "list[dict[str, t.Any]]",
        computed("machine_boot_faults", lambda: [fault.as_dict() for fault in request.faults(entries, versions)]),
    )


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"machine_boot_faults": machine_boot_faults}
