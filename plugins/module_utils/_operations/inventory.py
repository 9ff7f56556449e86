# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster's nodes as inventory hosts, with their groups and variables."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import fnmatch
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, resources, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pools as pool_rules
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet, quarantine

SCHEDULABLE, UNSCHEDULABLE, QUARANTINED = "gpu_schedulable", "gpu_unschedulable", "quarantined"
_POOL = "pool"


@dataclasses.dataclass(frozen=True)
class Ask:
    """Options of the inventory plugin under the same names."""

    pools: t.Any = ()
    label_selector: str = ""
    #: Patterns of label keys (fnmatch) that become variables.
    labels: tuple[str, ...] = ()
    #: Type of the address that becomes ansible_host.
    host_address: str | None = None
    host_prefix: str = ""
    cluster: str = ""


def inventory(
    client: Client, ask: Ask, *, safe_name: c.Callable[[str], str], warn: c.Callable[[str], None]
) -> dict[str, t.Any]:
    """{groups: names of all, also those without hosts; hosts: [{name, groups, variables}], sorted by name}: plain data that can be cached.

    safe_name: converts a string to a group name. Raises ManyFaults if declared pools are invalid, overlap or have the same group.
    """
    assigner = pool_rules.Assigner(pool_rules.parse_pools(ask.pools))
    _check_names(assigner.pools, safe_name)
    hosts = []
    for node, facts, pool in fleet.nodes(client, assigner, label_selector=ask.label_selector, warn=warn):
        if facts.name:
            variables = _variables(node, facts, pool, ask)
            groups = sorted(safe_name(group) for group in _groups(variables["hwaccel_node"], ask.cluster))
            hosts.append({"name": ask.host_prefix + facts.name, "groups": groups, "variables": variables})
    # A play on the quarantined nodes of a healthy fleet must not fail because the group is missing.
    always = {SCHEDULABLE, UNSCHEDULABLE, QUARANTINED, *(safe_name(f"{_POOL}_{pool.name}") for pool in assigner.pools)}
    return {
        "groups": sorted(always.union(*(host["groups"] for host in hosts))),
        "hosts": sorted(hosts, key=lambda host: host["name"]),
    }


def obstacles(facts: NodeFacts, pool: Pool) -> list[str]:
    """Why not every GPU of the node can be allocated now; [] if it can."""
    expected, observed = schedulable.expected(facts, pool), schedulable.observed(facts)
    found = []
    if not facts.ready:
        found.append(f"not Ready: {facts.not_ready}")
    if facts.unschedulable:
        found.append("cordoned")
    if facts.quarantined:
        found.append("quarantined")
    if resources.missing(expected, observed) or not resources.total(observed):
        found.append(
            f"{resources.describe(observed)} allocatable"
            + (f", {resources.describe(expected)} expected" if expected else "")
        )
    return found


def _variables(node: dict[str, t.Any], facts: NodeFacts, pool: Pool, ask: Ask) -> dict[str, t.Any]:
    metadata = node["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    addresses = _addresses(node)
    in_the_way = obstacles(facts, pool)
    described = fleet.row(facts, pool) | {
        "labels": {
            key: value
            for key, value in sorted(labels.items())
            if any(fnmatch.fnmatchcase(key, pattern) for pattern in ask.labels)
        },
        "addresses": addresses,
        "quarantine_gate": (quarantine.marked_by(node) or "") if facts.quarantined else "",
        "quarantine_reason": str(annotations.get(names.QUARANTINE_REASON) or "") if facts.quarantined else "",
        "gpu_schedulable": not in_the_way,
        "obstacles": in_the_way if facts.gpu_present or pool_rules.assumed(facts, pool) else [],
    }
    variables: dict[str, t.Any] = {"hwaccel_node": described}
    if ask.cluster:
        variables["hwaccel_cluster"] = ask.cluster
    if ask.host_address in addresses:
        variables["ansible_host"] = addresses[ask.host_address][0]
    return variables


def _groups(node: dict[str, t.Any], cluster: str) -> c.Iterator[str]:
    yield f"{_POOL}_{node['pool']}"
    if cluster:
        yield f"cluster_{cluster}"
    if node["kernel"]:
        yield f"kernel_{node['kernel']}"
    if node["gpu"] and node["gpu"]["product"]:
        yield f"product_{node['gpu']['product']}"
    if node["gpu_present"] or node["gpu_assumed"]:
        yield SCHEDULABLE if node["gpu_schedulable"] else UNSCHEDULABLE
    if node["quarantined"]:
        yield QUARANTINED
        if node["quarantine_gate"]:
            yield f"{QUARANTINED}_{node['quarantine_gate']}"


def _addresses(node: dict[str, t.Any]) -> dict[str, list[str]]:
    """{type: addresses in the node's order}: a node with two IP families has two of one type."""
    found: dict[str, list[str]] = {}
    for entry in (node.get("status") or {}).get("addresses") or ():
        found.setdefault(str(entry.get("type")), []).append(str(entry.get("address")))
    return found


def _check_names(pools: c.Iterable[Pool], safe_name: c.Callable[[str], str]) -> None:
    by_group: dict[str, list[str]] = {}
    for pool in pools:
        by_group.setdefault(safe_name(f"{_POOL}_{pool.name}"), []).append(pool.name)
    why = "group names only have letters, digits and underscores"
    faults = [
        Fault(
            f"pools {' and '.join(held)} would both be group {group}",
            "pools",
            why,
            "set names that differ in letters or digits",
        )
        for group, held in by_group.items()
        if len(held) > 1
    ]
    if faults:
        raise ManyFaults(faults)
