# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what puts a machine back as the role node_runtime has found it."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._machines import computed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import plan

DOCUMENTATION = r"""
name: node_runtime_restored
version_added: 0.1.0
short_description: What puts a machine back as the role node_runtime has found it
description:
  - Computes from the record of the role which files become what they were, which go, and which services have to be restarted.
  - From a file that somebody has changed since, only what the role has set is taken.
author:
  - hwaccel.gpu contributors (@hwaccel)
extends_documentation_fragment:
  - hwaccel.gpu.machine
"""

EXAMPLES = r"""
- name: Compute what goes back
  ansible.builtin.set_fact:
    plan: "{{ seen.stdout_lines | hwaccel.gpu.node_runtime_restored(settings=settings) }}"
"""

RETURN = r"""
_value:
  description: As RV(hwaccel.gpu.node_runtime_plan#filter:_value), and what follows.
  type: dict
  contains:
    packages:
      description: Packages that the role has installed.
      type: list
      elements: str
    record:
      description: Text of the record with the services that are to be restarted, which a later run restarts where this one does not come so far.
      type: str
    restarted:
      description: Text of the record once they are restarted.
      type: str
    settings:
      description: What else the role has switched, and how it was before.
      type: dict
    spec:
      description: Path of the CDI specification where units of the role have made it, or empty.
      type: str
    units:
      description: Units of systemd that go.
      type: list
      elements: str
"""


def node_runtime_restored(lines: list[str], settings: dict[str, t.Any]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    return computed("node_runtime_restored", plan.restored, lines, settings)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"node_runtime_restored": node_runtime_restored}
