# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends a run on machines: summarizes its outcomes, shows them, and publishes them."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _lines, _phases, _summary_file, _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import closing

Row = dict[str, t.Any]
_OPTIONS: dict[str, dict[str, t.Any]] = {
    "role": {"type": "str", "required": True},
    "entry": {"type": "str", "default": "main"},
    "problems": {"type": "list", "elements": "str", "default": []},
    "path": {"type": "str", "default": ""},
}


class ActionModule(ActionBase):
    """The action of machines_closing. It connects to no host."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: Row | None = None) -> Row:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_OPTIONS)
        variables = dict(task_vars or {})
        summaries = {}
        for name in variables["ansible_play_hosts_all"]:
            # hostvars also has the facts of a machine that has left the play.
            outcome = _variables.fact(variables["hostvars"].raw_get(name), f"{args['role']}_outcome")
            summaries[name] = closing.summarized(outcome or None)
            needs = _variables.plain(variables["hostvars"].raw_get(name).get(f"{args['role']}_bundle") or {}).get(
                "needs"
            )
            if args["entry"] == "bundle" and needs:
                summaries[name]["needs"] = needs
            if far := _variables.fact(variables["hostvars"].raw_get(name), _phases.PROGRESS):
                summaries[name]["installation"] = far
        summaries = closing.with_problems(summaries, args["problems"])
        _summary_file.write(args["path"], {"machines": summaries})
        _lines.show(closing.lines(summaries, args["entry"], self._task.check_mode), self._task, variables)
        published = {"data": {"hwaccel_summary": summaries}, "per_host": False, "aggregate": True}
        failed = [name for name, one in summaries.items() if one["reasons"]]
        return result | {
            "changed": False,
            "machines": summaries,
            "failed_machines": failed,
            "failure": closing.failure(summaries),
            "ansible_stats": published,
        }
