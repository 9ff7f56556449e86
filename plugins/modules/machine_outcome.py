#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_outcome
version_added: 0.2.0
short_description: Keep the outcome of a role on a machine
description:
  - In playbooks on machines, before the role, after it, and where it has failed. The outcome is C(ROLE_outcome) of C(ansible_facts), which
    M(hwaccel.gpu.machines_closing) summarizes at the end of the run.
  - It connects to no host.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  role:
    description: The role.
    type: str
    required: true
  state:
    description:
      - V(begun) before the role is run.
      - V(done) after it. If it has found problems (C(ROLE_faults)), the outcome is C(problems).
      - V(failed) in the C(rescue) section of its block, which has the failed task. The message of a task with C(no_log) is not kept.
      - V(left) if nothing is done with the machine, because its cluster has problems. Its outcome is kept, without changes.
      - V(left_out) if a run goes on without the machine, with its O(reasons). With C(delegate_to) and C(delegate_facts), of that machine.
    type: str
    required: true
    choices: [begun, done, failed, left, left_out]
  phase:
    description: >-
      The phase of C(site) that runs the role. The outcome is also kept in the fact C(hwaccel_phase_outcomes), by the names of
      phases. With O(state=begun) the machine is held if an earlier phase has failed on it, on a machine that serves its cluster, or on the cluster, if the
      preflight of the cluster has found problems, or if all machines of an earlier batch of the cluster have failed.
    type: str
    default: ""
  reads:
    description: Whether the role only reads, so that the machine is never held.
    type: bool
    default: false
  changes:
    description: With O(state=done), what was changed in addition to C(ROLE_predicted).
    type: list
    elements: str
    default: []
  reasons:
    description: With O(state=left_out), why.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - hwaccel.gpu.attributes.info_module
seealso:
  - module: hwaccel.gpu.machines_closing
"""

EXAMPLES = r"""
- name: Run a role and keep its outcome
  block:
    - name: Run the role
      ansible.builtin.include_role:
        name: hwaccel.gpu.node_runtime

    - name: Keep the outcome
      hwaccel.gpu.machine_outcome:
        role: node_runtime
        state: done
  rescue:
    - name: Keep the failure
      hwaccel.gpu.machine_outcome:
        role: node_runtime
        state: failed
"""

RETURN = r"""
stop:
  description: With O(state=begun), whether the run stops before this machine, because all machines of an earlier batch have failed.
  returned: always
  type: bool
held:
  description: With O(state=begun), whether the machine is to be left as it is.
  returned: always
  type: bool
ansible_facts:
  description: The outcome.
  returned: unless RV(stop)
  type: dict
  contains:
    ROLE_outcome:
      description: C(state), C(batch) (names of the machines), C(reasons) (problems, or why it has failed) and C(changes).
      type: dict
"""
