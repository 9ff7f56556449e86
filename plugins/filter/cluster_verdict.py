# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: why a machine did not become a node."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role

DOCUMENTATION = r"""
name: cluster_verdict
version_added: 0.2.0
short_description: Why a machine did not become a node
description:
  - Finds the cause in what the installer has printed, and in the journal of the machine's kubelet and container runtime. The text has what failed, the line
    that shows the cause, and what to do next.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role
options:
  _input:
    description: Result of the installer's program on the machine, with C(stdout) and C(stderr), or C(msg) if it did not end.
    type: dict
    required: true
  role:
    description: The role that installs the cluster.
    type: str
    required: true
    choices: [cluster_k3s, cluster_kubeadm]
  host:
    description: The machine.
    type: str
    required: true
  endpoint:
    description: Host and port of the cluster's endpoint. Empty if the machine does not need it.
    type: str
    default: ''
  journal:
    description: Lines of the journal since the program was started.
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: Find out why the machine did not join
  ansible.builtin.set_fact:
    reason: "{{ joined | hwaccel.gpu.cluster_verdict('cluster_kubeadm', host='w1', endpoint='api.example.com:6443', journal=journal.stdout) }}"
"""

RETURN = r"""
_value:
  description: The verdict in one line.
  type: str
"""


def cluster_verdict(result: dict[str, t.Any], role: str, host: str, endpoint: str = "", journal: str = "") -> str:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import role as k3s
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import role as kubeadm

    roles = {"cluster_k3s": k3s.judged, "cluster_kubeadm": kubeadm.judged}
    judged = of_role("cluster_verdict", role, roles)
    return str(computed("cluster_verdict", judged, result, host, endpoint, journal))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_verdict": cluster_verdict}
