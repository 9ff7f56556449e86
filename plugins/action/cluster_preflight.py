# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the variables of a cluster and its credentials, and reads the fleet once for all roles."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.filter.as_list import as_list
from ansible_collections.hwaccel.gpu.plugins.filter.declared_pools import declared_pools
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _input_faults, _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._checks import CheckingAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._direct import DirectAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import table

_OPTIONS: dict[str, dict[str, t.Any]] = {
    "stages": {"type": "list", "elements": "str", "default": [], "choices": list(table.ROLES)},
    "read": {"type": "bool", "default": True},
    "stop": {"type": "bool", "default": False},
}
#: Any of these options of hwaccel_connection selects a cluster.
_CREDENTIALS = ("kubeconfig", "host", "api_key", "client_cert", "context")
#: An error in one of these prevents reading the fleet.
_NEEDED = {"hwaccel_connection", "hwaccel_pools"}
_AGENTS = "hwaccel-gpu"
#: Variables of the namespaces of a run, each with the variables and the name that are used instead if it is not set.
_NAMESPACES = (
    ("feature_discovery_namespace", "hwaccel_namespace", _AGENTS),
    ("feature_discovery_system_namespace", "hwaccel_system_namespace", f"{_AGENTS}-system"),
    ("driver_namespace", "hwaccel_namespace", _AGENTS),
    ("device_plugin_namespace", "hwaccel_namespace", _AGENTS),
    ("monitoring_namespace", "hwaccel_namespace", _AGENTS),
)


class ActionModule(DirectAction, CheckingAction):
    """The action of cluster_preflight. An error in a variable only skips what needs the variable, so that all others are reported as well."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_OPTIONS)
        variables = dict(task_vars or {})
        undefined, warnings = self.checked(variables)
        made = _problems(undefined) if undefined else self._judged(args, variables)
        result |= {"changed": False, "fleet": {}, **made} | ({"warnings": warnings} if warnings else {})
        if args["stop"] and made["faults"]:
            result |= {"failed": True, "msg": [fault["text"] for fault in made["faults"]]}
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
        if args["read"] and not wrong & _NEEDED:
            fleet = self.run_module(self._request(wrong, variables), variables, "hwaccel.gpu.node_info")
            if fleet.get("failed"):
                return _problems([*(fault["text"] for fault in faults), *_texts(fleet.get("msg"))])
            made["fleet"] = fleet
            made["faults"] += _input_faults.judged([], variables, self._templar.template, fleet)
        return made

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
            "pools": declared_pools(as_list(self._value("hwaccel_pools", variables) or [])),
            "namespaces": [] if any(name.endswith("namespace") for name in wrong) else namespaces,
        }

    def _without_credentials(self, variables: c.Mapping[str, t.Any]) -> str:
        """Credentials of the environment cannot be those of several clusters."""
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
