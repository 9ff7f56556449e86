# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the results of services' own checks of a new configuration."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role

DOCUMENTATION = r"""
name: machine_verdict
version_added: 0.2.0
short_description: Results of services' own checks of a new configuration
description:
  - Reads the output of services' own checks of a configuration before it is loaded, and names the lines and variables concerned.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role
options:
  _input:
    description: The output of the task that observes the machine.
    type: str
    required: true
  role:
    description: The role whose task observed it.
    type: str
    required: true
    choices: [dns_pxe, load_balancer, node_runtime]
  settings:
    description: The role's variables, by their names without the name of the role. Only the role C(node_runtime) needs them.
    type: dict
  results:
    description: >-
      Results of the commands by the name of the check, each with C(rc), C(stdout) and C(stderr).
    type: dict
    required: true
  staged:
    description: Texts by path that the checkers have read, from the plan.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Judge the staged configuration
  ansible.builtin.set_fact:
    verdict: "{{ look.stdout | hwaccel.gpu.machine_verdict('node_runtime', settings=settings, results=results, staged=plan.staged) }}"
"""

RETURN = r"""
_value:
  description: The verdict.
  type: dict
  contains:
    faults:
      description: The problems, each with C(text).
      type: list
      elements: dict
    messages:
      description: Other findings, as sentences.
      type: list
      elements: str
"""


def machine_verdict(
    printed: str,
    role: str,
    results: dict[str, dict[str, t.Any]],
    staged: dict[str, str],
    settings: dict[str, t.Any] | None = None,
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import role as dns_pxe
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import role as load_balancer
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import role as node_runtime

    verdicts = {
        "dns_pxe": dns_pxe.judged,
        "load_balancer": load_balancer.judged,
        "node_runtime": node_runtime.judged,
    }
    compute = of_role("machine_verdict", role, verdicts)
    return t.cast("dict[str, t.Any]", computed("machine_verdict", compute, printed, settings or {}, results, staged))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"machine_verdict": machine_verdict}
