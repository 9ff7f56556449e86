# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: objects that the role of a stage applies to a cluster."""

from __future__ import annotations

import typing as t

from ansible.utils.unsafe_proxy import wrap_var

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import of_role
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._manifests import planned
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import (
    device_plugin,
    driver,
    feature_discovery,
    monitoring,
    validation,
)

DOCUMENTATION = r"""
name: stage_objects
version_added: 0.2.0
short_description: Objects that the role of a stage applies to a cluster
description:
  - Builds the objects of one of the roles on clusters from its manifests, its settings and the known fleet.
  - If another deployment provides the component, these are fewer or none.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role
options:
  _input:
    description: The role's manifests as YAML documents, rendered from its templates folder.
    type: list
    elements: str
    required: true
  role:
    description: The role of the objects.
    type: str
    required: true
    choices: [feature_discovery, driver, device_plugin, gpu_validation, monitoring]
  settings:
    description:
      - The role's variables, by their names without the name of the role. Omitted ones have no effect.
      - In addition C(namespaces_before), names of Namespaces that an earlier stage of the run creates.
      - For the role gpu_validation also C(pods), which validate nodes, by their names. Each has the values that replace those of the manifest of the pod,
        C(image), C(command) or C(script), its last argument.
    type: dict
    required: true
  fleet:
    description:
      - The result of M(hwaccel.gpu.node_info) for the cluster. It uses C(classes), C(platform), C(existing), C(driver_daemon_sets),
        C(namespaces) and C(cluster_uid).
      - Without it, no cluster is queried, and the declared pools with C(machines) are the fleet.
    type: dict
seealso:
  - module: hwaccel.gpu.manifest_set
  - module: hwaccel.gpu.node_info
notes:
  - It is a pure function that neither queries nor changes a cluster.
"""

EXAMPLES = r"""
- name: Compute the objects of the device plugins
  ansible.builtin.set_fact:
    plan: "{{ manifests | hwaccel.gpu.stage_objects('device_plugin', settings={'pools': hwaccel_pools}, fleet=fleet) }}"
"""

RETURN = r"""
_value:
  description: The plan.
  type: dict
  contains:
    provider:
      description: Provider of the component, declared or detected.
      type: str
    namespace:
      description: Namespace of the component's pods, if another deployment provides it and it was detected.
      type: str
    namespaces:
      description: Names of the Namespaces among the objects.
      type: list
      elements: str
    objects:
      description: The objects, in the order in which they are applied.
      type: list
      elements: dict
    pools:
      description: For the role driver, the provider of each pool's driver, by the pool's name.
      type: dict
    pods:
      description: For the role gpu_validation, the pods of its settings by their names, for O(hwaccel.gpu.node_validate#module:definition).
      type: dict
    assumed:
      description: Predictions from declarations only.
      type: list
      elements: str
    unknown:
      description: What cannot be predicted yet, and the stage after which it can.
      type: list
      elements: str
    notes:
      description: What was decided, and why.
      type: list
      elements: str
    messages:
      description: Lines for the user - notes, assumptions, unknowns.
      type: list
      elements: str
    faults:
      description: Problems that prevent the run, each with C(what), C(where), C(why), C(next_step), and all of them as C(text).
      type: list
      elements: dict
"""

_PLANS: dict[str, t.Callable[..., dict[str, t.Any]]] = {
    "feature_discovery": feature_discovery.plan,
    "driver": driver.plan,
    "device_plugin": device_plugin.plan,
    "gpu_validation": validation.plan,
    "monitoring": monitoring.plan,
}


def stage_objects(
    manifests: list[str], role: str, settings: dict[str, t.Any], fleet: dict[str, t.Any] | None = None
) -> dict[str, t.Any]:
    """See DOCUMENTATION. Template syntax in an object is not Ansible's, but for example Prometheus's in annotations of alerts."""
    plan = of_role("stage_objects", role, _PLANS)
    return t.cast("dict[str, t.Any]", wrap_var(planned("stage_objects", plan, manifests, settings, fleet)))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"stage_objects": stage_objects}
