# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What facts of hosts say of the phases on machines, for action plugins."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines, phases

Row = c.Mapping[str, t.Any]
#: Facts: of a cluster's host its phases, as phases.planned returns them for it, and of a host the outcomes by the names of phases.
PHASES, OUTCOMES = "hwaccel_phase_machines", "hwaccel_phase_outcomes"
#: Of a cluster's host: how far its installation by OpenShift's installer is.
PROGRESS = "cluster_openshift_progress"


def clusters(host: str, named: str, variables: Row) -> dict[str, Row]:
    """Clusters with phases that a host belongs to, serves, or is the host of, as phases.held takes them. named: its hwaccel_cluster, all if empty."""
    everyone = [str(name) for name in variables["groups"].get("gpu_clusters", ())]
    found: dict[str, Row] = {}
    for name in [host] if host in everyone else [named] if named else everyone:
        known = variables["hostvars"].raw_get(name) if name in everyone else {}
        if of_cluster := _variables.plain(known.get(PHASES) or {}):
            problems = bool((known.get("hwaccel_preflight") or {}).get("faults"))
            found[name] = {"phases": of_cluster, "problems": problems}
    return found


def due(phase: str, found: Row, everyone: c.Iterable[str], hostvars: t.Any) -> dict[str, t.Any]:
    """A phase of phases.planned without the machines that phases.idle returns, or that serve no cluster of which machines were installed. everyone: hosts of
    clusters.
    """
    if phases.named(phase).after_installation:
        installed = [one for name in everyone if _installed(one := hostvars.raw_get(name), hostvars)]
        served = {name for one in installed for name in one[PHASES].get(phase, {}).get("hosts", ())}
        return phases.without(found, set(found["hosts"]) - served)
    names: list[str] = []
    for cluster in everyone:
        rows, outcomes = _of_cluster(hostvars.raw_get(cluster), hostvars)
        own = _outcomes([cluster], hostvars)[cluster].get(phases.CLUSTER)
        names += phases.idle(phase, rows[phase]["hosts"] if phase in rows else (), own, outcomes)
    return phases.without(found, names)


def _installed(of_cluster: Row, hostvars: t.Any) -> bool:
    """Whether machines of a cluster were installed in this run. Nobody logs in to those of OpenShift."""
    is_openshift = of_cluster.get("hwaccel_installer") == phases.OPENSHIFT
    return bool(of_cluster.get("cluster_taken") if is_openshift else _awaited(of_cluster, hostvars))


def _awaited(of_cluster: Row, hostvars: t.Any) -> list[Row]:
    """Variables of machines of a cluster that did not answer when the run began, and that it starts and installs."""
    phase = (of_cluster.get(PHASES) or {}).get("machine_boot") or {}
    rows = (hostvars.raw_get(name) for name in _variables.plain(phase.get("hosts") or []))
    return [one for one in rows if "hwaccel_awaited" in one]


def serving(host: str, found: c.Mapping[str, Row], variables: Row) -> dict[str, Row]:
    """Outcomes by host and phase: of a host, of these clusters, and of what serves them."""
    served = [phase["hosts"] for one in found.values() for phase in one["phases"].values() if phase["serves"]]
    return _outcomes([host, *found, *(name for hosts in served for name in hosts)], variables["hostvars"])


def reasons(of_cluster: c.Mapping[str, t.Any], hostvars: t.Any) -> dict[str, list[str]]:
    """Problems and failures by machine, of all phases of a cluster. of_cluster: variables of its host."""
    return phases.reasons(*_of_cluster(of_cluster, hostvars))


def unanswered(of_cluster: c.Mapping[str, t.Any], new: t.Any) -> list[str]:
    """Problems of machines that do not answer, and may be nodes of the cluster. new: its hwaccel_new_cluster."""
    awaited = {str(one["hwaccel_awaited"]): one for one in _awaited(of_cluster, of_cluster["hostvars"])}
    nodes = (of_cluster.get("hwaccel_asked_nodes") or {}).get("nodes")
    names = None if nodes is None else [str(node["name"]) for node in nodes]
    wanted = {
        text: _variables.plain((one.get("machine_boot_request") or {}).get("nodes") or [])
        for text, one in awaited.items()
    }
    return phases.unanswered(wanted, names, bool(machines.truth(new)))


def changes(of_cluster: c.Mapping[str, t.Any], hostvars: t.Any) -> list[str]:
    """What its phases have changed, or would change in check mode."""
    return phases.changes(*_of_cluster(of_cluster, hostvars))


def _of_cluster(of_cluster: c.Mapping[str, t.Any], hostvars: t.Any) -> tuple[Row, dict[str, Row]]:
    found = _variables.plain(of_cluster.get(PHASES) or {})
    return found, _outcomes([name for one in found.values() for name in one["hosts"]], hostvars)


def _outcomes(hosts: c.Iterable[str], hostvars: t.Any) -> dict[str, Row]:
    """By host and phase."""
    known = {name: hostvars.raw_get(name) for name in dict.fromkeys(hosts) if name in hostvars}
    return {name: _variables.fact(one, OUTCOMES) for name, one in known.items()}
