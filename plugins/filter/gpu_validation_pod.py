# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the pod that validates a node."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._manifests import planned
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.validation import pod

DOCUMENTATION = r"""
name: gpu_validation_pod
version_added: 0.2.0
short_description: The pod that validates a node
description:
  - Adds the labels of this collection to the pod C(gpu-validation) in the manifests, and sets the registry of its image from the settings.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: Manifests as YAML strings, one of which is the pod.
    type: list
    elements: str
    required: true
  settings:
    description: The role's settings.
    type: dict
    required: true
    suboptions:
      image_registry:
        description: Replaces the registry's host in the image reference.
        type: str
      image_pull_secrets:
        description: Names of Secrets for the registry.
        type: list
        elements: str
      name:
        description: Another name for the pod.
        type: str
      image:
        description: Another image for it.
        type: str
      command:
        description: Another command instead of its shell, with the arguments before the script.
        type: list
        elements: str
      script:
        description: Another script for the command.
        type: str
      service_account:
        description: Name of the ServiceAccount of the pod. By default, that of its namespace.
        type: str
"""

EXAMPLES = r"""
- name: Create the pod
  ansible.builtin.set_fact:
    pod: "{{ [lookup('ansible.builtin.template', 'pod.yml.j2')] | hwaccel.gpu.gpu_validation_pod(settings={'image_registry': 'registry.example.com'}) }}"
"""

RETURN = r"""
_value:
  description: The pod, for O(hwaccel.gpu.node_validate#module:definition).
  type: dict
"""


def gpu_validation_pod(manifests: list[str], settings: dict[str, t.Any]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    return planned("gpu_validation_pod", pod, manifests, settings)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"gpu_validation_pod": gpu_validation_pod}
