# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What filters are given that compute from a look at a machine."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
positional: _input, role
options:
  _input:
    description: What the look at the machine has printed, of the role's tasks C(look.yml).
    type: str
    required: true
  role:
    description: Whose look it was.
    type: str
    required: true
    choices: [dns_pxe, load_balancer, node_runtime]
"""
