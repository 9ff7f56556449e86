# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the filters of the role node_runtime take."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
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
      drain:
        description: V(always), V(never), or V(ends_pods), when pods leave the node before services are restarted.
        type: str
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
