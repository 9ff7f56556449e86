# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that run pods on nodes to test them."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  namespace:
    description: Namespace of the pods, unless their manifest names one.
    type: str
    default: hwaccel-gpu
  max_failed:
    description: Maximum number of failed nodes, as a number or as a percentage of the nodes judged.
    type: str
    default: "0"
  exclude:
    description: Names of nodes to exclude.
    type: list
    elements: str
    default: []
  schedule_timeout:
    description: Seconds after which a pod that cannot be scheduled is deleted.
    type: float
    default: 30
  start_timeout:
    description: Seconds within which a pod must start, including the time to pull its image.
    type: float
    default: 300
  timeout:
    description: Maximum number of seconds that a pod may run.
    type: float
    default: 300
  sample:
    description: Maximum number of nodes reported in RV(faults).
    type: int
    default: 20
"""
