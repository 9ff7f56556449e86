# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets a machine answer that is none: what a run asks of it goes to tests/boot/redhat/machine.py, with everything that was asked before."""

from __future__ import annotations

import json
import os
import typing as t

from ansible.executor.task_executor import TaskExecutor
from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase

from ansible_collections.hwaccel.gpu.tests.boot.redhat.machine import Asked, answer

DOCUMENTATION = """
name: stand_in
type: notification
short_description: Let a machine answer that is none
version_added: 0.1.0
description:
  - For tests. Each task for a host other than localhost is a line of the file that HWACCEL_ASKED names.
"""

#: These decide on the controller, and touch no machine.
_DECIDE = {
    "assert",
    "debug",
    "fail",
    "include_role",
    "include_tasks",
    "set_fact",
    "show",
    "validate_argument_spec",
    "variables",
}
#: Its action runs modules, and these are what goes to the machine.
_RUNS_MODULES = "machine_power"
_given = TaskExecutor._get_action_handler_with_module_context


class _StandIn(ActionBase):
    """In the place of the action plugin that would have gone to the machine."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        return _answered(self._task, self._task.resolved_action or self._task.action, self._task.args)


def _answered(task: t.Any, action: str, args: t.Any) -> dict[str, t.Any]:
    asked = Asked(task.name, action, json.loads(json.dumps(args, default=str)))
    with open(os.environ["HWACCEL_ASKED"], "a+", encoding="utf-8") as record:
        record.seek(0)
        before = [Asked(**json.loads(line)) for line in record]
        record.write(json.dumps(vars(asked)) + "\n")
    return answer(asked, before)


def _handler(executor: t.Any, templar: t.Any) -> t.Any:
    handler, context = _given(executor, templar)
    task = executor._task
    if (
        task.action.rpartition(".")[2] in _DECIDE
        or task.delegate_to == "localhost"
        or executor._host.name == "localhost"
    ):
        return handler, context
    if task.action.rpartition(".")[2] == _RUNS_MODULES:
        handler._execute_module = lambda module_name, module_args, **_more: _answered(task, module_name, module_args)
        return handler, context
    made = _StandIn(
        task, handler._connection, handler._play_context, handler._loader, handler._templar, handler._shared_loader_obj
    )
    return made, context


TaskExecutor._get_action_handler_with_module_context = _handler


class CallbackModule(CallbackBase):
    """Loaded before the first task, and in every process that runs one."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "stand_in"
    CALLBACK_NEEDS_ENABLED = True
