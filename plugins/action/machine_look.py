# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connects to a machine, observes it, and computes the plan of a host role: one task, because a run has each for each machine, at about 0.1 s."""

from __future__ import annotations

import contextlib
import pathlib
import shlex
import time
import typing as t

from ansible import constants
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _looking
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import closing

Row = dict[str, t.Any]
#: Runs on the machine with any Python 3 that a supported system has.
_SCRIPT = pathlib.Path(__file__).parents[2] / "roles" / "machine" / "files" / "look.py"
#: Seconds in which services run with the files on disk, observed once a second.
_SETTLED = 20
_OPTIONS: dict[str, Row] = {
    "role": {"type": "str", "required": True, "choices": list(_looking.PLANS)},
    "settings": {"type": "dict", "default": {}},
    "found": {"type": "dict"},
    "state": {"type": "str", "default": "present", "choices": ["present", _looking.ABSENT]},
    "observe": {"type": "bool", "default": True},
    "awaits": {"type": "bool", "default": False},
}


class ActionModule(ActionBase):
    """The action of machine_look. A machine that cannot be reached fails, so that it stays in the play and is in the summary with its reason."""

    _supports_check_mode = True

    def run(self, tmp: t.Any = None, task_vars: Row | None = None) -> Row:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_OPTIONS)
        self.variables = dict(task_vars or {})
        result |= {"changed": False, "reached": False}
        before = self.variables.get("__machine_looked") or {}
        if before.get("away") and not self.variables.get("hwaccel_awaited"):
            # Nothing has started it since, and each attempt takes as long as the timeout of the connection.
            return result | {"failed": True, "away": True, "msg": str(before["msg"])}
        try:
            if not before.get("reached"):
                result |= self._pinged()
            result["reached"] = True
            return result | (self._observed(args) if args["observe"] else {})
        except AnsibleConnectionFailure as error:
            return result | self._unreachable(error, result["reached"])
        except AnsibleError as error:
            return result | {"failed": True, "msg": str(error)}

    @property
    def name(self) -> str:
        return str(self.variables["inventory_hostname"])

    def _unreachable(self, error: AnsibleConnectionFailure, reached: bool) -> Row:
        """reached: whether it was, earlier in this run. The next task that connects to it shows whether it still is."""
        if not reached:
            return {"failed": True, "away": True, "msg": closing.unreachable(self.name, str(error))}
        try:
            # Connections censor their errors in tasks that are not logged, as this one.
            self._pinged()
        except AnsibleConnectionFailure as failure:
            error = failure
        return {"failed": True, "msg": closing.unreachable(self.name, str(error), any_more=True)}

    def _pinged(self) -> Row:
        """The interpreter that Ansible has discovered, as fact. Raises AnsibleConnectionFailure and AnsibleError."""
        with self._logged():
            pinged = self._execute_module("ansible.builtin.ping", {}, task_vars=self.variables)
        if pinged.get("failed"):
            said = [str(pinged.get(key) or "").strip() for key in ("msg", "module_stderr")]
            raise AnsibleError(self._unobserved(" ".join(filter(None, said))))
        found = pinged.get("ansible_facts") or {}
        self.variables["ansible_facts"] = {**(self.variables.get("ansible_facts") or {}), **found}
        return {"ansible_facts": found} if found else {}

    @contextlib.contextmanager
    def _logged(self) -> t.Iterator[None]:
        """A ping has nothing to hide, and the error of a connection is what an operator needs."""
        context = self._connection._play_context
        hidden, context.no_log = context.no_log, False
        try:
            yield
        finally:
            context.no_log = hidden

    def _unobserved(self, why: str) -> str:
        return (
            f"{self.name} could not be observed: {why[-500:] or 'no reason is known'}. "
            f"Next: run {self._python()} --version on that machine, and set ansible_python_interpreter if it does not work."
        )

    def _python(self) -> str:
        """The interpreter of the variable or the configuration, otherwise the one that Ansible has discovered: its path differs between systems."""
        configured = constants.config.get_config_value("INTERPRETER_PYTHON", variables=self.variables)
        named = str(self._templar.template(configured))
        discovered = (self.variables.get("ansible_facts") or {}).get("discovered_interpreter_python")
        return str(discovered or "/usr/bin/python3") if named.startswith("auto") else named

    def _observed(self, args: Row) -> Row:
        request = _looking.request(args["role"], args["settings"])
        for attempt in range(1 + _SETTLED if args["awaits"] else 1):
            time.sleep(1 if attempt else 0)
            told = self._run_script(request)
            if told.get("rc", 1) != 0:
                raise AnsibleError(self._unobserved(str(told.get("stderr") or told.get("msg") or "").strip()))
            plan = _looking.plan(told["stdout"], args["role"], args["settings"], args["found"], args["state"])
            if not args["awaits"] or not plan["actions"]:
                return {"printed": told["stdout"], "plan": plan}
        raise AnsibleError(self._unsettled(plan["actions"]))

    def _run_script(self, request: str) -> Row:
        """Through one connection where modules are run so (pipelining), instead of five."""
        if self._is_pipelining_enabled("new"):
            command = f"{self._python()} - {shlex.quote(request)}"
            return t.cast("Row", self._low_level_execute_command(command, in_data=_SCRIPT.read_bytes()))
        task = self._task.copy()
        task.args = {
            "_raw_params": f"{shlex.quote(str(_SCRIPT))} {shlex.quote(request)}",
            "executable": self._python(),
        }
        script = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.script",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        return t.cast("Row", script.run(task_vars=self.variables))

    def _unsettled(self, actions: list[Row]) -> str:
        units = [str(action["unit"]) for action in actions]
        return (
            f"{', '.join(units)} on {self.name} does not run with the files on disk: {', '.join(str(one['why']) for one in actions)}. "
            "The service keeps running as before. "
            f"Next: find the reason in its log (journalctl --unit {' --unit '.join(units)}), and run again."
        )
