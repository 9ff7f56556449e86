#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: variables
version_added: 0.2.0
short_description: Refuse variables that contain undefined values, and report misspelled ones
description:
  - Evaluates all variables of this collection's playbooks and roles that are set for the host, including each string in dictionaries and lists. It fails with
    a list of all variables that contain something undefined or cannot be evaluated. If a playbook or role has a default for a variable, Ansible treats an
    undefined value like a variable that is not set, so that a run could change another cluster than the intended one.
  - Variables that are not set, or empty, are not errors.
  - For a machine, the variables of its cluster's host are checked as well, because roles on machines read them.
  - At the start of a role on machines, the values of its variables are validated as well, all at once, before Ansible validates them against the argument
    specification and before a connection to the machine is made. The batch sizes (C(hwaccel_machines_at_a_time), C(hwaccel_boots_at_a_time)) are
    validated wherever they are set.
  - Variables of the inventory and extra variables whose names begin with C(hwaccel_) and are no variables of this collection, and those whose names
    are nearly the name of a variable of one of its roles, are reported with a warning, and with the name that was probably meant. If
    C(hwaccel_strict) is true, it fails with them.
  - It runs on the controller only, connects to no host, and is the first task of each role and of each playbook.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  hosts:
    description: Names of additional hosts whose variables are checked. A host that is not in the inventory is skipped.
    type: list
    elements: str
    default: []
  machines:
    description: Names of additional hosts of which only C(hwaccel_cluster) is checked, which determines their cluster.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - hwaccel.gpu.attributes.info_module
seealso:
  - module: ansible.builtin.validate_argument_spec
"""

EXAMPLES = r"""
- name: Refuse variables that contain undefined values
  hwaccel.gpu.variables:
"""

RETURN = r"""
msg:
  description: The error of each variable, with the host and the next step.
  returned: failure
  type: list
  elements: str
problems:
  description: The same with the variable C(hwaccel_closing), with which the module does not fail, because the playbook shows them at its end.
  returned: if there are errors
  type: list
  elements: str
"""
