# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses variables that contain something undefined, because default() would treat each as not set, and reports misspelled ones."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._checks import CheckingAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._evaluation import Evaluation
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import inputs


class ActionModule(CheckingAction):
    """The action of variables. It connects to no host."""

    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(
            argument_spec={name: {"type": "list", "elements": "str", "default": []} for name in ("hosts", "machines")}
        )
        variables = task_vars or {}
        evaluate = Evaluation(variables, self._templar.template)
        faults, warnings = self.checked(variables, args["hosts"], args["machines"], evaluate)
        # Undefined values would be reported twice.
        if not faults:
            faults += _variables.of_batches(variables, evaluate)
            for role in self._roles():
                faults += _variables.of_machines(role, variables, evaluate)
        if faults and variables.get("hwaccel_closing"):
            # The playbook shows them at its end, and Ansible would show those of a failed task as JSON.
            return result | {"changed": False, "problems": faults}
        if faults:
            return result | {"changed": False, "failed": True, "msg": faults}
        return result | {"changed": False} | ({"warnings": warnings} if warnings else {})

    def _roles(self) -> list[str]:
        """Roles on machines that depend on this role, which run before any of their own tasks."""
        role = getattr(self._task, "_role", None)
        parents = role.get_parents() if role else []
        return [name for parent in parents if (name := parent.get_name(include_role_fqcn=False)) in inputs.ROLES]
