# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what puts a machine back as the role node_runtime has found it."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._runtime import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._machines import computed

DOCUMENTATION = r"""
name: node_runtime_restored
version_added: 0.1.0
short_description: What puts a machine back as the role node_runtime has found it
description:
  - Computes from the record of the role which files become what they were, which go, and which services have to be restarted.
  - From a file that somebody has changed since, only what the role has set is taken.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: Lines that C(look.sh) of the role C(node_runtime) has printed on a machine.
    type: list
    elements: str
    required: true
  settings:
    description: The role's settings.
    type: dict
    required: true
    suboptions:
      archive:
        description: Where the archive of packages is.
        type: str
      cdi:
        description: Whether GPUs are described by CDI.
        type: bool
      containerd_config:
        description: Path of containerd's configuration.
        type: str
      default_runtime:
        description: Whether containers that name no runtime get NVIDIA's.
        type: bool
      engines:
        description: Names of container engines. Empty, those that are found.
        type: list
        elements: str
      handler:
        description: Name of the runtime in the engines.
        type: str
      min_disk_gib:
        description: So much has to be free for images.
        type: float
      mode:
        description: V(auto), V(cdi), V(csv) or V(legacy).
        type: str
      provider:
        description: V(hwaccel), V(container) or V(existing). Empty, what is there decides.
        type: str
      repository_key:
        description: The key that packages are signed with.
        type: str
      selinux:
        description: Whether the boolean that containers need is switched on.
        type: bool
      skipped_checks:
        description: Names of conditions of the machine that are borne.
        type: list
        elements: str
      toolkit_source:
        description: V(repository) or V(archive). Empty, nothing is installed.
        type: str
      toolkit_version:
        description: Version of the toolkit's packages. Empty, any.
        type: str
      without_gpu:
        description: Whether machines without a GPU get the runtime as well.
        type: bool
"""

EXAMPLES = r"""
- name: Compute what goes back
  ansible.builtin.set_fact:
    plan: "{{ seen.stdout_lines | hwaccel.gpu.node_runtime_restored(settings=settings) }}"
"""

RETURN = r"""
_value:
  description: As RV(hwaccel.gpu.node_runtime_plan#filter:_value), and what follows.
  type: dict
  contains:
    packages:
      description: Packages that the role has installed.
      type: list
      elements: str
    settings:
      description: What else the role has switched, and how it was before.
      type: dict
    spec:
      description: Path of the CDI specification where units of the role have made it, or empty.
      type: str
    units:
      description: Units of systemd that go.
      type: list
      elements: str
"""


def node_runtime_restored(lines: list[str], settings: dict[str, t.Any]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    return computed("node_runtime_restored", plan.restored, lines, settings)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"node_runtime_restored": node_runtime_restored}
