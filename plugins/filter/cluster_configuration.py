# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the configuration with which an installer makes a machine a node."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role

DOCUMENTATION = r"""
name: cluster_configuration
version_added: 0.2.0
short_description: Configuration with which an installer makes a machine a node
description:
  - Renders the configuration of C(kubeadm init), C(kubeadm join) or C(kubeadm upgrade) for one machine. It can hold secrets, so tasks that use it
    need C(no_log).
  - For K3s, it is the file that says how a machine comes to its cluster, by C(init) or C(join), or by C(rejoin) if it has made it.
    With C(snapshots) it is the Secret with which snapshots go to S3, which is not of one machine.
  - C(names) is that of C(kubeadm init phase certs), C(reconfigure) that of an upgrade which leaves the kubelet alone, and C(applied) what is recorded
    of them on the machine.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role
options:
  _input:
    description: Settings of the cluster, by the names of the role's variables without the name of the role.
    type: dict
    required: true
  role:
    description: The role that installs the cluster.
    type: str
    required: true
    choices: [cluster_k3s, cluster_kubeadm]
  what:
    description: What the configuration is for.
    type: str
    required: true
    choices: [init, join, rejoin, migrate, stay, snapshots, names, upgrade, reconfigure, applied]
  machine:
    description: >-
      C(node), C(address), C(serves) and C(taints) of the machine. For an upgrade also C(same_etcd), whether its etcd has the version already, and
      C(applied), what is recorded on it.
    type: dict
    required: true
  secrets:
    description: >-
      C(token) and C(certificate_key) of this run, and to join also C(certificate), that of the cluster's authority in PEM. Empty for an upgrade.
      For K3s only whether there is a C(token), or the C(access_key) and C(secret_key) of S3.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Write the configuration of kubeadm
  ansible.builtin.copy:
    content: "{{ settings | hwaccel.gpu.cluster_configuration('cluster_kubeadm', what='join', machine=machine, secrets=secrets) }}"
    dest: /run/kubeadm/config.yaml
    mode: "0600"
  no_log: true
"""

RETURN = r"""
_value:
  description: The configuration, in YAML.
  type: str
"""


def cluster_configuration(
    settings: dict[str, t.Any], role: str, what: str, machine: dict[str, t.Any], secrets: dict[str, t.Any]
) -> str:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import role as k3s
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import role as kubeadm

    roles = {"cluster_k3s": k3s.configured, "cluster_kubeadm": kubeadm.configured}
    compute = of_role("cluster_configuration", role, roles)
    return t.cast("str", computed("cluster_configuration", compute, settings, machine, secrets, what))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_configuration": cluster_configuration}
