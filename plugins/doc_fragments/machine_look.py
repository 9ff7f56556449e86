# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments of filters that compute from the observed state of a machine."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
positional: _input, role
options:
  _input:
    description: The output of the tasks that observe the machine.
    type: str
    required: true
  role:
    description: The role whose tasks observed it.
    type: str
    required: true
    choices: [cluster_kubeadm, dns_pxe, load_balancer, node_runtime]
"""
