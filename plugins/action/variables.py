# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses variables that contain something undefined, because default() would treat each as not set, and reports misspelled ones."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.template import Templar

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import inputs

# The files are read in the process that forks workers, so that not every worker reads them.
_variables.public()


class ActionModule(ActionBase):
    """The action of variables. It connects to no host."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(
            argument_spec={name: {"type": "list", "elements": "str", "default": []} for name in ("hosts", "machines")}
        )
        variables = task_vars or {}
        mine = str(variables.get("inventory_hostname", "localhost"))
        faults = _variables.faults(mine, variables, self._templar.template)
        hostvars = variables.get("hostvars", {})
        for host in dict.fromkeys([*self._clusters(variables), *args["hosts"]]):
            if host != mine and host in hostvars:
                faults += self._of_another(host, hostvars.raw_get(host))
        for host in args["machines"]:
            if host != mine and host in hostvars:
                faults += self._of_another(host, hostvars.raw_get(host), ("hwaccel_cluster",))
        # Undefined values would be reported twice.
        if not faults:
            faults += _variables.of_batches(variables, self._templar.template)
            for role in self._roles():
                faults += _variables.of_machines(role, variables, self._templar.template)
        misspelled = self._misspelled(mine, variables)
        if not faults and misspelled and boolean(self._templar.template(variables.get("hwaccel_strict") or False)):
            faults += [f"{text} Next: correct its name, or remove it" for text in misspelled]
        if faults:
            return result | {"changed": False, "failed": True, "msg": faults}
        return result | {"changed": False} | ({"warnings": misspelled} if misspelled else {})

    @staticmethod
    def _misspelled(host: str, variables: c.Mapping[str, t.Any]) -> list[str]:
        hostvars = variables.get("hostvars", {})
        # Without variables of plays and tasks, which are those of the playbooks.
        names = hostvars.raw_get(host) if host in hostvars else {}
        return _variables.misspelled(names)

    def _roles(self) -> list[str]:
        """Roles on machines that depend on this role, which run before any of their own tasks."""
        role = getattr(self._task, "_role", None)
        parents = role.get_parents() if role else []
        return [name for parent in parents if (name := parent.get_name(include_role_fqcn=False)) in inputs.ROLES]

    def _clusters(self, variables: c.Mapping[str, t.Any]) -> list[str]:
        """The cluster of a machine, whose variables its roles read: the one in hwaccel_cluster, or the only one."""
        named = variables.get("hwaccel_cluster")
        if named and not _variables.faults("", {"hwaccel_cluster": named}, self._templar.template):
            named = self._templar.template(named)
        clusters = variables.get("groups", {}).get("gpu_clusters", [])
        return [str(named)] if named else list(clusters) if len(clusters) == 1 else []

    def _of_another(self, host: str, variables: c.Mapping[str, t.Any], names: c.Collection[str] = ()) -> list[str]:
        """names: variables to check, all if empty."""
        # Only the variables of that host are used, as in hostvars.
        looked_at = {name: variables[name] for name in names if name in variables} if names else variables
        return (
            _variables.faults(host, looked_at, Templar(loader=self._loader, variables=variables).template)
            if looked_at
            else []
        )
