# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: how a boot server becomes again what it was."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._machines import computed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import place, plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.host import Host

DOCUMENTATION = r"""
name: dns_pxe_restored
version_added: 0.1.0
short_description: How a boot server becomes again what it was
description:
  - Computes from the record of the role C(dns_pxe) what services go back to, and what goes.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: Lines that C(look.sh) of the role C(dns_pxe) has printed on a boot server.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Compute what goes back
  ansible.builtin.set_fact:
    plan: "{{ seen.stdout_lines | hwaccel.gpu.dns_pxe_restored }}"
"""

RETURN = r"""
_value:
  description: What is to be done.
  type: dict
  contains:
    services:
      description: Services with how they were, each with C(unit), C(active), C(enabled) and C(drop_in), the file that points it at those of the role.
      type: list
      elements: dict
    packages:
      description: Packages that the role has installed.
      type: list
      elements: str
    folders:
      description: Folders of the role.
      type: list
      elements: str
    firewall:
      description: Openings that are closed.
      type: list
      elements: dict
"""


def dns_pxe_restored(lines: list[str]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""

    def compute(host: Host) -> dict[str, t.Any]:
        return plan.restored(place.Seen(host))

    return computed("dns_pxe_restored", compute, lines)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"dns_pxe_restored": dns_pxe_restored}
