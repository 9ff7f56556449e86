# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what HAProxy says about a configuration."""

from __future__ import annotations

import typing as t

from ansible.utils.unsafe_proxy import wrap_var

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import verdict

DOCUMENTATION = r"""
name: load_balancer_verdict
version_added: 0.1.0
short_description: What HAProxy says about a configuration
description:
  - Faults of a configuration in HAProxy's own words, each with the line that it means.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: The configuration that HAProxy has read from its standard input.
    type: str
    required: true
  result:
    description: Result of C(haproxy -c).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Judge what HAProxy says
  ansible.builtin.set_fact:
    faults: "{{ configuration | hwaccel.gpu.load_balancer_verdict(result=checked) }}"
"""

RETURN = r"""
_value:
  description: What stands against it, each with C(text); empty where HAProxy accepts it.
  type: list
  elements: dict
"""


def load_balancer_verdict(configuration: str, result: dict[str, t.Any]) -> list[dict[str, str]]:
    """See DOCUMENTATION."""
    said = f"{result.get('stdout', '')}\n{result.get('stderr', '')}"
    found = verdict.faults(configuration, int(result.get("rc", 1)), said.strip() or str(result.get("msg", "")))
    return t.cast("list[dict[str, str]]", wrap_var([fault.as_dict() for fault in found]))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"load_balancer_verdict": load_balancer_verdict}
