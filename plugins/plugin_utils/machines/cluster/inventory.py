# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of a cluster that is to be installed, from an inventory. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import AGENT, SERVER
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.inventory import Groups, Variables

#: What machines of a group become.
GROUPS = {"control_plane": SERVER, "workers": AGENT, "edge_nodes": AGENT}
#: Port of the API server where an endpoint names none.
PORT = 6443
#: Installers that log in to machines. Those of others are installed by what they boot.
BY_LOGIN = ("k3s", "kubeadm")


def read(groups: Groups, hostvars: Variables, cluster: str) -> dict[str, t.Any]:
    """machines: of the cluster, servers first, each with host, node, address, role, labels and taints. retired: the same of those that are to leave it, and
    lost: of those that are gone for good, which nobody can ask.

    endpoint: host and port, empty if there is none.
    """
    variables = hostvars[cluster]
    listed = machines_of(groups, hostvars, cluster)
    gone = _named(listed, hostvars, "hwaccel_lost")
    leaving = [one for one in _named(listed, hostvars, "hwaccel_retired") if one not in gone]
    found = [one for one in listed if one not in gone and one not in leaving]
    given = str(variables.get("hwaccel_api_endpoint") or variables.get("hwaccel_load_balancer_address") or "")
    return {
        "machines": found,
        "retired": leaving,
        "lost": gone,
        "endpoint": with_port(given or _lone_server(found)),
        "even_servers": bool(machines.truth(variables.get("hwaccel_even_servers"))),
    }


def lone_server(groups: Groups, hostvars: Variables, cluster: str) -> str:
    """Address of the only server of a cluster that an installer makes, which is its endpoint where no other is set; empty if there is none."""
    installed = hostvars.get(cluster, {}).get("hwaccel_installer")
    return _lone_server(read(groups, hostvars, cluster)["machines"]) if installed else ""


def _lone_server(found: c.Iterable[c.Mapping[str, t.Any]]) -> str:
    servers = [str(one["address"]) for one in found if one["role"] == SERVER]
    return servers[0] if len(servers) == 1 else ""


def installers(
    groups: Groups, hostvars: Variables, only: t.Sequence[str] | str = "", installer: str = ""
) -> dict[str, t.Any]:
    """clusters: those that an installer makes, by their names. machines: names of those that it logs in to, servers first, without those that are lost.

    only and installer: as `made_by` has them.
    """
    clusters = made_by(groups, hostvars, only, installer)
    return {
        "clusters": clusters,
        "machines": [
            one["host"]
            for cluster in clusters
            if hostvars[cluster]["hwaccel_installer"] in BY_LOGIN
            for one in machines_of(groups, hostvars, cluster)
            if not machines.truth(hostvars[one["host"]].get("hwaccel_lost"))
        ],
    }


def made_by(groups: Groups, hostvars: Variables, only: t.Sequence[str] | str = "", installer: str = "") -> list[str]:
    """Clusters that an installer makes, by their names.

    only: names of clusters, all if empty. installer: the one that makes them, any if empty.

    Without a server in the inventory no variable is read: this is asked in every run, also of hundreds of clusters that exist. Neither is it where Ansible
    has no variables of hosts, as for --syntax-check.
    """
    if not groups.get("control_plane") or not hostvars:
        return []
    chosen = [only] if isinstance(only, str) and only else only
    return [
        cluster
        for cluster in groups.get("gpu_clusters", ())
        if (not chosen or cluster in chosen) and (its := hostvars[cluster].get("hwaccel_installer"))
        if installer in ("", its)
    ]


def _named(listed: list[dict[str, t.Any]], hostvars: Variables, variable: str) -> list[dict[str, t.Any]]:
    return [one for one in listed if machines.truth(hostvars[one["host"]].get(variable))]


def machines_of(groups: Groups, hostvars: Variables, cluster: str) -> list[dict[str, t.Any]]:
    clusters = list(groups.get("gpu_clusters", ()))
    lone = clusters[0] if len(clusters) == 1 else ""
    return [
        _machine(name, hostvars[name], role)
        for group, role in GROUPS.items()
        for name in groups.get(group, ())
        if (hostvars[name].get("hwaccel_cluster") or lone) == cluster
    ]


def with_port(endpoint: str) -> str:
    """An endpoint with a port. IPv6 addresses get brackets."""
    if not endpoint:
        return ""
    text = endpoint.removeprefix("https://").rstrip("/")
    if text.count(":") > 1 and "[" not in text:
        text = f"[{text}]"
    return text if text.rpartition("]")[2].count(":") else f"{text}:{PORT}"


def _machine(name: str, variables: c.Mapping[str, t.Any], role: str) -> dict[str, t.Any]:
    return {
        "host": name,
        "node": str(variables.get("hwaccel_node_name") or name),
        "address": str(variables.get("hwaccel_address") or variables.get("ansible_host") or ""),
        "role": role,
        "serves": role == SERVER,
        "labels": dict(variables.get("hwaccel_node_labels") or {}),
        "taints": list(variables.get("hwaccel_node_taints") or ()),
    }
