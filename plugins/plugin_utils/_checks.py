# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of a host's variables, for actions: undefined values, and misspelled names."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.template import Templar

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables

# The files are read in the process that forks workers, so that not every worker reads them.
_variables.public()
_variables.facts()
_variables.default_names()


class CheckingAction(ActionBase):
    """An action that checks variables before it does anything else."""

    _supports_check_mode = True

    def checked(
        self,
        variables: c.Mapping[str, t.Any],
        hosts: c.Iterable[str] = (),
        machines: c.Iterable[str] = (),
        evaluate: c.Callable[[t.Any], t.Any] | None = None,
    ) -> tuple[list[str], list[str]]:
        """Errors, and warnings about misspelled variables, which are errors in a strict run.

        variables: of the task. hosts: more hosts whose variables are checked. machines: hosts of which only the cluster is checked.
        evaluate: evaluates a value of these variables, by default as Ansible does.
        """
        mine = str(variables.get("inventory_hostname", "localhost"))
        faults = _variables.faults(
            mine, _variables.without_idle_defaults(variables), evaluate or self._templar.template
        )
        hostvars = variables.get("hostvars", {})
        for host in dict.fromkeys([*self._clusters(variables), *hosts]):
            if host != mine and host in hostvars:
                faults += self._of_another(host, hostvars.raw_get(host))
        for host in machines:
            if host != mine and host in hostvars:
                faults += self._of_another(host, hostvars.raw_get(host), ("hwaccel_cluster",))
        # Variables of plays and tasks are left out, because they are those of the playbooks.
        misspelled = _variables.misspelled(hostvars.raw_get(mine)) if mine in hostvars else []
        if not faults and misspelled:
            faults += self._strict(mine, misspelled, self._templar.template(variables.get("hwaccel_strict") or False))
        return faults, misspelled

    @staticmethod
    def _strict(host: str, misspelled: c.Iterable[str], value: t.Any) -> list[str]:
        try:
            strict = boolean(value)
        except TypeError:
            return [f"hwaccel_strict of {host}: {value!r} is neither true nor false. Next: set it to one of them"]
        return [f"{text} Next: correct its name, or remove it" for text in misspelled] if strict else []

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
