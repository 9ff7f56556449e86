# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what is done to have a virtual machine gone."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import run

DOCUMENTATION = r"""
name: machine_boot_removal
version_added: 0.2.0
short_description: What is done to have a virtual machine gone
description:
  - Decides what the role C(machine_boot) does to remove one machine, from what its hypervisor has said, and what it refuses.
  - It does nothing itself.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: What is asked of the machine, as the role's C(machine_boot_asked) has it.
    type: dict
    required: true
  looked:
    description: Result of the task that has asked the machine's hypervisor. Empty where it has a BMC.
    type: dict
    required: true
  nodes:
    description: What the machine's cluster has said of its nodes, C(known), C(names), and C(why) where they are not known.
    type: dict
    required: true
  disks:
    description: Whether its disk goes with it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Decide what is done
  ansible.builtin.set_fact:
    plan: "{{ machine_boot_asked | hwaccel.gpu.machine_boot_removal(looked=looked, nodes=machine_boot_nodes) }}"
"""

RETURN = r"""
_value:
  description: The plan.
  type: dict
  contains:
    told:
      description: What was decided, in sentences.
      type: list
      elements: str
    faults:
      description: Why nothing is done, each with C(text).
      type: list
      elements: dict
    steps:
      description: What is done, each with C(text), C(kind), what its provider is given (C(give)), and the power state that ends it (C(until)).
      type: list
      elements: dict
"""


def machine_boot_removal(
    entry: dict[str, t.Any], looked: dict[str, t.Any], nodes: dict[str, t.Any], disks: bool = False
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    return t.cast(
        "dict[str, t.Any]", computed("machine_boot_removal", lambda: run.removed(entry, looked, nodes, disks))
    )


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"machine_boot_removal": machine_boot_removal}
