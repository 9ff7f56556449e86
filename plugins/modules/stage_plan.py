#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: stage_plan
version_added: 0.2.0
short_description: Compute what the role of a stage applies to a cluster
description:
  - It refuses variables that contain undefined values, validates the values of the role's variables, reads the
    fleet, computes the desired objects, and shows what was decided. It changes nothing.
  - It reads the variables of the role, among them those in C(vars/main.yml) of the role - C(__ROLE_manifests), the names of its templates,
    C(__ROLE_settings), and C(__ROLE_read), the options of M(hwaccel.gpu.node_info). They are evaluated after the role's public variables have been
    validated.
  - The fleet is the one in the variable C(ROLE_fleet), or is read with M(hwaccel.gpu.node_info) and the connection options of this task.
  - Its result is registered as C(ROLE_plan), which later stages read.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  role:
    description: The role.
    type: str
    required: true
    choices: [feature_discovery, driver, device_plugin, monitoring, gpu_validation]
  stop:
    description: Whether it fails if there are problems. Otherwise they are only returned, so that all roles can report theirs together.
    type: bool
    default: false
  render:
    description: Whether no cluster is queried. The declared pools are the fleet.
    type: bool
    default: false
extends_documentation_fragment:
  - hwaccel.gpu.cluster
  - hwaccel.gpu.attributes.info_module
seealso:
  - module: hwaccel.gpu.stage
  - module: hwaccel.gpu.variables
  - plugin: hwaccel.gpu.stage_objects
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Compute the plan, and stop if there are problems
  hwaccel.gpu.stage_plan:
    role: driver
    stop: true
  register: driver_plan
"""

RETURN = r"""
objects:
  description: The objects, in the order in which they are applied. All keys are those of P(hwaccel.gpu.stage_objects#filter).
  returned: if the variables are valid
  type: list
  elements: dict
faults:
  description: The problems, each with C(what), C(where), C(why), C(next_step), and all of them as C(text).
  returned: always
  type: list
  elements: dict
msg:
  description: The texts of the problems, or what prevented a plan.
  returned: failure
  type: list
  elements: str
"""
