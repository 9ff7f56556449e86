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
  - Makes the objects of one of the roles on clusters from its manifests, its settings and what is known of the fleet.
  - Where another deployment brings the component, these are fewer or none.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, role
options:
  _input:
    description: The role's manifests, YAML documents as they are in its templates folder, values filled in.
    type: list
    elements: str
    required: true
  role:
    description: Whose objects.
    type: str
    required: true
    choices: [feature_discovery, driver, device_plugin, gpu_validation, monitoring]
  settings:
    description:
      - The role's variables, by their names without the name of the role. Those that are left out have no say.
      - Beside them C(namespaces_before), names of Namespaces that an earlier stage of the run brings.
    type: dict
    required: true
  fleet:
    description:
      - What M(hwaccel.gpu.node_info) returned of the cluster. Read are C(classes), C(platform), C(existing), C(driver_daemon_sets),
        C(namespaces) and C(cluster_uid).
      - Where it is left out, no cluster was asked, and the declared pools with C(machines) are taken as the fleet.
    type: dict
seealso:
  - module: hwaccel.gpu.manifest_set
  - module: hwaccel.gpu.node_info
notes:
  - It is a pure function. It asks no cluster and changes none.
"""

EXAMPLES = r"""
- name: Compute what the device plugins need
  ansible.builtin.set_fact:
    plan: "{{ manifests | hwaccel.gpu.stage_objects('device_plugin', settings={'pools': hwaccel_pools}, fleet=fleet) }}"
"""

RETURN = r"""
_value:
  description: What is to be, and what is to be said of it.
  type: dict
  contains:
    provider:
      description: Who brings the component, as declared or found.
      type: str
    namespace:
      description: Namespace of the component's pods, where another brings it and it was found.
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
      description: Of the role driver, who brings the driver to each pool, by the pool's name.
      type: dict
    service_account:
      description: Of the role gpu_validation, the name that its pods run under, empty for the namespace's own.
      type: str
    assumed:
      description: What was predicted from declarations only.
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
      description: What people want to know of it, a line each - notes, what was assumed, what is unknown.
      type: list
      elements: str
    faults:
      description: Reasons not to begin, each with C(what), C(where), C(why), C(next_step), and all of them as C(text).
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
    """See DOCUMENTATION. What looks like a template in an object is somebody else's, as Prometheus's in annotations of alerts."""
    plan = of_role("stage_objects", role, _PLANS)
    return t.cast("dict[str, t.Any]", wrap_var(planned("stage_objects", plan, manifests, settings, fleet)))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"stage_objects": stage_objects}
