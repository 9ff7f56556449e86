#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: show
version_added: 0.1.0
short_description: Show lines to people
description:
  - Shows lines as they are, below the name of the host, so that a table stays a table and what is to be copied can be copied.
    M(ansible.builtin.debug) shows a list as JSON.
  - It runs on the controller alone. Nothing is shown where there is no line, and under C(no_log).
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  lines:
    description: What is to be shown.
    type: list
    elements: str
    required: true
extends_documentation_fragment:
  - hwaccel.gpu.attributes.info_module
seealso:
  - module: ansible.builtin.debug
  - plugin: hwaccel.gpu.fleet_table
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the fleet
  hwaccel.gpu.show:
    lines: "{{ hwaccel_summary | hwaccel.gpu.fleet_table }}"
"""

RETURN = r"""
lines:
  description: What was shown.
  returned: success
  type: list
  elements: str
"""
