# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the facts that a role needs about a machine."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import role as dns_pxe
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import role as kubeadm
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import role as load_balancer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import role as node_runtime

DOCUMENTATION = r"""
name: machine_request
version_added: 0.2.0
short_description: Facts that a role needs about a machine
description:
  - Lists the files, units, programs and facts that the role needs for its plan, for C(look.py) of the role C(machine).
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role
options:
  _input:
    description: The role's variables, by their names without the name of the role.
    type: dict
    required: true
  role:
    description: The role that needs them.
    type: str
    required: true
    choices: [cluster_kubeadm, dns_pxe, load_balancer, node_runtime]
"""

EXAMPLES = r"""
- name: Observe the machine
  ansible.builtin.script:
    cmd: look.py {{ settings | hwaccel.gpu.machine_request('load_balancer') | quote }}
"""

RETURN = r"""
_value:
  description: The argument of C(look.py), in JSON.
  type: str
"""

_REQUESTS: dict[str, t.Callable[[dict[str, t.Any]], host.Request]] = {
    "cluster_kubeadm": kubeadm.requested,
    "dns_pxe": dns_pxe.requested,
    "load_balancer": load_balancer.requested,
    "node_runtime": node_runtime.requested,
}


def machine_request(settings: dict[str, t.Any], role: str) -> str:
    """See DOCUMENTATION."""
    request = of_role("machine_request", role, _REQUESTS)
    return t.cast("str", computed("machine_request", lambda given: request(given).as_text(), settings))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"machine_request": machine_request}
