# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps what a run has come to on a machine, for the summary at its end. A failed task does not end the play, as its block continues here."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import closing

Row = dict[str, t.Any]
_OPTIONS: dict[str, dict[str, t.Any]] = {
    "role": {"type": "str", "required": True},
    "state": {"type": "str", "required": True, "choices": [closing.BEGUN, closing.DONE, closing.FAILED]},
}


class ActionModule(ActionBase):
    """The action of machine_outcome. It connects to no host."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: Row | None = None) -> Row:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_OPTIONS)
        variables = dict(task_vars or {})
        role, batch = args["role"], [str(name) for name in variables["ansible_play_batch"]]
        if args["state"] != closing.BEGUN:
            return self._kept(result, role, self._ended(variables, role, batch, args["state"] == closing.FAILED))
        known = {
            name: variables["hostvars"].raw_get(name).get(f"{role}_outcome")
            for name in variables["ansible_play_hosts_all"]
        }
        outcomes = {name: _variables.plain(one) for name, one in known.items() if one}
        if closing.stopped(variables["inventory_hostname"], outcomes):
            return result | {"changed": False, "stop": True}
        return self._kept(result, role, closing.begun(batch))

    def _ended(self, variables: Row, role: str, batch: list[str], failed: bool) -> Row:
        problems = self._problems(variables, role, failed)
        if problems:
            return closing.ended(closing.REFUSED, batch, problems)
        planned = _variables.plain(variables.get(f"{role}_predicted") or [])
        if not failed:
            return closing.ended(closing.DONE, batch, changes=planned + _openings(variables))
        # They are read here and not in the playbook: there the variables of the failed task would be evaluated, which may be undefined by now.
        task: Row = variables["ansible_failed_task"]
        failure: Row = _variables.plain(variables["ansible_failed_result"])
        hidden = bool(task.get("no_log") or failure.get("_ansible_no_log"))
        return closing.ended(closing.FAILED, batch, closing.reasons(str(task.get("name")), failure, hidden), planned)

    def _problems(self, variables: Row, role: str, failed: bool) -> list[str]:
        """What was found before anything was changed."""
        if failed and (variables.get("__machine_reached") or {}).get("unreachable"):
            mine, why = variables["inventory_hostname"], str(variables["__machine_reached"].get("msg") or "")
            return [closing.unreachable(mine, why)]
        if failed and (faults := (variables.get("__variables_checked") or {}).get("problems")):
            return list(map(str, faults))
        return [str(fault["text"]) for fault in _variables.plain(variables.get(f"{role}_faults") or [])]

    def _kept(self, result: Row, role: str, outcome: Row) -> Row:
        return result | {"changed": False, "stop": False, "ansible_facts": {f"{role}_outcome": outcome}}


def _openings(variables: Row) -> list[str]:
    """Ports of firewalls that were opened or closed, which only the results of the tasks show."""
    found = []
    for firewall in ("firewalld", "ufw"):
        for one in _variables.plain(variables.get(f"__machine_{firewall}") or {}).get("results") or ():
            if one.get("changed"):
                item = one["item"]
                source = f" to {item['source']}" if item["source"] else ""
                found.append(
                    f"{'open' if item['open'] else 'close'} {item['port']}/{item['protocol']}{source} in {firewall}"
                )
    return found
