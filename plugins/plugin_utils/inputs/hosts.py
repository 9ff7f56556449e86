# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors in the hosts of an inventory, and in what a run selects of them. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values

Groups = c.Mapping[str, c.Sequence[str]]
#: The group whose hosts stand for clusters.
CLUSTERS = "gpu_clusters"


def selected(groups: Groups, in_play: c.Collection[str], taken: c.Collection[str] = ()) -> str:
    """Why the run has no cluster, empty if it has one. in_play: the hosts that its limit leaves. taken: names of clusters, all if empty."""
    clusters = groups.get(CLUSTERS) or []
    if any(name in in_play and (not taken or name in taken) for name in clusters):
        return ""
    if clusters:
        return (
            f"There is no cluster: the limit of this run excludes all of {', '.join(clusters)}. "
            "Next: set one of them in --limit (AWX: Limit), and restrict the run to nodes of a cluster by hwaccel_only_nodes."
        )
    return (
        "There is no cluster: the inventory has no host in the group gpu_clusters. Next: add each cluster as a host to that group, "
        "with its credentials in hwaccel_connection, and set the inventory with -i (see examples/inventories of the collection)."
    )


def only(groups: Groups, given: c.Iterable[str]) -> str:
    """Why the clusters that a run is restricted to cannot be used, empty if they can."""
    clusters = groups.get(CLUSTERS) or []
    unknown = [name for name in given if name not in clusters]
    if not unknown:
        return ""
    near = values.nearest(unknown[0], clusters)
    return (
        f"hwaccel_only_clusters: the inventory has no cluster {', '.join(unknown)}"
        + (f": did you mean {near}?" if near else ".")
        + f" Next: choose among {', '.join(clusters)}."
    )


def tags(requested: c.Iterable[str], known: c.Sequence[str]) -> str:
    """Why the requested tags cannot be used, empty if they can. known: those of the playbook."""
    unknown = sorted(set(requested) - {"all"} - set(known))
    if not unknown:
        return ""
    which = "These tags do not exist" if len(unknown) > 1 else "This tag does not exist"
    step = (
        f"choose stages among {', '.join(known)}"
        if known
        else "remove --tags (AWX: Job Tags), because this playbook has no tags"
    )
    return f"{which} here: {', '.join(unknown)}. Next: {step}."


def machines(groups: Groups, kinds: c.Iterable[str]) -> list[str]:
    """Names of the hosts in groups of machines. kinds: names of these groups."""
    named = {name for kind in kinds for name in groups.get(kind) or ()}
    return sorted(named - set(groups.get(CLUSTERS) or ()))


def unassigned(groups: Groups, of_one_cluster: c.Iterable[str], cluster_of: c.Mapping[str, t.Any]) -> list[str]:
    """Errors in the clusters of machines. of_one_cluster: groups whose machines belong to one. cluster_of: hwaccel_cluster by machine."""
    clusters = list(groups.get(CLUSTERS) or ())
    shown = ", ".join(clusters)
    wrong = [
        f"{name} is a machine without a cluster: its hwaccel_cluster is {given}, and the clusters are {shown}. "
        "Next: set one of these, or add the cluster to the group gpu_clusters"
        for name, given in sorted(cluster_of.items())
        if given and given not in clusters
    ]
    if len(clusters) < 2:
        return wrong
    return wrong + [
        f"{name} is a machine without a cluster: there are {len(clusters)}, and it has no hwaccel_cluster. Next: set it to one of {shown}"
        for name in machines(groups, of_one_cluster)
        if not cluster_of.get(name)
    ]
