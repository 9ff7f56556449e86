# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the results of a run into the file that HWACCEL_RECORD names, as one JSON document: tasks, recap and custom statistics.

With HWACCEL_ARGUMENTS, this file gets a line with name and arguments for each start of a module of this collection.
With HWACCEL_STARTED, this file gets a line with time and name as soon as a task starts on a host, for whoever kills a run at one of them.
"""

from __future__ import annotations

import json
import os
import time
import typing as t

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: recorder
type: notification
short_description: Record a run as JSON
version_added: 0.1.0
description:
  - For the live tests. Needs the environment variable HWACCEL_RECORD.
"""


def _keep_arguments(path: str) -> None:
    """Also in the workers, which are forks of the process that loads this plugin."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils._direct import DirectAction

    run = DirectAction.run_module

    def keep_and_run(
        self: t.Any, args: dict[str, t.Any], task_vars: dict[str, t.Any], module: str | None = None
    ) -> dict[str, t.Any]:
        # Each line is one write, because several workers append to the same file.
        with open(path, "a", encoding="utf-8") as stream:
            name = (module or self._task.action).rpartition(".")[2]
            stream.write(json.dumps({"module": name, "arguments": args}, default=str) + "\n")
        return run(self, args, task_vars, module)

    DirectAction.run_module = keep_and_run  # type: ignore[method-assign]


if "HWACCEL_ARGUMENTS" in os.environ:
    _keep_arguments(os.environ["HWACCEL_ARGUMENTS"])


class CallbackModule(CallbackBase):
    """One entry per task and host, in the order of completion."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "recorder"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[dict[str, t.Any]] = []
        self._started: dict[tuple[str, str], float] = {}
        self._began = time.monotonic()

    def v2_runner_on_start(self, host: t.Any, task: t.Any) -> None:
        self._started.setdefault((host.get_name(), task._uuid), time.monotonic())
        if path := os.environ.get("HWACCEL_STARTED"):
            with open(path, "a", encoding="utf-8") as stream:
                stream.write(f"{time.monotonic():.2f} {task.get_name()}\n")

    def _record(self, result: t.Any, outcome: str, ignored: bool = False) -> None:
        task = getattr(result, "task", None) or result._task
        host = getattr(result, "host", None) or result._host
        values = getattr(result, "result", None)
        values = dict(result._result if values is None else values)
        values.pop("invocation", None)
        self.tasks.append(
            {
                "host": host.get_name(),
                "name": task.get_name(),
                "action": task.resolved_action or task.action,
                "outcome": "ignored" if ignored else outcome,
                "result": values,
                "seconds": round(
                    time.monotonic() - self._started.get((host.get_name(), task._uuid), time.monotonic()), 2
                ),
                "ended": round(time.monotonic() - self._began, 2),
            }
        )

    def v2_runner_on_ok(self, result: t.Any) -> None:
        self._record(result, "ok")

    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        self._record(result, "failed", ignore_errors)

    def v2_runner_on_unreachable(self, result: t.Any) -> None:
        self._record(result, "unreachable")

    def v2_runner_on_skipped(self, result: t.Any) -> None:
        self._record(result, "skipped")

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        recap = {host: stats.summarize(host) for host in sorted(stats.processed)}
        with open(os.environ["HWACCEL_RECORD"], "w", encoding="utf-8") as stream:
            # json.dump would use the slow encoder in Python.
            stream.write(json.dumps({"tasks": self.tasks, "recap": recap, "custom": stats.custom}, default=str))
