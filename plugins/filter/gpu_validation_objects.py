# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: objects without which a platform does not admit the pods that validate nodes."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._manifests import planned
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.validation import plan

DOCUMENTATION = r"""
name: gpu_validation_objects
version_added: 0.1.0
short_description: Objects without which a platform does not admit the pods that validate nodes
description:
  - On OpenShift a ServiceAccount, and the right of its pods to be admitted under the SecurityContextConstraints C(nonroot-v2).
    On other platforms nothing.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: The role's manifests as YAML texts, one of which is the ServiceAccount.
    type: list
    elements: str
    required: true
  settings:
    description: The role's settings.
    type: dict
    required: true
    suboptions:
      patches:
        description: Patches that the objects get when they are applied. One that matches none of them is a fault.
        type: list
        elements: dict
      provider:
        description: Who brings the objects, V(hwaccel) or V(existing).
        type: str
      distribution:
        description: V(kubernetes), V(openshift), V(k3s) or V(rke2), where no cluster was asked. Another one that was asked is a fault.
        type: str
  fleet:
    description: What M(hwaccel.gpu.node_info) returned of the cluster. Read is C(platform). Where it is left out, no cluster was asked.
    type: dict
seealso:
  - module: hwaccel.gpu.manifest_set
  - plugin: hwaccel.gpu.gpu_validation_pod
    plugin_type: filter
notes:
  - It is a pure function. It asks no cluster and changes none.
"""

EXAMPLES = r"""
- name: Compute what the pods need before they are admitted
  ansible.builtin.set_fact:
    plan: "{{ manifests | hwaccel.gpu.gpu_validation_objects(settings={}, fleet=fleet) }}"
"""

RETURN = r"""
_value:
  description:
    - As RV(hwaccel.gpu.feature_discovery_objects#filter:_value), and C(service_account), the name that the pods run under, empty for the namespace's own.
  type: dict
"""


def gpu_validation_objects(manifests: list[str], settings: dict[str, t.Any], fleet: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    return planned("gpu_validation_objects", plan, manifests, settings, fleet)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"gpu_validation_objects": gpu_validation_objects}
