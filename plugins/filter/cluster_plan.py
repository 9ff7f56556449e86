# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the steps after which machines are one cluster."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role

DOCUMENTATION = r"""
name: cluster_plan
version_added: 0.2.0
short_description: Steps after which machines are one cluster
description:
  - Computes which machine initializes the cluster, and which join it in which order, from what was found on all of them.
  - It writes nothing. A member that runs as it is set has no step.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role
options:
  _input:
    description: Machines of the cluster, as M(ansible.builtin.set_fact) has them from P(hwaccel.gpu.machine_inventory#filter).
    type: list
    elements: dict
    required: true
  role:
    description: The role that installs the cluster.
    type: str
    required: true
    choices: [cluster_k3s, cluster_kubeadm]
  plans:
    description: Plans of M(hwaccel.gpu.machine_look) by the names of the machines. A machine that could not be observed has none.
    type: dict
    required: true
  wish:
    description: >-
      C(version) of Kubernetes, C(endpoint) with host and port, C(even_servers), and C(at_a_time), which is a number or a percentage of the agents.
      C(retired), machines that are to leave, and C(lost), those that are gone for good, are optional.
    type: dict
    required: true
  answer:
    description: Result of M(ansible.builtin.uri) for the cluster's public information at its endpoint. Empty if there is no endpoint.
    type: dict
    default: {}
  observed:
    description: What the cluster tells of itself, as the role reads it. Empty if there is none, or it could not be asked.
    type: str
    default: ""
  faults:
    description: Problems that were found elsewhere and prevent the run, each with C(text).
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Plan the steps
  ansible.builtin.set_fact:
    plan: "{{ machines | hwaccel.gpu.cluster_plan('cluster_kubeadm', plans=plans, wish=wish, answer=answer) }}"
"""

RETURN = r"""
_value:
  description: The plan.
  type: dict
  contains:
    steps:
      description: In their order, each with C(do), C(hosts), C(why) and C(text).
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
    leader:
      description: A server that is a member, or the one that initializes the cluster.
      type: str
    configuration:
      description: What the configuration of the cluster has to become, and whether it is C(known) what it is.
      type: dict
"""

#: Of a cluster that could not be asked, or is not there.
_UNKNOWN = {"known": False, "maps": []}


def cluster_plan(
    machines: list[dict[str, t.Any]],
    role: str,
    plans: dict[str, dict[str, t.Any]],
    wish: dict[str, t.Any],
    answer: dict[str, t.Any] | None = None,
    observed: str = "",
    faults: list[dict[str, str]] | None = None,
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import data, model, plan
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import role as k3s
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import role as kubeadm

    read = of_role("cluster_plan", role, {"cluster_k3s": k3s.answered, "cluster_kubeadm": kubeadm.answered})
    tell = of_role("cluster_plan", role, {"cluster_k3s": k3s.told, "cluster_kubeadm": kubeadm.told})

    def planned(
        machines: list[dict[str, t.Any]],
        plans: dict[str, dict[str, t.Any]],
        wish: dict[str, t.Any],
        answer: dict[str, t.Any],
        observed: str,
        faults: list[dict[str, str]],
    ) -> dict[str, t.Any]:
        ordered = [
            {**plans[one["host"]], "serves": one["role"] == model.SERVER} for one in machines if one["host"] in plans
        ]
        cluster, change = tell(wish, observed, ordered) if observed else (plan.SILENT, _UNKNOWN)
        made = {**data.planned(machines, plans, wish, read(answer), cluster), "configuration": change}
        return {**made, "steps": [], "predicted": [], "faults": [*made["faults"], *faults]} if faults else made

    given = (machines, plans, wish, answer or {}, observed, faults or [])
    return t.cast("dict[str, t.Any]", computed("cluster_plan", planned, *given))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_plan": cluster_plan}
