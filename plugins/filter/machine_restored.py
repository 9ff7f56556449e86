# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what goes back on a machine when a role is taken down."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import role as dns_pxe
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import role as load_balancer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import role as node_runtime

DOCUMENTATION = r"""
name: machine_restored
version_added: 0.2.0
short_description: What goes back on a machine when a role is taken down
description:
  - Computes from the role's record, and from a look at the machine, what teardown puts back, removes and gives back to services.
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
- name: Compute what goes back
  ansible.builtin.set_fact:
    plan: "{{ look.stdout | hwaccel.gpu.machine_restored('load_balancer') }}"
"""

RETURN = r"""
_value:
  description: What is to be done. Beside this key it has what the role's C(teardown.yml) reads, as C(restored) of the role's package documents it.
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
