# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what checkers say of a staged configuration."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._machines import computed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.host import Command

DOCUMENTATION = r"""
name: node_runtime_verdict
version_added: 0.1.0
short_description: What checkers say of a staged configuration
description:
  - Judges what containerd, Docker, CRI-O and nvidia-ctk have said of files that were staged, before a service sees them.
  - containerd's own reading of its configuration must differ in the runtime alone.
author:
  - hwaccel.gpu contributors (@hwaccel)
extends_documentation_fragment:
  - hwaccel.gpu.machine
options:
  results:
    description: Results of the commands by the name of the check, each with C(rc), C(stdout) and C(stderr).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Judge what is staged
  ansible.builtin.set_fact:
    verdict: "{{ seen.stdout_lines | hwaccel.gpu.node_runtime_verdict(settings=settings, results=results) }}"
"""

RETURN = r"""
_value:
  description: What was found.
  type: dict
  contains:
    faults:
      description: What stands against it, each with C(text).
      type: list
      elements: dict
    told:
      description: What is to be told, in sentences.
      type: list
      elements: str
"""


def node_runtime_verdict(
    lines: list[str], settings: dict[str, t.Any], results: dict[str, dict[str, t.Any]]
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    given = {
        name: Command(int(one["rc"]), one.get("stdout", ""), one.get("stderr", "")) for name, one in results.items()
    }
    return computed("node_runtime_verdict", plan.checked, lines, settings, given)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"node_runtime_verdict": node_runtime_verdict}
