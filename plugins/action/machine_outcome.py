# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps what a run has come to on a machine, for the summary at its end. A failed task does not end the play, as its block continues here."""

from __future__ import annotations

import functools
import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _phases, _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import closing, phases

Row = dict[str, t.Any]
#: Of a machine whose cluster has problems, so that nothing is done with it; and of one without which the run goes on.
_LEFT, _LEFT_OUT = "left", "left_out"
_STATES = [closing.BEGUN, closing.DONE, closing.FAILED, _LEFT, _LEFT_OUT]
_OPTIONS: dict[str, dict[str, t.Any]] = {
    "role": {"type": "str", "required": True},
    "state": {"type": "str", "required": True, "choices": _STATES},
    "phase": {"type": "str", "default": ""},
    "reads": {"type": "bool", "default": False},
    "changes": {"type": "list", "elements": "str", "default": []},
    "reasons": {"type": "list", "elements": "str", "default": []},
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
        result |= {"changed": False, "stop": False, "held": False}
        if args["state"] in (_LEFT, _LEFT_OUT):
            machine = str(self._task.delegate_to or variables["inventory_hostname"])
            known = _variables.fact(variables["hostvars"].raw_get(machine), f"{role}_outcome")
            left = {"changes": []} if args["state"] == _LEFT else {"state": closing.FAILED, "reasons": args["reasons"]}
            return self._kept(result, args, variables, {**known, **left})
        if args["state"] != closing.BEGUN:
            outcome = self._ended(variables, role, batch, args)
            return self._kept(result, args, variables, outcome)
        if args["phase"]:
            why = [] if args["reads"] else self._held(args["phase"], role, variables)
            outcome = closing.ended(closing.HELD, batch, why) if why else closing.begun(batch)
            return self._kept(result | {"held": bool(why)}, args, variables, outcome)
        mine = variables["inventory_hostname"]
        if closing.stopped(mine, self._before(role, variables, variables["ansible_play_hosts_all"])):
            return result | {"stop": True}
        return self._kept(result, args, variables, closing.begun(batch))

    def _before(self, role: str, variables: Row, order: t.Sequence[str]) -> Row:
        """Of machines of the play in an earlier batch."""
        of = functools.partial(_outcome, role, variables["hostvars"])
        return closing.before(variables["inventory_hostname"], order, of)

    def _held(self, phase: str, role: str, variables: Row) -> list[str]:
        mine, value = str(variables["inventory_hostname"]), variables.get("hwaccel_cluster")
        named = str(_variables.plain(self._templar.template(value)) or "") if value else ""
        clusters = _phases.clusters(mine, named, variables)
        if why := phases.held(phase, mine, clusters, _phases.serving(mine, clusters, variables)):
            return why
        rows = [one["phases"].get(phase, {}) for one in clusters.values()]
        peers = {name for row in rows for name in row.get("hosts", ())}
        if len(variables["ansible_play_batch"]) >= len(peers):
            return []
        order = [name for name in variables["ansible_play_hosts_all"] if name in peers]
        if any(row.get("serves") for row in rows):
            # Those before it may serve other clusters, and be done although one of the same cluster has failed.
            found = {name: one for name in order if (one := _outcome(role, variables["hostvars"], name))}
        else:
            found = self._before(role, variables, order)
        ended = closing.stopped(mine, found)
        return ["all machines of an earlier batch failed"] if ended else []

    def _ended(self, variables: Row, role: str, batch: list[str], args: Row) -> Row:
        failed = args["state"] == closing.FAILED
        own = _variables.fact(variables, f"{role}_outcome")
        if "failed" in own:
            return closing.of_boot(own, batch, variables.get("__machine_boot_plan") or {})
        problems = self._problems(variables, role, failed)
        if problems:
            # One that was installed in this run is observed when other machines were changed already.
            state = closing.FAILED if variables.get("hwaccel_awaited") else closing.REFUSED
            return closing.ended(state, batch, problems)
        planned = _variables.plain(variables.get(f"{role}_predicted") or [])
        if not failed:
            return closing.ended(closing.DONE, batch, changes=[*planned, *_openings(variables), *args["changes"]])
        # They are read here and not in the playbook: there the variables of the failed task would be evaluated, which may be undefined by now.
        task: Row = variables["ansible_failed_task"]
        failure: Row = _variables.plain(variables["ansible_failed_result"])
        hidden = bool(task.get("no_log") or failure.get("_ansible_no_log"))
        return closing.ended(closing.FAILED, batch, closing.reasons(str(task.get("name")), failure, hidden), planned)

    def _problems(self, variables: Row, role: str, failed: bool) -> list[str]:
        """What was found before anything was changed."""
        looked = variables.get("__machine_looked") or {}
        if failed and looked.get("away"):
            return [str(looked["msg"])]
        if failed and (faults := (variables.get("__variables_checked") or {}).get("problems")):
            return list(map(str, faults))
        return [str(fault["text"]) for fault in _variables.plain(variables.get(f"{role}_faults") or [])]

    def _kept(self, result: Row, args: Row, variables: Row, outcome: Row) -> Row:
        own, known = f"{args['role']}_outcome", variables["groups"].get("gpu_clusters", ())
        facts: Row = {own: outcome}
        failed = _variables.fact(variables, own).get("state") == closing.FAILED
        if outcome["state"] == closing.HELD and failed and variables["inventory_hostname"] in known:
            # A cluster has one role in several phases. Why the first one has failed is what its summary tells.
            facts = {}
        if args["phase"]:
            facts[_phases.OUTCOMES] = {**_variables.fact(variables, _phases.OUTCOMES), args["phase"]: outcome}
        return result | {"ansible_facts": facts}


def _outcome(role: str, hostvars: t.Any, name: str) -> Row:
    """Empty if it has none."""
    return _variables.fact(hostvars.raw_get(name), f"{role}_outcome")


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
