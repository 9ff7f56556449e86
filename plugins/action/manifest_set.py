# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module that waits, and shows its progress. Shared by all modules that wait (their action files import it).

For manifest_set it also reads templates and files.
"""

from __future__ import annotations

import copy
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _sources
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._slices import INTERNAL
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._waiting import WaitingAction


class ActionModule(WaitingAction):
    """The action of manifest_set, node_gate and sandbox."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        task_vars = dict(task_vars or {})
        super().run(tmp, task_vars)
        args = {name: value for name, value in copy.deepcopy(dict(self._task.args)).items() if name not in INTERNAL}
        if self._task.action.rpartition(".")[2] == "manifest_set":
            self._read_sources(args, task_vars)
        if self._task.async_val:
            # A background job has no output for progress.
            return self.run_module(args, task_vars)
        return self.run_slices(args, task_vars)

    def _read_sources(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> None:
        template, src = args.pop("template", None), args.pop("src", None)
        if template or src:
            args["texts"] = _sources.texts(self, task_vars, template, src)
