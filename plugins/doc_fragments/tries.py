# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that run pods on nodes to try them."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  namespace:
    description: Namespace of the pods, unless their manifest names one.
    type: str
    default: hwaccel-gpu
  max_failed:
    description: So many failed nodes are borne, as a number or as a percentage of the nodes judged.
    type: str
    default: "0"
  exclude:
    description: Names of nodes to leave out.
    type: list
    elements: str
    default: []
  schedule_timeout:
    description: Seconds after which a pod that no node takes is given up.
    type: float
    default: 30
  start_timeout:
    description: Seconds that a pod may take to start, its image pulled.
    type: float
    default: 300
  timeout:
    description: Seconds that a pod may run.
    type: float
    default: 300
  sample:
    description: At most so many nodes are reported in RV(faults).
    type: int
    default: 20
"""
