# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: files that the installer of a cluster gets, and what is wrong with them."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role

DOCUMENTATION = r"""
name: cluster_inputs
version_added: 0.2.0
short_description: Files that the installer of a cluster gets
description:
  - Renders C(install-config.yaml), C(agent-config.yaml), manifests and MachineConfigs from settings and machines, and checks them as the installer does,
    and for what it accepts although it fails later.
  - The files of O(what=files) hold secrets, so tasks that use them need C(no_log).
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
    choices: [cluster_openshift]
  what:
    description: V(check) for what is wrong, and the files without their secrets, or V(files) for the files, which is an error if anything is wrong.
    type: str
    default: check
    choices: [check, files]
"""

EXAMPLES = r"""
- name: Check what the installer would get
  ansible.builtin.set_fact:
    checked: "{{ settings | hwaccel.gpu.cluster_inputs('cluster_openshift') }}"
  no_log: true
"""

RETURN = r"""
_value:
  description: For V(files) a list of dictionaries, each with C(path), C(content), and C(secret), whether it holds one. Otherwise a dictionary.
  type: raw
  contains:
    faults:
      description: All problems, each with C(text), C(key), its path in the C(document), and C(ours), whether the installer would not report it.
      type: list
      elements: dict
    notes:
      description: The same of what only has to be known. C(messages) has their texts.
      type: list
      elements: dict
    files:
      description: C(path), C(secret), and C(shown), the text with hashes in place of secrets.
      type: list
      elements: dict
    schedulable:
      description: Whether masters run pods of users.
      type: bool
"""


def cluster_inputs(settings: dict[str, t.Any], role: str, what: str = "check") -> t.Any:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import role as openshift

    of_openshift = openshift.checked if what == "check" else openshift.inputs
    compute = of_role("cluster_inputs", role, {"cluster_openshift": of_openshift})
    return computed("cluster_inputs", compute, settings)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_inputs": cluster_inputs}
