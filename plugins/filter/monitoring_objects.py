# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: objects that watch a fleet's GPUs."""

from __future__ import annotations

import typing as t

from ansible.utils.unsafe_proxy import wrap_var

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._manifests import planned
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.monitoring import plan

DOCUMENTATION = r"""
name: monitoring_objects
version_added: 0.1.0
short_description: Objects that watch a fleet's GPUs
description:
  - Makes a DCGM exporter for each pool whose number of GPUs is declared and one for all others, what Prometheus has to know of them,
    rules and dashboards.
  - Where another's exporter is there, only rules and dashboards.
author:
  - hwaccel.gpu contributors (@hwaccel)
extends_documentation_fragment:
  - hwaccel.gpu.objects
options:
  settings:
    description: The role's settings, these beside O(hwaccel.gpu.feature_discovery_objects#filter:settings).
    type: dict
    required: true
    suboptions:
      alerts:
        description: Changes by the name of an alert, each with C(severity), C(for) or C(enabled).
        type: dict
      dashboard_labels:
        description: Labels by which Grafana's sidecar finds dashboards.
        type: dict
      dashboards:
        description: Whether there are dashboards.
        type: bool
      profiling:
        description: Whether metrics of the profiling unit are exported.
        type: bool
      prometheus:
        description: V(operator) or V(plain). Empty, what is there decides.
        type: str
      prometheus_labels:
        description: Labels that the Prometheus selects by.
        type: dict
      rules:
        description: Whether there are rules.
        type: bool
      runbook_url:
        description: Address of the page of alerts.
        type: str
      thresholds:
        description: Limits of alerts, over their defaults.
        type: dict
"""

EXAMPLES = r"""
- name: Compute what monitoring needs
  ansible.builtin.set_fact:
    plan: "{{ manifests | hwaccel.gpu.monitoring_objects(settings={'pools': hwaccel_pools}, fleet=fleet) }}"
"""

RETURN = r"""
_value:
  description: As RV(hwaccel.gpu.feature_discovery_objects#filter:_value).
  type: dict
"""


def monitoring_objects(manifests: list[str], settings: dict[str, t.Any], fleet: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
    """See DOCUMENTATION. Annotations of alerts are templates of Prometheus, and never Ansible's."""
    return t.cast("dict[str, t.Any]", wrap_var(planned("monitoring_objects", plan, manifests, settings, fleet)))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"monitoring_objects": monitoring_objects}
