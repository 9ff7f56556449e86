# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes what the role of a stage applies to a cluster: checks its variables, reads the fleet, and shows what was decided."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.filter.stage_objects import stage_objects
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.spec import CLUSTER_SPEC
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _input_faults, _lines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._checks import CheckingAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._direct import DirectAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import table

_OPTIONS: dict[str, dict[str, t.Any]] = {
    "role": {"type": "str", "required": True, "choices": list(table.ROLES)},
    "stop": {"type": "bool", "default": False},
    "render": {"type": "bool", "default": False},
}
#: The plan of a role whose variables prevent one.
_NOTHING: dict[str, t.Any] = {"objects": [], "namespaces": [], "messages": []}


class ActionModule(DirectAction, CheckingAction):
    """The action of stage_plan. Values of the role's variables are only evaluated once they are known to be valid."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_OPTIONS | CLUSTER_SPEC)
        variables = dict(task_vars or {})
        undefined, warnings = self.checked(variables)
        if undefined:
            return result | {"changed": False, "failed": True, "msg": undefined}
        role = args["role"]
        wrong = _input_faults.judged([role], variables, self._templar.template)
        plan: dict[str, t.Any] = _NOTHING
        if not any(fault["stages"] for fault in wrong):
            fleet = None if args["render"] else self._fleet(role, variables)
            if fleet and fleet.get("failed"):
                return result | fleet
            manifests, settings = (self._value(f"__{role}_{name}", variables) for name in ("manifests", "settings"))
            plan = stage_objects(manifests, role, settings, fleet)
        faults = [*wrong, *plan.get("faults", ())]
        self._show(role, plan["messages"], variables)
        result |= plan | {"changed": False, "faults": faults} | ({"warnings": warnings} if warnings else {})
        return result | (
            {"failed": True, "msg": [fault["text"] for fault in faults]} if args["stop"] and faults else {}
        )

    def _fleet(self, role: str, variables: dict[str, t.Any]) -> dict[str, t.Any]:
        """The fleet in the role's variable, or what node_info reads with the connection of this task."""
        if known := self._value(f"{role}_fleet", variables):
            return t.cast("dict[str, t.Any]", known)
        connection = {name: value for name, value in self._task.args.items() if name not in _OPTIONS}
        options = self._value(f"__{role}_read", variables)
        return self.run_module(connection | options, variables, "hwaccel.gpu.node_info")

    def _value(self, name: str, variables: c.Mapping[str, t.Any]) -> t.Any:
        return self._templar.template(variables[name])

    def _show(self, role: str, messages: c.Sequence[str], variables: c.Mapping[str, t.Any]) -> None:
        """Decisions that the preflight has shown are not repeated."""
        earlier = variables.get(f"{role}_plan") or {}
        before = earlier.get("messages") or () if isinstance(earlier, c.Mapping) else ()
        _lines.show([line for line in messages if line not in before], self._task, variables)
