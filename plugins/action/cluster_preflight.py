# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the variables of a cluster and its credentials, and reads the fleet once for all roles."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.filter.as_list import as_list
from ansible_collections.hwaccel.gpu.plugins.filter.declared_pools import declared_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _input_faults, _lines, _phases, _stages, _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._checks import CheckingAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import table
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs.restriction import Restriction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import awaited

_OPTIONS: dict[str, dict[str, t.Any]] = {
    "stages": {"type": "list", "elements": "str", "default": [], "choices": list(table.ROLES)},
    "read": {"type": "bool", "default": True},
}
#: Any of these options of hwaccel_connection selects a cluster.
_CREDENTIALS = ("kubeconfig", "host", "api_key", "client_cert", "context")
#: An error in one of these prevents reading the fleet.
_NEEDED = {"hwaccel_connection", "hwaccel_pools", "hwaccel_only_pools", "hwaccel_only_nodes"}
_AGENTS = "hwaccel-gpu"
#: Variables of the namespaces of a run, each with the variables and the name that are used instead if it is not set.
_NAMESPACES = (
    ("feature_discovery_namespace", "hwaccel_namespace", _AGENTS),
    ("feature_discovery_system_namespace", "hwaccel_system_namespace", f"{_AGENTS}-system"),
    ("driver_namespace", "hwaccel_namespace", _AGENTS),
    ("device_plugin_namespace", "hwaccel_namespace", _AGENTS),
    ("monitoring_namespace", "hwaccel_namespace", _AGENTS),
)


