#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: inventory_check
version_added: 0.2.0
short_description: Check which clusters and machines a run has
description:
  - The first task of each playbook on clusters. It fails if the run has no cluster, because Ansible would then run nothing and report success, and if
    a requested tag does not exist, for the same reason.
  - It connects to no host.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  stages:
    description: The tags that exist, which are names of stages.
    type: list
    elements: str
    choices: [feature_discovery, driver, device_plugin, monitoring, gpu_validation]
    default: []
  machines:
    description: Whether the clusters of machines are checked as well.
    type: bool
    default: false
extends_documentation_fragment:
  - hwaccel.gpu.attributes.info_module
seealso:
  - module: hwaccel.gpu.cluster_preflight
"""

EXAMPLES = r"""
- name: Verify that there is a cluster
  hwaccel.gpu.inventory_check:
  run_once: true
"""

RETURN = r"""
faults:
  description: Machines without a cluster, one sentence for each.
  returned: success
  type: list
  elements: str
msg:
  description: Why nothing can be run, a list if variables contain undefined values.
  returned: failure
  type: raw
"""
