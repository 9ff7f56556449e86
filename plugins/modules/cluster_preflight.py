#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_preflight
version_added: 0.2.0
short_description: Check the variables and credentials of a cluster, read its fleet, and plan the stages
description:
  - The first task of each playbook on clusters. It refuses variables that contain undefined values, reports misspelled ones, validates the values of
    the public variables of the stages, and refuses a host without credentials of its own if the inventory has several clusters.
  - It then reads the fleet with M(hwaccel.gpu.node_info) and the options in C(hwaccel_connection) for all roles, and validates the variables that need the
    cluster.
  - It then computes the plan of each stage in C(hwaccel_taken_stages), as M(hwaccel.gpu.stage_plan) does, and shows what was decided. The variables of
    their roles must be known to the play.
  - Problems are returned. A problem in one variable only skips what needs this variable. It changes nothing.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  stages:
    description: Roles whose variables are validated in addition to the common ones. By default those of the requested stages.
    type: list
    elements: str
    choices: [feature_discovery, driver, device_plugin, monitoring, gpu_validation]
    default: []
  read:
    description: Whether the fleet is read, and the stages are planned. Otherwise C(hwaccel_only_pools) and C(hwaccel_only_nodes) are refused.
    type: bool
    default: true
extends_documentation_fragment:
  - hwaccel.gpu.attributes.info_module
seealso:
  - module: hwaccel.gpu.node_info
  - module: hwaccel.gpu.stage_plan
  - module: hwaccel.gpu.variables
"""

EXAMPLES = r"""
- name: Check variables and read the fleet
  hwaccel.gpu.cluster_preflight:
  register: hwaccel_preflight
"""

RETURN = r"""
faults:
  description: The problems. Each has C(text), and the C(stages) that cannot be planned. Those of a variable also have C(what), C(where), C(why),
    C(next_step) and C(variable).
  returned: always
  type: list
  elements: dict
blocked:
  description: Whether no stage can be planned.
  returned: always
  type: bool
blocked_stages:
  description: The stages that cannot be planned.
  returned: always
  type: list
  elements: str
fleet:
  description: The result of M(hwaccel.gpu.node_info), empty if it was not read.
  returned: always
  type: dict
plans:
  description: The plans by role, each with the keys of P(hwaccel.gpu.stage_objects#filter), empty if none was computed.
  returned: always
  type: dict
only:
  description: What C(hwaccel_only_pools) and C(hwaccel_only_nodes) restrict the run to, as C(pools) and C(nodes).
  returned: always
  type: dict
left_out:
  description: Names of the nodes that a restricted run leaves out.
  returned: always
  type: list
  elements: str
"""
