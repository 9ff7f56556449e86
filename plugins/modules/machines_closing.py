#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machines_closing
version_added: 0.2.0
short_description: End a run with a summary of all machines
description:
  - Near the end of playbooks on machines. It shows the result in one line, a table of the machines, what was changed, and what failed, each with its reason
    and next step, from the outcomes of M(hwaccel.gpu.machine_outcome). It does not fail, because Ansible publishes no statistics of a task that has failed.
  - The summaries are published as the statistic C(hwaccel_summary), as by M(ansible.builtin.set_stats), for job templates of AWX.
  - The task must be run with C(run_once). It connects to no host.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  role:
    description: The role that was run.
    type: str
    required: true
  entry:
    description: Its file of tasks, C(main), C(preflight) or C(teardown).
    type: str
    default: main
  problems:
    description: Problems that were found before any machine was changed. One that begins with C(machine NAME) belongs to this machine, others to all.
    type: list
    elements: str
    default: []
  path:
    description: File on the controller that gets the summaries as JSON, as described in C(docs/summary.md). A relative path is relative to the current folder.
    type: str
    default: ''
extends_documentation_fragment:
  - hwaccel.gpu.attributes.info_module
seealso:
  - module: hwaccel.gpu.machine_outcome
  - module: hwaccel.gpu.closing
"""

EXAMPLES = r"""
- name: Show the result
  hwaccel.gpu.machines_closing:
    role: node_runtime
  run_once: true
  register: closed

- name: Fail if there are problems
  ansible.builtin.fail:
    msg: "{{ closed.failure }}"
  when: inventory_hostname in closed.failed_machines
"""

RETURN = r"""
machines:
  description: The summary of each machine, by its name, with C(succeeded), C(state), C(reasons), C(changes) and C(report).
  returned: always
  type: dict
failed_machines:
  description: Names of the machines with a reason why they failed.
  returned: always
  type: list
  elements: str
failure:
  description: What has failed, in one sentence with the next step. Empty if the run has succeeded.
  returned: always
  type: str
"""