class ActionModule(_stages.StageAction, CheckingAction):
    """The action of cluster_preflight. An error in a variable only skips what needs the variable, so that all others are reported as well."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_OPTIONS)
        # The play knows the defaults of all roles.
        variables = _variables.without_defaults(task_vars or {})
        undefined, warnings = self.checked(variables)
        made = _problems(undefined) if undefined else self._judged(args, variables)
        if args["read"] and not made["blocked"]:
            self._plan(made, dict(task_vars or {}))
        result |= {"changed": False, "fleet": {}, "plans": {}, "only": {}, "left_out": [], "assumed": False, **made} | (
            {"warnings": warnings} if warnings else {}
        )
        return result

    def _judged(self, args: dict[str, t.Any], variables: dict[str, t.Any]) -> dict[str, t.Any]:
        faults = _input_faults.judged(args["stages"], variables, self._templar.template)
        wrong = {fault["variable"] for fault in faults}
        if "hwaccel_connection" not in wrong and (shared := self._without_credentials(variables)):
            return _problems([*(fault["text"] for fault in faults), shared])
        stages = sorted({stage for fault in faults for stage in fault["stages"]})
        made: dict[str, t.Any] = {
            "faults": faults,
            "blocked": bool(wrong & (_NEEDED | {"hwaccel_stages"})),
            "blocked_stages": stages,
        }
        if not args["read"] and not wrong & _NEEDED and (only := self._only(variables)):
            text = f"{only.variables} cannot restrict this playbook, which works on the whole cluster. Next: remove it, or use --limit"
            made["faults"].append({"text": text, "stages": []})
        made |= self._installed(args, variables)
        if made["assumed"] or made["blocked"]:
            return made
        if args["read"] and not wrong & _NEEDED:
            fleet = self.run_module(self._request(wrong, variables), variables, "hwaccel.gpu.node_info")
            if fleet.get("failed"):
                return _problems([*(fault["text"] for fault in faults), *_texts(fleet.get("msg"))])
            made["faults"] += _input_faults.judged([], variables, self._templar.template, fleet)
            self._restrict(made, fleet, variables)
            made["fleet"] = {name: value for name, value in fleet.items() if name != "nodes"}
        return made

    def _installed(self, args: c.Mapping[str, t.Any], variables: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """assumed: whether the cluster is only going to be made, so that nothing can be asked of it. Problems of what makes it stop the run.

        It is the installer's plan that tells: a cluster that does not answer may also be broken. Only a whole run of site makes it.
        """
        installer = self._value("hwaccel_installer", variables)
        if not installer:
            return {"assumed": False}
        outcome = _variables.fact(variables, f"cluster_{installer}_outcome")
        plan = self._value("cluster_plan", variables) or {}
        if not outcome:
            text = (
                f"hwaccel_installer is {installer}, and no machine of {variables['inventory_hostname']} is in the group control_plane. "
                "Next: add its servers to that group, or remove hwaccel_installer if the cluster is there"
            )
            return {"assumed": True, **_problems([text])}
        if self._value("cluster_made", variables):
            # Why a machine is no member is in the summary, and holds back no other.
            return {"assumed": False}
        of_phases = list(self._value("hwaccel_phase_faults", variables) or [])
        of_phases += _phases.unanswered(variables, self._value("hwaccel_new_cluster", variables))
        if reasons := [*outcome.get("reasons", ()), *self._of_machines(installer, variables), *of_phases]:
            reasons = list(dict.fromkeys(reasons))
            return {"assumed": True, **_problems(reasons)}
        if all(step["do"] != "init" for step in plan.get("steps", ())):
            return {"assumed": False}
        whole = args["read"] and not args["stages"] and "all" in variables.get("ansible_run_tags", ["all"])
        missing = f"{variables['inventory_hostname']} is not there yet: none of its machines is a member of a cluster. Next: run hwaccel.gpu.site as a whole"
        return {"assumed": True, **({} if whole else _problems([missing]))}

    def _of_machines(self, installer: str, variables: c.Mapping[str, t.Any]) -> list[str]:
        """Problems of the machines of a cluster that is installed, each with its machine; those of many machines once."""
        settings = self._value("cluster_settings", variables) or {}
        owners: dict[str, list[str]] = {}
        for one in settings.get("machines", ()):
            known = _variables.fact(variables["hostvars"].raw_get(one["host"]), f"cluster_{installer}_outcome")
            for text in known.get("reasons") or ():
                owners.setdefault(text, []).append(one["host"])
        for host, texts in _phases.reasons(variables, variables["hostvars"]).items():
            for text in texts:
                owners.setdefault(text, []).append(host)
        return [text if hosts[0] in text else f"{some(set(hosts))}: {text}" for text, hosts in owners.items()]

    def _restrict(self, made: dict[str, t.Any], fleet: dict[str, t.Any], variables: dict[str, t.Any]) -> None:
        only = self._only(variables)
        made["only"] = {"pools": list(only.pools), "nodes": list(only.nodes)}
        if only:
            made["faults"] += [{**fault.as_dict(), "stages": []} for fault in only.faults(fleet)]
            made["left_out"] = only.left_out(fleet)

    def _only(self, variables: c.Mapping[str, t.Any]) -> Restriction:
        given = (self._value(name, variables) or [] for name in ("hwaccel_only_pools", "hwaccel_only_nodes"))
        return Restriction(*(tuple(as_list(value)) for value in given))

    def _plan(self, made: dict[str, t.Any], variables: dict[str, t.Any]) -> None:
        """The plans of the stages that can be planned, in order, because later ones depend on earlier ones."""
        plans: dict[str, dict[str, t.Any]] = {}
        fleet = self._awaited(variables) if made.get("assumed") else made["fleet"]
        for role in self._value("hwaccel_taken_stages", variables) or []:
            if role not in made["blocked_stages"]:
                plans[role] = self.planned(self.in_role(role, variables, plans), fleet)
                known = {fault["text"] for fault in made["faults"]}
                made["faults"] += [
                    fault | {"stages": [role]} for fault in plans[role].get("faults", ()) if fault["text"] not in known
                ]
        made["plans"] = plans
        lines = [line for plan in plans.values() for line in plan["messages"]]
        _lines.show(_lines.grouped(lines), self._task, variables)

    def _awaited(self, variables: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
        settings = self._value("cluster_settings", variables) or {}
        return awaited(str(self._value("hwaccel_installer", variables)), str(settings.get("version", "")))

    def _request(self, wrong: set[str], variables: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Options of node_info: the connection of the cluster, and what all roles need to know."""
        excluded = (
            [] if "hwaccel_excluded_nodes" in wrong else as_list(self._value("hwaccel_excluded_nodes", variables) or [])
        )
        namespaces = [
            self._value(own, variables) or self._value(shared, variables) or name for own, shared, name in _NAMESPACES
        ]
        return {
            # Module defaults would be evaluated before the connection is known to be valid.
            **(self._value("hwaccel_connection", variables) or {}),
            "named_nodes": excluded,
            # Only a restricted run needs to know which node is in which pool.
            "rows": bool(self._only(variables)),
            "pools": declared_pools(as_list(self._value("hwaccel_pools", variables) or [])),
            "namespaces": [] if any(name.endswith("namespace") for name in wrong) else namespaces,
        }

    def _without_credentials(self, variables: c.Mapping[str, t.Any]) -> str:
        """Credentials of the environment cannot be those of several clusters."""
        if self._value("hwaccel_installer", variables):
            return ""
        clusters = variables.get("groups", {}).get("gpu_clusters", [])
        connection = self._value("hwaccel_connection", variables) or {}
        if len(clusters) < 2 or any(connection.get(option) for option in _CREDENTIALS):
            return ""
        return (
            f"{variables['inventory_hostname']} has no credentials of its own, and the inventory has {len(clusters)} clusters. Next: set "
            "kubeconfig, host with api_key, or client_cert in hwaccel_connection of this host. The K8S_AUTH_* environment is not used here."
        )

    def _value(self, name: str, variables: c.Mapping[str, t.Any]) -> t.Any:
        return _variables.plain(self._templar.template(variables[name])) if name in variables else None


def _problems(texts: c.Iterable[str]) -> dict[str, t.Any]:
    """Nothing can be planned because of these."""
    return {"faults": [{"text": text, "stages": []} for text in texts], "blocked": True, "blocked_stages": []}


def _texts(message: t.Any) -> list[str]:
    return [str(text) for text in (message if isinstance(message, list) else [message or "node_info failed"])]
