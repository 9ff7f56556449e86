# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what a machine needs to give GPUs to containers."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._machines import computed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import plan

DOCUMENTATION = r"""
name: node_runtime_plan
version_added: 0.1.0
short_description: What a machine needs to give GPUs to containers
description:
  - Decides who brings NVIDIA's container runtime to a machine, and computes every file that has to change, from files and facts of that machine.
  - It writes nothing. What it returns says whether running services have read what is on disk.
author:
  - hwaccel.gpu contributors (@hwaccel)
extends_documentation_fragment:
  - hwaccel.gpu.machine
"""

EXAMPLES = r"""
- name: Compute what is to be
  ansible.builtin.set_fact:
    plan: "{{ seen.stdout_lines | hwaccel.gpu.node_runtime_plan(settings=settings) }}"
"""

RETURN = r"""
_value:
  description: The plan.
  type: dict
  contains:
    provider:
      description: V(hwaccel), V(container), V(existing), or V(none) where there is no GPU.
      type: str
    told:
      description: What was decided, in sentences.
      type: list
      elements: str
    faults:
      description: What stands against it, each with C(text).
      type: list
      elements: dict
    files:
      description:
        - Files that are otherwise than they are to be, in text, mode or owner, each with C(path), C(mode), C(uid), C(gid) and C(sensitive).
          Their texts are in RV(_value.contents).
      type: list
      elements: dict
    contents:
      description: Text by path.
      type: dict
    absent:
      description: Paths that are not to be.
      type: list
      elements: str
    changes:
      description: Paths that are otherwise than they are to be.
      type: list
      elements: str
    folders:
      description: Folders of these that are not there.
      type: list
      elements: str
    staged:
      description: Text by path, for RV(_value.checks) alone.
      type: dict
    checks:
      description: Commands that judge what is staged, each with C(name) and C(argv).
      type: list
      elements: dict
    restarts:
      description:
        - Services that do not run with what is on disk, each with C(unit), C(why), C(health), a command that succeeds once it serves, and C(ends_pods),
          whether its containers end with it.
      type: list
      elements: dict
    drain:
      description: Why pods have to leave the node before these restarts, empty where they can stay.
      type: str
    drains:
      description: Whether this run or an earlier one might have drained the node.
      type: bool
    toolkit:
      description: Whether packages are to be installed (C(install)), by which C(manager), and their C(names).
      type: dict
    cdi:
      description: How GPUs are described to engines, empty where the machine cannot.
      type: dict
    selinux:
      description: Whether the boolean C(container_use_devices) is to be switched on.
      type: bool
    originals:
      description: Paths that are to be kept before the first change.
      type: list
      elements: str
    record:
      description: Text of the record by which teardown puts everything back.
      type: str
    keeps:
      description: Whether there is anything new in these two.
      type: bool
"""


def node_runtime_plan(lines: list[str], settings: dict[str, t.Any]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    return computed("node_runtime_plan", plan.plan, lines, settings)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"node_runtime_plan": node_runtime_plan}
