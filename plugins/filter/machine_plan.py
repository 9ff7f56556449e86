# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the changes of a role on a machine."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._installed import installed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import role as dns_pxe
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import role as kubeadm
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import role as load_balancer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.predicted import idle, predicted
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import role as node_runtime

DOCUMENTATION = r"""
name: machine_plan
version_added: 0.2.0
short_description: Changes of a role on a machine
description:
  - Computes the files and all other changes of a role on a machine, from its observed state and the role's settings.
  - With O(state=absent), what teardown restores and removes, and its actions on services, from the role's record and the observed state.
  - It writes nothing. The result shows whether running services have loaded the files on disk.
author:
  - hwaccel.gpu contributors (@hwaccel)
extends_documentation_fragment:
  - hwaccel.gpu.machine_look
options:
  settings:
    description: >-
      The role's variables, by their names without the name of the role. With O(state=absent), only C(cluster_kubeadm) and C(node_runtime) need them.
    type: dict
    default: {}
  found:
    description: >-
      For the role C(dns_pxe), results of other tasks. C(images), of M(ansible.builtin.stat) on the server; C(local), of the same
      on the controller; C(remote), of M(ansible.builtin.uri); C(probe), of C(probe.py).
    type: dict
  state:
    description: V(present) for the configured role, V(absent) for its teardown.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Compute the plan
  ansible.builtin.set_fact:
    plan: "{{ look.stdout | hwaccel.gpu.machine_plan('load_balancer', settings=settings) }}"
"""

RETURN = r"""
_value:
  description: >-
    The plan. In addition to these keys it has those that the role's tasks read (see C(plan) and C(restored) of the role's package in
    C(plugin_utils/machines)). With O(state=absent) it has C(packages), and of the others only those that it needs.
  type: dict
  contains:
    messages:
      description: What was decided, as sentences.
      type: list
      elements: str
    predicted:
      description: What a run changes by it, one line each. Ports of firewalls and labels of SELinux are not among it.
      type: list
      elements: str
    idle:
      description: Whether a run does nothing by it, also for itself, if there are no faults.
      type: bool
    faults:
      description: Problems that prevent the run, each with C(text).
      type: list
      elements: dict
    absent:
      description: Paths to remove.
      type: list
      elements: str
    selinux:
      description: Whether SELinux must be configured.
      type: bool
    record:
      description: The record by which teardown restores the previous state.
      type: str
    packages:
      description: With O(state=absent), packages that the role has installed.
      type: list
      elements: str
"""

_PLANS: dict[str, t.Callable[..., dict[str, t.Any]]] = {
    "cluster_kubeadm": kubeadm.planned,
    "dns_pxe": dns_pxe.planned,
    "load_balancer": load_balancer.planned,
    "node_runtime": node_runtime.planned,
}
_RESTORED: dict[str, t.Callable[..., dict[str, t.Any]]] = {
    "cluster_kubeadm": kubeadm.restored,
    "dns_pxe": dns_pxe.restored,
    "load_balancer": load_balancer.restored,
    "node_runtime": node_runtime.restored,
}
#: Collections with modules for firewalls and SELinux. Preflight names those that a machine needs and that are missing.
_COLLECTIONS = ("ansible.posix", "community.general")


def machine_plan(
    printed: str,
    role: str,
    settings: dict[str, t.Any] | None = None,
    found: dict[str, t.Any] | None = None,
    state: str = "present",
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    given = settings or {}
    if state == "absent":
        compute, more = of_role("machine_plan", role, _RESTORED), []
    else:
        compute, more = of_role("machine_plan", role, _PLANS), [] if found is None else [found]
        given = {**given, "collections": installed(*_COLLECTIONS)}

    def with_lines(printed: str, given: dict[str, t.Any], *more: dict[str, t.Any]) -> dict[str, t.Any]:
        plan = compute(printed, given, *more)
        lines = predicted(plan, absent=state == "absent", restarts=bool(given.get("restart", True)))
        return {**plan, "predicted": lines, "idle": idle(plan, lines)}

    return t.cast("dict[str, t.Any]", computed("machine_plan", with_lines, printed, given, *more))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"machine_plan": machine_plan}
