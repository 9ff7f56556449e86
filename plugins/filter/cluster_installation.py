# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what a run has to do until a cluster is installed."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role

DOCUMENTATION = r"""
name: cluster_installation
version_added: 0.2.0
short_description: Steps after which a cluster is installed
description:
  - Computes what is left to be done for a cluster whose machines are installed by what they boot, from the folder of the installation and from how far it is.
  - It writes nothing. A cluster that is installed has a step for each machine that is added, and otherwise none.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role
options:
  _input:
    description: Machines of the cluster, as P(hwaccel.gpu.machine_inventory#filter) returns them for the role.
    type: list
    elements: dict
    required: true
  role:
    description: The role that installs the cluster.
    type: str
    required: true
    choices: [cluster_openshift]
  decided:
    description: Result of M(hwaccel.gpu.openshift_install) in check mode. Empty of a cluster that is known by its connection only.
    type: dict
    required: true
  state:
    description: Result of M(hwaccel.gpu.openshift_wait) in check mode. Empty if there is no connection.
    type: dict
    default: {}
  credentials:
    description: Result of M(hwaccel.gpu.openshift_credentials) in check mode. Empty if the cluster is not installed.
    type: dict
    default: {}
  joins:
    description: Machines that may be added, as P(hwaccel.gpu.machine_inventory#filter) returns them.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Plan the steps
  ansible.builtin.set_fact:
    plan: "{{ machines | hwaccel.gpu.cluster_installation('cluster_openshift', decided=decided, state=state) }}"
"""

RETURN = r"""
_value:
  description: The plan.
  type: dict
  contains:
    steps:
      description: In their order, each with C(do), C(hosts) and C(text).
      type: list
      elements: dict
    predicted:
      description: The texts of the steps.
      type: list
      elements: str
    faults:
      description: Problems that prevent the run, each with C(text).
      type: list
      elements: dict
    joining:
      description: Machines that are added to a cluster that is installed, V(null) of another one.
      type: list
      elements: str
    awaited:
      description: Whether the files of the installation are only going to be created.
      type: bool
"""


def cluster_installation(
    machines: list[dict[str, t.Any]],
    role: str,
    decided: dict[str, t.Any],
    state: dict[str, t.Any] | None = None,
    credentials: dict[str, t.Any] | None = None,
    joins: list[dict[str, t.Any]] | None = None,
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import installing

    compute = of_role("cluster_installation", role, {"cluster_openshift": installing.planned})
    return t.cast(
        "dict[str, t.Any]",
        computed("cluster_installation", compute, machines, decided, state or {}, credentials or {}, joins or []),
    )


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_installation": cluster_installation}
