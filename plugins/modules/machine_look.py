#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_look
version_added: 0.2.0
short_description: Observe a machine, and compute the plan of a role
description:
  - Connects to the machine, runs C(look.py) of the role C(machine) there, and computes the files and all other changes of the role on the machine,
    from its observed state and the role's settings. It writes nothing. The plan shows whether running services have loaded the files on disk.
  - A machine that cannot be reached fails instead of being unreachable, so that it stays in the play.
  - If the result of each task is registered as C(__machine_looked), a machine is pinged once in a run, and again only if it was started in this run
    (C(hwaccel_awaited)).
  - Plans contain the contents of files, so tasks need C(no_log). The reason of a failure contains none of them.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  role:
    description: The role that includes the task.
    type: str
    required: true
    choices: [cluster_k3s, cluster_kubeadm, dns_pxe, load_balancer, node_runtime]
  settings:
    description: >-
      The role's variables, by their names without the name of the role. With O(state=absent), only C(cluster_k3s),
      C(cluster_kubeadm) and C(node_runtime) need them.
    type: dict
    default: {}
  found:
    description: >-
      For the role C(dns_pxe), results of other tasks. C(images), of M(ansible.builtin.stat) on the server; C(local), of the same
      on the controller; C(remote), of M(ansible.builtin.uri); C(probe), of C(probe.py).
    type: dict
  state:
    description: V(present) for the configured role. V(absent) for what its teardown restores and removes, from the role's record.
    type: str
    choices: [present, absent]
    default: present
  observe:
    description: Whether the machine is observed. V(false) only connects to it, before tasks that need it.
    type: bool
    default: true
  awaits:
    description: >-
      Whether the machine is observed until services run with the files on disk, because their processes may need a moment. It fails after 20 seconds.
    type: bool
    default: false
extends_documentation_fragment:
  - hwaccel.gpu.attributes.info_module
seealso:
  - module: hwaccel.gpu.machine_outcome
"""

EXAMPLES = r"""
- name: Observe the machine, and compute the plan
  hwaccel.gpu.machine_look:
    role: load_balancer
    settings: "{{ settings }}"
  register: __machine_looked
  check_mode: false
  no_log: true
"""

RETURN = r"""
reached:
  description: Whether it was possible to connect to the machine.
  returned: always
  type: bool
away:
  description: The machine cannot be reached, and was not reached earlier in this run.
  returned: if the machine cannot be reached
  type: bool
printed:
  description: The output of C(look.py).
  returned: success, with O(observe=true)
  type: str
plan:
  description: >-
    The plan. In addition to these keys it has those that the role's tasks read (see C(plan) and C(restored) of the role's package in
    C(plugin_utils/machines)). With O(state=absent) it has C(packages), and of the others only those that it needs.
  returned: success, with O(observe=true)
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
ansible_facts:
  description: The interpreter that Ansible has discovered.
  returned: if it was discovered by this task
  type: dict
"""
