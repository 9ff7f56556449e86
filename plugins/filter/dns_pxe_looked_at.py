# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what a look at a boot server asks about."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import plan, systems

DOCUMENTATION = r"""
name: dns_pxe_looked_at
version_added: 0.2.0
short_description: What a look at a boot server asks about
description:
  - Arguments of C(look.sh) of the role C(dns_pxe), before its system is known.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: Paths of programs that machines boot by their names, as C(dns_pxe_loaders) has them.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Look at the boot server
  ansible.builtin.script:
    cmd: look.sh {{ dns_pxe_loaders | hwaccel.gpu.dns_pxe_looked_at | map('quote') | join(' ') }}
"""

RETURN = r"""
_value:
  description: The arguments.
  type: list
  elements: str
"""


def dns_pxe_looked_at(loaders: dict[str, str]) -> list[str]:
    """See DOCUMENTATION."""
    packages, programs = systems.candidates({"loaders": loaders})
    return [plan.CONFIG, plan.STATE, " ".join(packages), *programs]


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"dns_pxe_looked_at": dns_pxe_looked_at}
