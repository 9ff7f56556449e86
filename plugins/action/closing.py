# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends a run: summarizes what its stages have returned, shows it, and publishes it."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible.plugins.action import ActionBase
from ansible.template import Templar

from ansible_collections.hwaccel.gpu.plugins.filter.closing_lines import closing_lines
from ansible_collections.hwaccel.gpu.plugins.filter.clusters_table import clusters_table
from ansible_collections.hwaccel.gpu.plugins.filter.gate_summary import gate_summary
from ansible_collections.hwaccel.gpu.plugins.filter.providers import providers
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import (
    _lines,
    _phases,
    _stages,
    _summary_file,
    _variables,
    closing,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import table

Row = dict[str, t.Any]
_OPTIONS: dict[str, dict[str, t.Any]] = {
    "playbook": {"type": "str", "default": "site", "choices": list(closing.PLAYBOOKS)},
    "began": {"type": "float"},
    "lines": {"type": "list", "elements": "str", "default": []},
    "path": {"type": "str", "default": ""},
}
#: Variables of the play that are evaluated for each cluster, and those that they refer to.
_EVALUATED = ("hwaccel_problems", "hwaccel_stopped")
_OF_THE_PLAY = (*_EVALUATED, "hwaccel_twins", "hwaccel_twin_problems", "hwaccel_unmade")


class ActionModule(ActionBase):
    """The action of closing. It connects to no host."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: Row | None = None) -> Row:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_OPTIONS)
        variables = dict(task_vars or {})
        mine, everyone = variables["inventory_hostname"], variables["ansible_play_hosts_all"]
        if mine == variables["ansible_play_hosts"][0]:
            summaries = {name: self._summary(name, variables, args["playbook"]) for name in everyone}
            if len(everyone) > 1:
                _lines.show(
                    ["All clusters:", *clusters_table(summaries), ""], self._task, {"inventory_hostname": "all"}
                )
            _summary_file.write(args["path"], {"clusters": summaries})
        else:
            summaries = {mine: self._summary(mine, variables, args["playbook"])}
        summary = summaries[mine]
        lines = closing_lines(summary, args["began"], self._task.check_mode, args["playbook"])
        _lines.show([*lines, *([""] if args["lines"] else []), *args["lines"]], self._task, variables)
        published = {"data": {"hwaccel_summary": summaries}, "per_host": False, "aggregate": True}
        failure = closing.failure(summary, args["playbook"])
        return result | {"changed": False, "summary": summary, "failure": failure, "ansible_stats": published}

    def _summary(self, name: str, variables: Row, playbook: str) -> Row:
        """Of a cluster, also of one that has left the play: hostvars still has what it registered."""
        known = {key: variables[key] for key in _OF_THE_PLAY}
        found: Row = {**variables["hostvars"].raw_get(name), **known}
        templar = Templar(loader=self._loader, variables=found)
        problems, stopped = (_variables.plain(templar.template(found[key])) for key in _EVALUATED)
        stages = [found.get(f"{role}_stage") or {} for role in table.STAGES]
        steps = [step for stage in stages for step in stage.values() if isinstance(step, c.Mapping)] + _removed(found)
        plans = {role: plan for role, plan in _stages.plans(found).items() if role != "gpu_validation"}
        summary = gate_summary(steps) | {"stopped": stopped, "problems": problems, "providers": providers(plans)}
        whole = playbook in ("site", "preflight") and "hwaccel_only_stage" not in variables
        planned = whole and (self._task.check_mode or playbook == "preflight")
        # With problems nothing was done, and a variable may be undefined.
        summary["machine_steps"] = [] if problems else self._steps(found, templar, planned=planned)
        if whole and not problems:
            summary["machine_steps"] = [*_phases.changes(found, variables["hostvars"]), *summary["machine_steps"]]
        summary["machine_faults"] = {} if problems else _phases.reasons(found, variables["hostvars"])
        if far := _variables.fact(found, _phases.PROGRESS):
            summary["installation"] = far
        return summary | {"succeeded": not closing.failure(summary, playbook)}

    def _steps(self, found: Row, templar: Templar, *, planned: bool) -> list[str]:
        """What the installer of the cluster has done with its machines, or with planned what it would do."""
        taken = found.get("cluster_taken") or []
        if planned:
            role = f"cluster_{templar.template(found.get('hwaccel_installer') or '')}"
            taken = _variables.fact(found, f"{role}_outcome").get("changes") or []
        return t.cast("list[str]", _variables.plain(taken))


def _removed(found: Row) -> list[Row]:
    """Results of a teardown."""
    of_roles = [found.get(f"{role}_{what}") or {} for role in table.STAGES for what in ("removed", "lifted")]
    return of_roles + list((found.get("hwaccel_namespaces_removed") or {}).get("results") or ())
