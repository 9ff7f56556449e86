# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters and machines of an inventory that one host serves. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.values import list_of_text
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines

Groups = c.Mapping[str, c.Sequence[str]]
Variables = c.Mapping[str, c.Mapping[str, t.Any]]
#: Groups of machines, and the roles of machines that set none.
GROUPS = {"bootstrap": machines.BOOTSTRAP, "control_plane": machines.MASTER, "workers": machines.WORKER}
#: Variables of machines by the keys of roles.
_MACHINE = {key: f"hwaccel_{key}" for key in ("mac", "firmware", "architecture", "install", "install_device")} | {
    "arguments": "hwaccel_kernel_arguments"
}


class Once(c.Mapping[str, t.Any]):
    """Variables by host, with those of each host read once: Ansible collects them anew each time, from the inventory, files and facts."""

    def __init__(self, hostvars: Variables) -> None:
        self._hostvars, self._read = hostvars, dict[str, t.Any]()

    def __getitem__(self, host: str) -> t.Any:
        if host not in self._read:
            self._read[host] = self._hostvars[host]
        return self._read[host]

    def __contains__(self, host: object) -> bool:
        return host in self._hostvars

    def __iter__(self) -> c.Iterator[str]:
        return iter(self._hostvars)

    def __len__(self) -> int:
        return len(self._hostvars)


def clusters_of(groups: Groups, hostvars: Variables, host: str) -> list[str]:
    """The cluster of the host, or all if it sets none."""
    mine = hostvars[host].get("hwaccel_cluster")
    return [str(mine)] if mine else list(groups.get("gpu_clusters", ()))


def machines_of(groups: Groups, hostvars: Variables, clusters: c.Collection[str]) -> list[dict[str, t.Any]]:
    """Machines of these clusters, and those without a cluster, which the caller reports as problems.

    One of bootstrap and of workers is one machine, which is a bootstrap machine as long as the cluster needs it.
    """
    names = list(groups.get("gpu_clusters", ()))
    lone = names[0] if len(names) == 1 else ""
    found = []
    for group, role in GROUPS.items():
        for name in groups.get(group, ()):
            cluster = hostvars.get(str(hostvars[name].get("hwaccel_cluster") or lone), {})
            if not _is(role, name, groups, cluster):
                continue
            # It has been installed, and its ignition file is not published any more.
            done = role == machines.BOOTSTRAP and bootstrap_is("complete", cluster)
            found.append({**_machine(name, hostvars[name], role, lone), **({"install": False} if done else {})})
    return [machine for machine in found if machine["cluster"] in clusters or not machine["cluster"]]


def bootstrap_is(what: str, cluster: c.Mapping[str, t.Any]) -> bool:
    """Whether the bootstrap of a cluster of OpenShift is complete, or its machine removable, as this run has found out. cluster: variables of its host."""
    return bool((cluster.get("cluster_openshift_bootstrap") or {}).get(what))


def _is(role: str, name: str, groups: Groups, cluster: c.Mapping[str, t.Any]) -> bool:
    """Whether a machine has the role of one of its groups now."""
    if not all(name in groups.get(group, ()) for group in ("bootstrap", "workers")):
        return True
    return (role == machines.BOOTSTRAP) != bootstrap_is("removable", cluster)


def values(variables: c.Mapping[str, t.Any], keys: c.Mapping[str, str]) -> dict[str, t.Any]:
    """keys: of the result, each with its variable. Variables that are not set or empty are omitted."""
    return {key: variables[name] for key, name in keys.items() if variables.get(name) not in (None, "")}


def listed(value: t.Any) -> list[str]:
    """Texts of a variable that may be a list or text, as the filter as_list reads it. Empty if it is neither, which its role reports."""
    try:
        found = list_of_text(value) if isinstance(value, str) else value
    except ValueError:
        return []
    return [str(one) for one in found] if isinstance(found, (list, tuple)) else []


def leaves(variables: c.Mapping[str, t.Any]) -> bool:
    """Whether a machine is to leave its cluster, or is gone for good."""
    return any(machines.truth(variables.get(name)) for name in ("hwaccel_retired", "hwaccel_lost"))


def is_new(variables: c.Mapping[str, t.Any]) -> bool:
    """Whether a cluster is not there yet, as it is declared, or as playbooks derive it. variables: of its host.

    Where the plan of its installer is known in this run, a declaration may be out of date.
    """
    installer = variables.get("hwaccel_installer")
    plan = variables.get("cluster_plan") if installer else None
    initializes = any(step["do"] == "init" for step in (plan or {}).get("steps") or ())
    if plan and not plan.get("faults") and (not initializes or variables.get("cluster_made")):
        return False
    return bool(machines.truth(variables.get("hwaccel_new_cluster")))


def _machine(name: str, variables: c.Mapping[str, t.Any], role: str, lone: str) -> dict[str, t.Any]:
    return {
        "name": variables.get("hwaccel_node_name") or name,
        "cluster": variables.get("hwaccel_cluster") or lone,
        # That of its group workers it gets later.
        "role": role if role == machines.BOOTSTRAP else variables.get("hwaccel_role") or role,
        "address": str(variables.get("hwaccel_address") or variables.get("ansible_host") or ""),
        **values(variables, _MACHINE),
    }
