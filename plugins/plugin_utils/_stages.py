# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a stage on a cluster, for actions: the variables of its role, evaluated late, and the fleet."""

from __future__ import annotations

import collections.abc as c
import pathlib
import typing as t

from ansible.template import Templar

from ansible_collections.hwaccel.gpu.plugins.filter.stage_objects import stage_objects
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._direct import DirectAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._untemplated import template
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import table

Values = dict[str, t.Any]
_ROLES = pathlib.Path(__file__).resolve().parents[2] / "roles"
#: The plan of a role whose variables prevent one.
NOTHING: Values = {"objects": [], "namespaces": [], "messages": []}


class StageAction(DirectAction):
    """An action that needs the variables of the role of a stage. The play or the role of the task makes them known."""

    def in_role(self, role: str, variables: c.Mapping[str, t.Any], plans: c.Mapping[str, Values]) -> RoleVariables:
        """plans: those of this run so far, by their roles."""
        known = {f"{other}_plan": plan for other, plan in plans.items()}
        return RoleVariables(role, self._loader, {**variables, **known, "role_path": str(_ROLES / role)})

    def planned(self, there: RoleVariables, fleet: Values | None) -> Values:
        """fleet: None if no cluster is queried."""
        return stage_objects(there.manifests(), there.role, there.private("settings"), fleet)

    def fleet_of(self, there: RoleVariables, connection: Values) -> Values:
        """The fleet in the role's variable, or what node_info reads."""
        if known := there.public("fleet"):
            return t.cast("Values", known)
        return self.run_module(connection | there.private("read"), there.variables, "hwaccel.gpu.node_info")


class RoleVariables:
    """The variables of a task with those of a role, which are evaluated when they are read."""

    def __init__(self, role: str, loader: t.Any, variables: Values) -> None:
        self.role, self.variables = role, variables
        self._templar = Templar(loader=loader, variables=variables)

    def public(self, name: str) -> t.Any:
        return self._templar.template(self.variables[f"{self.role}_{name}"])

    def private(self, name: str) -> t.Any:
        """One of vars/main.yml of the role."""
        return self._templar.template(self.variables[f"__{self.role}_{name}"])

    def manifests(self) -> list[str]:
        """The rendered templates that vars/main.yml of the role lists.

        The lookup ansible.builtin.template copies all variables and makes a new Jinja environment for each template: 0.8 s for those of a site
        instead of 0.07 s.
        """
        folder = _ROLES / self.role / "templates"
        return [
            str(self._templar.template(template((folder / name).read_text("utf-8"))))
            for name in self.private("manifests")
        ]


def plans(variables: c.Mapping[str, t.Any]) -> dict[str, Values]:
    """The plans of this run so far, by role: those of the preflight, and later those of the stages."""
    found: dict[str, Values] = dict((variables.get("hwaccel_preflight") or {}).get("plans") or {})
    for role in table.STAGES:
        own = variables.get(f"{role}_plan") or (variables.get(f"{role}_stage") or {}).get("plan")
        if own:
            found[role] = own
    return found
