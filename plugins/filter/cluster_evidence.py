# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what boot servers, load balancers and hypervisors know of an installation."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role

DOCUMENTATION = r"""
name: cluster_evidence
version_added: 0.2.0
short_description: What other hosts know of an installation
description:
  - Judges logs and records of boot servers, statistics of load balancers and consoles on hypervisors, as a role has read them.
  - The result has options of M(hwaccel.gpu.openshift_wait). A host that could not be read is a note, and no error.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role, told
options:
  _input:
    description: Result of P(hwaccel.gpu.machine_inventory#filter) for V(evidence).
    type: dict
    required: true
  role:
    description: The role that waits for the installation.
    type: str
    required: true
    choices: [cluster_openshift]
  told:
    description: Of each host that was asked, C(host), C(kind), C(reads) and C(requests), what its programs have printed, and C(why) one has failed.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Judge what was read
  ansible.builtin.set_fact:
    evidence: "{{ groups | hwaccel.gpu.machine_inventory('evidence', hostvars, inventory_hostname) | hwaccel.gpu.cluster_evidence('cluster_openshift', told) }}"
"""

RETURN = r"""
_value:
  description: The evidence.
  type: dict
  contains:
    machines:
      description: The option of that name. Empty if no boot server could be read.
      type: list
      elements: dict
    surroundings:
      description: The option of that name.
      type: dict
    written:
      description: Machines that have files of this installation or of one before, by their names in the inventory.
      type: list
      elements: str
    notes:
      description: Which hosts could not be read.
      type: list
      elements: str
"""


def cluster_evidence(request: dict[str, t.Any], role: str, told: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import evidence

    compute = of_role("cluster_evidence", role, {"cluster_openshift": evidence.judged})
    return t.cast("dict[str, t.Any]", computed("cluster_evidence", compute, request, told))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_evidence": cluster_evidence}
