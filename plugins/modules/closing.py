#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: closing
version_added: 0.2.0
short_description: End a run with a summary of each cluster
description:
  - Near the end of playbooks on clusters. It summarizes the results of the stages (C(ROLE_stage)) and of the preflight, and shows the lines of
    P(hwaccel.gpu.closing_lines#filter). It does not fail, because Ansible publishes no statistics of a task that has failed.
  - With several clusters, the table of P(hwaccel.gpu.clusters_table#filter) comes first. The task must be run with C(throttle=1), so that it does.
  - The summaries of all clusters are published as the statistic C(hwaccel_summary), as by M(ansible.builtin.set_stats), for job templates of AWX.
  - It connects to no host.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  playbook:
    description: What was run, which determines what counts as a problem.
    type: str
    choices: [site, preflight, validate, status, teardown]
    default: site
  began:
    description: Start of the run in seconds since 1970. If it is set, the time that each pool took since then is shown.
    type: float
  lines:
    description: Lines that are shown below.
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
  - module: hwaccel.gpu.stage
  - plugin: hwaccel.gpu.gate_summary
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the result
  hwaccel.gpu.closing:
    playbook: site
  throttle: 1
  register: closed

- name: Fail if there are problems
  ansible.builtin.fail:
    msg: "{{ closed.failure }}"
  when: closed.failure | length > 0
"""

RETURN = r"""
summary:
  description: The summary of this cluster, with the keys of P(hwaccel.gpu.gate_summary#filter), and C(problems), C(stopped), C(providers) and C(succeeded).
  returned: always
  type: dict
failure:
  description: What has failed, in one sentence with the next step. Empty if the run has succeeded.
  returned: always
  type: str
"""
