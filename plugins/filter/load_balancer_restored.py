# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what teardown of a load balancer does."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import restored, seen

DOCUMENTATION = r"""
name: load_balancer_restored
version_added: 0.1.0
short_description: What teardown of a load balancer does
description:
  - Computes from the role's record how services become what they were before it.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: What C(look.py) of the role C(load_balancer) has printed on a machine.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Compute what goes back
  ansible.builtin.set_fact:
    plan: "{{ seen.stdout | hwaccel.gpu.load_balancer_restored }}"
"""

RETURN = r"""
_value:
  description: What is to be done.
  type: dict
  contains:
    absent:
      description: Drop-ins and programs that are removed.
      type: list
      elements: str
    services:
      description: Services that are given back, each with C(unit), C(state) and C(enabled).
      type: list
      elements: dict
    packages:
      description: Packages that the role has installed.
      type: list
      elements: str
    firewall:
      description: Openings that are closed.
      type: list
      elements: dict
"""


def load_balancer_restored(printed: str) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    return t.cast("dict[str, t.Any]", computed("load_balancer_restored", lambda: restored.restored(seen.read(printed))))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"load_balancer_restored": load_balancer_restored}
