#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: stage
version_added: 0.2.0
short_description: Apply and verify a stage on a cluster
description:
  - The task of each role on clusters. It computes the plan as M(hwaccel.gpu.stage_plan) does, applies its objects with M(hwaccel.gpu.manifest_set),
    and verifies them with the modules that the role names, such as M(hwaccel.gpu.node_gate). Their progress is shown.
  - It reads the variables of the role, among them those in C(vars/main.yml) of the role - those of M(hwaccel.gpu.stage_plan), C(__ROLE_apply), the options of
    M(hwaccel.gpu.manifest_set), and C(__ROLE_verify), a list of C(name), C(module), C(options) and C(taken). They are evaluated when they are needed, and may
    refer to C(ROLE_plan). Empty options count as not set.
  - The plan in C(hwaccel_preflight) is used, unless an earlier stage of the same run has changed something, or has waited for nodes.
  - Its result is registered as C(ROLE_stage), which later stages read.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  role:
    description: The role.
    type: str
    required: true
    choices: [feature_discovery, driver, device_plugin, monitoring, gpu_validation]
  stop:
    description: Whether the task fails if the stage has stopped. Otherwise RV(stopped) has the reasons, for a report at the end of the run.
    type: bool
    default: true
extends_documentation_fragment:
  - hwaccel.gpu.cluster
  - hwaccel.gpu.attributes
  - hwaccel.gpu.attributes.cluster_group
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
seealso:
  - module: hwaccel.gpu.manifest_set
  - module: hwaccel.gpu.node_gate
  - module: hwaccel.gpu.stage_plan
"""

EXAMPLES = r"""
- name: Apply the objects of the driver stack, and wait until a CUDA kernel has run on every GPU
  hwaccel.gpu.stage:
    role: driver
  register: driver_stage
"""

RETURN = r"""
plan:
  description: The plan. All keys are those of P(hwaccel.gpu.stage_objects#filter).
  returned: success
  type: dict
set:
  description: The result of M(hwaccel.gpu.manifest_set), empty if there are no objects.
  returned: success
  type: dict
gate:
  description: The result of the first verification, empty if nothing was verified. Those of others are returned by their names.
  returned: success
  type: dict
stopped:
  description: Why the stage has stopped, empty if it was completed.
  returned: success
  type: list
  elements: str
msg:
  description: Why the stage has stopped, a list if there are several reasons.
  returned: failure
  type: raw
"""
