# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks which clusters and machines a run has, and which stages its tags select. It connects to no host."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible.template import Templar

from ansible_collections.hwaccel.gpu.plugins.filter.as_list import as_list
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._checks import CheckingAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import hosts, table

_OPTIONS: dict[str, dict[str, t.Any]] = {
    "stages": {"type": "list", "elements": "str", "default": [], "choices": list(table.STAGES)},
    "machines": {"type": "bool", "default": False},
}


class ActionModule(CheckingAction):
    """The action of inventory_check."""

    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_OPTIONS)
        variables = dict(task_vars or {})
        groups = variables["groups"]
        taken = self._only_clusters(variables)
        wrong = [
            hosts.only(groups, taken),
            hosts.selected(groups, variables.get("ansible_play_hosts_all", []), taken),
            hosts.tags(variables.get("ansible_run_tags", []), args["stages"]),
        ]
        if failure := next(filter(None, wrong), ""):
            return result | {"changed": False, "failed": True, "msg": failure}
        return result | {"changed": False, "faults": []} | (self._machines(variables) if args["machines"] else {})

    def _only_clusters(self, variables: dict[str, t.Any]) -> list[str]:
        given = self._templar.template(variables.get("hwaccel_only_clusters") or [])
        return as_list(_variables.plain(given))

    def _machines(self, variables: dict[str, t.Any]) -> dict[str, t.Any]:
        """Without machines nothing is read. Load balancers and boot servers may belong to all clusters."""
        groups, shared = variables["groups"], variables["hwaccel_shared_groups"]
        names = hosts.machines(groups, variables["hwaccel_machine_groups"])
        if not names:
            return {}
        # Undefined values in it would count as not set.
        undefined, _warnings = self.checked(variables, groups.get(hosts.CLUSTERS) or (), names)
        if undefined:
            return {"failed": True, "msg": undefined}
        hostvars = variables["hostvars"]
        of_one = [kind for kind in variables["hwaccel_machine_groups"] if kind not in shared]
        clusters = {name: self._cluster_of(hostvars.raw_get(name)) for name in names}
        return {"faults": hosts.unassigned(groups, of_one, clusters)}

    def _cluster_of(self, variables: c.Mapping[str, t.Any]) -> str:
        value = variables.get("hwaccel_cluster") or ""
        return str(_variables.plain(Templar(loader=self._loader, variables=variables).template(value)) or "")
