# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One stage on one cluster: the plan, the objects, and what verifies them."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.filter.as_list import as_list
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.spec import CLUSTER_SPEC
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _input_faults, _lines, _stages
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._checks import CheckingAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._waiting import WaitingAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import table
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs.restriction import Restriction

Values = dict[str, t.Any]
_OPTIONS: dict[str, dict[str, t.Any]] = {
    "role": {"type": "str", "required": True, "choices": list(table.ROLES)},
    "stop": {"type": "bool", "default": True},
}
#: Of a module's result, what belongs to the task and not to the stage's result.
_OF_THE_TASK = ("changed", "diff", "warnings", "deprecations")
_LEFT_OUT = (*_OF_THE_TASK, "failed", "msg", "exception", "invocation")


class ActionModule(WaitingAction, _stages.StageAction, CheckingAction):
    """The action of stage. The plan of the preflight is used as long as nothing has changed since."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_OPTIONS | CLUSTER_SPEC)
        variables = dict(task_vars or {})
        connection = {name: value for name, value in self._task.args.items() if name not in _OPTIONS}
        stage = _Stage()
        plan = self._known(args["role"], variables) or self._anew(args["role"], variables, connection, stage)
        if plan is not None:
            there = self.in_role(args["role"], variables, _stages.plans(variables) | {args["role"]: plan})
            preflight = variables.get("hwaccel_preflight") or {}
            only = Restriction(**preflight.get("only") or {})
            for name, module, options in self._steps(there, plan, preflight.get("left_out") or []):
                if name == "set" and only and not self._task.check_mode:
                    predicted = self._predicted(connection | options, variables, module)
                    stage.stop(filter(None, [only.refused(predicted, plan["objects"])]))
                    if stage.stopped:
                        break
                stage.add(name, self.run_slices(connection | options, variables, module, quiet=True))
                if stage.stopped:
                    break
        return result | stage.result(plan or _stages.NOTHING, args["stop"])

    def _known(self, role: str, variables: c.Mapping[str, t.Any]) -> Values | None:
        """The plan of the preflight, unless an earlier stage has changed or waited for something since."""
        earlier = [variables.get(f"{other}_stage") or {} for other in table.STAGES]
        moved = any(one.get("changed") or (one.get("gate") or {}).get("waited") for one in earlier)
        preflight = variables.get("hwaccel_preflight") or {}
        return None if moved else (preflight.get("plans") or {}).get(role)

    def _anew(self, role: str, variables: Values, connection: Values, stage: _Stage) -> Values | None:
        """None: the stage has stopped."""
        undefined, warnings = self.checked(variables)
        stage.take({"warnings": warnings})
        wrong = undefined or [
            fault["text"] for fault in _input_faults.judged([role], variables, self._templar.template)
        ]
        if wrong:
            stage.stop(wrong)
            return None
        plans = _stages.plans(variables)
        there = self.in_role(role, variables, plans)
        fleet = self.fleet_of(there, connection)
        stage.take(fleet)
        if fleet.get("failed"):
            stage.stop([fleet.get("msg") or "node_info failed"])
            return None
        plan = self.planned(there, fleet)
        before = plans.get(role, {}).get("messages") or ()
        _lines.show([line for line in plan["messages"] if line not in before], self._task, variables)
        stage.stop(fault["text"] for fault in plan.get("faults", ()))
        return None if stage.stopped else plan

    def _predicted(self, args: Values, variables: Values, module: str) -> Values:
        """The result of the module in check mode."""
        self._task.check_mode = True
        try:
            return self.run_slices(args, variables, module, quiet=True)
        finally:
            self._task.check_mode = False

    @staticmethod
    def _steps(
        there: _stages.RoleVariables, plan: Values, left_out: c.Sequence[str]
    ) -> c.Iterator[tuple[str, str, Values]]:
        """Name in the result, module and options. Options are evaluated when the step before has ended."""
        if plan["objects"]:
            yield "set", "hwaccel.gpu.manifest_set", {"definition": plan["objects"], **there.private("apply")}
        for step in there.private("verify"):
            if step["taken"]:
                given = {name: value for name, value in step["options"].items() if value not in (None, "")}
                if left_out:
                    given["exclude"] = [*as_list(given.get("exclude") or []), *left_out]
                yield step["name"], step["module"], given


class _Stage:
    """What the steps of a stage have returned so far."""

    def __init__(self) -> None:
        self.stopped: list[str] = []
        self._steps: dict[str, Values] = {"set": {}, "gate": {}}
        self._task: Values = {"changed": False}

    def stop(self, texts: c.Iterable[t.Any]) -> None:
        self.stopped += [str(text) for text in texts]

    def take(self, result: c.Mapping[str, t.Any]) -> None:
        """Whether it changed something, its differences and warnings become those of the task."""
        self._task["changed"] |= bool(result.get("changed"))
        for name in _OF_THE_TASK[1:]:
            value = result.get(name) or []
            rows = value if isinstance(value, list) else [value]
            if rows:
                known = self._task.setdefault(name, [])
                known += [row for row in rows if row not in known]

    def add(self, name: str, result: Values) -> None:
        self.take(result)
        self._steps[name] = {key: value for key, value in result.items() if key not in _LEFT_OUT}
        if result.get("failed"):
            message = result.get("msg") or f"{name} failed without a message"
            self.stop(message if isinstance(message, list) else [message])
            if "exception" in result:
                self._task["exception"] = result["exception"]

    def result(self, plan: Values, stop: bool) -> Values:
        """stop: whether a stage that has stopped is a task that has failed, of which only the message is returned."""
        if self.stopped and stop:
            return self._task | {"failed": True, "msg": self.stopped if len(self.stopped) > 1 else self.stopped[0]}
        return self._task | self._steps | {"plan": plan, "stopped": self.stopped}
