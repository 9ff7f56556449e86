#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: show
version_added: 0.1.0
short_description: Show lines to the user
description:
  - Shows lines unchanged below the name of the host, so that tables stay aligned and commands can be copied.
    M(ansible.builtin.debug) shows a list as JSON.
  - It runs on the controller only. It shows nothing if there is no line, or with C(no_log).
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  lines:
    description: The lines to show.
    type: list
    elements: str
    required: true
  failure:
    description: If it is set, the task fails with this message after the lines. Ansible shows a message as JSON, in which line ends and quotes are escaped,
      so that a long one is better shown as lines.
    type: str
    default: ""
    version_added: 0.2.0
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
  description: The lines that were shown.
  returned: success
  type: list
  elements: str
"""
