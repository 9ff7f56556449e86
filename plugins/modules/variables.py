#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: variables
version_added: 0.2.0
short_description: Refuse variables in which something is undefined
description:
  - Evaluates all variables of this collection's playbooks and roles that are set for the host, down to each text in dictionaries and lists, and fails with
    all of those in which something is undefined, or which cannot be evaluated. Where a playbook or role has a default for a variable, Ansible takes an
    undefined one for one that is not set, so another cluster than the one that is meant could be worked on.
  - Variables that are not set, or empty, are no faults.
  - Of a machine the variables of its cluster's host are looked at too, as roles on machines read them.
  - Where a role on machines begins, the values of its variables are judged as well, all at once, before they are held against its argument specification
    and before a machine is reached. How many machines are taken together (C(hwaccel_machines_at_a_time), C(hwaccel_boots_at_a_time)) is judged wherever
    it is set.
  - It runs on the controller alone, reaches no host, and is the first task of each role and of each playbook.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  hosts:
    description: Names of further hosts whose variables are read. A host that the inventory does not have is passed over.
    type: list
    elements: str
    default: []
  machines:
    description: Names of further hosts of which C(hwaccel_cluster) alone is looked at, by which their cluster is known.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - hwaccel.gpu.attributes.info_module
seealso:
  - module: ansible.builtin.validate_argument_spec
"""

EXAMPLES = r"""
- name: Refuse variables in which something is undefined
  hwaccel.gpu.variables:
"""

RETURN = r"""
msg:
  description: What is wrong with each variable, with the host and the next step.
  returned: failure
  type: list
  elements: str
"""
