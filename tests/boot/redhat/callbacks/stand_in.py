# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulates a machine: results of tasks are those of tests/boot/redhat/machine.py, which gets all previous tasks as well."""

from __future__ import annotations

import json
import os
import shlex
import typing as t

from ansible.executor.task_executor import TaskExecutor
from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase

from ansible_collections.hwaccel.gpu.tests.boot.redhat.machine import Task, result_of

DOCUMENTATION = """
name: stand_in
type: notification
short_description: Simulate a machine
version_added: 0.1.0
description:
  - For tests. Each task for a host other than localhost is a line of the file that HWACCEL_TASKS names.
"""

#: These actions run on the controller only.
_ON_CONTROLLER = {
    "assert",
    "debug",
    "fail",
    "include_role",
    "include_tasks",
    "machine_outcome",
    "machines_closing",
    "set_fact",
    "show",
    "validate_argument_spec",
    "variables",
}
#: Actions of these run modules, of which only these run on the machine.
_RUN_MODULES = ("machine_look", "machine_power")
_original = TaskExecutor._get_action_handler_with_module_context


class _StandIn(ActionBase):
    """Replaces an action plugin that would run on the machine."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        return _simulated(self._task, self._task.resolved_action or self._task.action, self._task.args)


def _simulated(task: t.Any, action: str, args: t.Any) -> dict[str, t.Any]:
    recorded = Task(task.name, action, json.loads(json.dumps(args, default=str)))
    with open(os.environ["HWACCEL_TASKS"], "a+", encoding="utf-8") as record:
        record.seek(0)
        before = [Task(**json.loads(line)) for line in record]
        record.write(json.dumps(vars(recorded)) + "\n")
    return result_of(recorded, before)


def _handler(executor: t.Any, templar: t.Any) -> t.Any:
    handler, context = _original(executor, templar)
    task = executor._task
    if (
        task.action.rpartition(".")[2] in _ON_CONTROLLER
        or task.delegate_to == "localhost"
        or executor._host.name == "localhost"
    ):
        return handler, context
    if task.action.rpartition(".")[2] in _RUN_MODULES:
        handler._execute_module = lambda module_name, module_args, **_more: _simulated(task, module_name, module_args)
        handler._run_script = lambda request: _simulated(
            task,
            "ansible.builtin.script",
            {"cmd": f"look.py {shlex.quote(request)}", "executable": handler._python()},
        )
        return handler, context
    stand_in = _StandIn(
        task, handler._connection, handler._play_context, handler._loader, handler._templar, handler._shared_loader_obj
    )
    return stand_in, context


TaskExecutor._get_action_handler_with_module_context = _handler


class CallbackModule(CallbackBase):
    """The plugin is loaded before the first task, and in every process that runs a task."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "stand_in"
    CALLBACK_NEEDS_ENABLED = True
