# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what a role on machines has to change there."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._installed import installed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import role as dns_pxe
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import role as load_balancer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import role as node_runtime

DOCUMENTATION = r"""
name: machine_plan
version_added: 0.2.0
short_description: What a role on machines has to change there
description:
  - Computes every file that the role writes on a machine and everything that has to change there, from a look at it and from the role's settings.
  - It writes nothing. What it returns says whether running services have read what is on disk.
author:
  - hwaccel.gpu contributors (@hwaccel)
extends_documentation_fragment:
  - hwaccel.gpu.machine_look
options:
  settings:
    description: The role's variables, by their names without the name of the role.
    type: dict
    required: true
  found:
    description: >-
      Of the role C(dns_pxe), results of tasks that have looked elsewhere. C(images), of M(ansible.builtin.stat) on the server; C(local), of the same
      on the controller; C(remote), of M(ansible.builtin.uri); C(probe), of C(probe.py).
    type: dict
"""

EXAMPLES = r"""
- name: Compute the plan
  ansible.builtin.set_fact:
    plan: "{{ look.stdout | hwaccel.gpu.machine_plan('load_balancer', settings=settings) }}"
"""

RETURN = r"""
_value:
  description: The plan. Beside these keys it has what the role's tasks read, as C(plan) of the role's package in C(plugin_utils/machines) documents it.
  type: dict
  contains:
    messages:
      description: What was decided, in sentences.
      type: list
      elements: str
    faults:
      description: Reasons not to begin, each with C(text).
      type: list
      elements: dict
    absent:
      description: Paths that are not to be.
      type: list
      elements: str
    selinux:
      description: Whether SELinux has to be configured.
      type: bool
    record:
      description: The record by which teardown puts everything back.
      type: str
"""

_PLANS: dict[str, t.Callable[..., dict[str, t.Any]]] = {
    "dns_pxe": dns_pxe.planned,
    "load_balancer": load_balancer.planned,
    "node_runtime": node_runtime.planned,
}
#: With modules for firewalls and SELinux: preflight names those that a machine needs and that are missing.
_COLLECTIONS = ("ansible.posix", "community.general")


def machine_plan(
    printed: str, role: str, settings: dict[str, t.Any], found: dict[str, t.Any] | None = None
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    compute, more = of_role("machine_plan", role, _PLANS), [] if found is None else [found]
    settings = {**settings, "collections": installed(*_COLLECTIONS)}
    return t.cast("dict[str, t.Any]", computed("machine_plan", lambda: compute(printed, settings, *more)))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"machine_plan": machine_plan}
