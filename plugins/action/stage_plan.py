# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes what the role of a stage applies to a cluster: checks its variables, reads the fleet, and shows what was decided."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._module.spec import CLUSTER_SPEC
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _input_faults, _lines, _stages
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._checks import CheckingAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import table

_OPTIONS: dict[str, dict[str, t.Any]] = {
    "role": {"type": "str", "required": True, "choices": list(table.ROLES)},
    "stop": {"type": "bool", "default": False},
    "render": {"type": "bool", "default": False},
}


class ActionModule(_stages.StageAction, CheckingAction):
    """The action of stage_plan. Values of the role's variables are only evaluated once they are known to be valid."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_OPTIONS | CLUSTER_SPEC)
        variables = dict(task_vars or {})
        undefined, warnings = self.checked(variables)
        if undefined:
            return result | {"changed": False, "failed": True, "msg": undefined}
        wrong = _input_faults.judged([args["role"]], variables, self._templar.template)
        plan = _stages.NOTHING
        if not any(fault["stages"] for fault in wrong):
            there = self.in_role(args["role"], variables, _stages.plans(variables))
            connection = {name: value for name, value in self._task.args.items() if name not in _OPTIONS}
            fleet = None if args["render"] else self.fleet_of(there, connection)
            if fleet and fleet.get("failed"):
                return result | fleet
            plan = self.planned(there, fleet)
        faults = [*wrong, *plan.get("faults", ())]
        _lines.show(plan["messages"], self._task, variables)
        result |= plan | {"changed": False, "faults": faults} | ({"warnings": warnings} if warnings else {})
        return result | (
            {"failed": True, "msg": [fault["text"] for fault in faults]} if args["stop"] and faults else {}
        )
