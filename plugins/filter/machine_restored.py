# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the changes of a role's teardown on a machine."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import role as dns_pxe
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import role as load_balancer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import role as node_runtime

DOCUMENTATION = r"""
name: machine_restored
version_added: 0.2.0
short_description: Changes of a role's teardown on a machine
description:
  - Computes what teardown restores and removes, and the actions on services, from the role's record and the observed state of the machine.
  - It writes nothing.
author:
  - hwaccel.gpu contributors (@hwaccel)
extends_documentation_fragment:
  - hwaccel.gpu.machine_look
options:
  settings:
    description: The role's variables, by their names without the name of the role. Roles other than C(node_runtime) need none.
    type: dict
"""

EXAMPLES = r"""
- name: Compute what teardown restores
  ansible.builtin.set_fact:
    plan: "{{ look.stdout | hwaccel.gpu.machine_restored('load_balancer') }}"
"""

RETURN = r"""
_value:
  description: The plan. In addition to this key it has those that the role's C(teardown.yml) reads. They are documented in C(restored) of the role's package.
  type: dict
  contains:
    packages:
      description: Packages that the role has installed.
      type: list
      elements: str
"""

_RESTORED: dict[str, t.Callable[..., dict[str, t.Any]]] = {
    "dns_pxe": dns_pxe.restored,
    "load_balancer": load_balancer.restored,
    "node_runtime": node_runtime.restored,
}


def machine_restored(printed: str, role: str, settings: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    compute = of_role("machine_restored", role, _RESTORED)
    return t.cast("dict[str, t.Any]", computed("machine_restored", lambda: compute(printed, settings or {})))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"machine_restored": machine_restored}
