# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Summarizes a fleet, which is read page by page: thousands of nodes become a few rows."""

from __future__ import annotations

import collections
import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import identity
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pools as pool_rules
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import ClassSum, NodeFacts, reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Forbidden,
    HwaccelError,
    ManyFaults,
    NotFound,
    UnknownKind,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import (
    fleet_drivers,
    fleet_existing,
    fleet_namespaces,
)

#: Kinds that every Kubernetes has, so that no discovery is needed.
NODE = Resource("", "v1", "Node", "nodes", False)
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)


@dataclasses.dataclass
class _PoolSum:
    pool: Pool
    nodes: int = 0
    ready: int = 0
    #: (product, count, memory_mib) from the labels of nodes.
    gpus: collections.Counter[tuple[str, int, int]] = dataclasses.field(default_factory=collections.Counter)

    def add(self, facts: NodeFacts) -> None:
        self.nodes += 1
        self.ready += facts.ready
        if facts.gpu.count:
            self.gpus[(facts.gpu.product, facts.gpu.count, facts.gpu.memory_mib)] += 1

    def row(self) -> dict[str, t.Any]:
        gpu: dict[str, t.Any] | None = None
        if self.pool.gpu is not None:
            declared = self.pool.gpu
            gpu = {"product": declared.product, "count": declared.count, "memory_mib": declared.memory_mib}
        elif self.gpus:
            # If nodes differ, the most frequent values; ties by name, so that two runs report the same.
            product, count, memory = min(self.gpus, key=lambda entry: (-self.gpus[entry], entry))
            gpu = {"product": product, "count": count, "memory_mib": memory}
        return {
            "name": self.pool.name,
            "declared": self.pool.declared,
            "nodes": self.nodes,
            "ready": self.ready,
            "gpu": gpu,
        }


def summary(
    client: Client,
    declared: t.Any = (),
    *,
    label_selector: str = "",
    rows: bool = False,
    namespaces: c.Iterable[str] = (),
    named: c.Collection[str] = (),
    warn: c.Callable[[str], None] = lambda text: None,
) -> dict[str, t.Any]:
    """The result of `node_info`. named: names of nodes to check, of which those that do not exist are reported.

    Raises ManyFaults if declared pools are invalid or overlap.
    """
    assigner = pool_rules.Assigner(pool_rules.parse_pools(declared))
    sums = {pool.name: _PoolSum(pool) for pool in assigner.pools}
    classes = ClassSum()
    found: list[dict[str, t.Any]] = []
    met: set[str] = set()
    for _node, facts, pool in nodes(client, assigner, label_selector=label_selector, warn=warn):
        sums.setdefault(pool.name, _PoolSum(pool)).add(facts)
        classes.add(facts, pool.name, assumed=pool_rules.assumed(facts, pool))
        if named:
            met.add(facts.name)
        if rows:
            found.append(row(facts, pool))
    result: dict[str, t.Any] = {
        "cluster_uid": cluster_uid(client),
        "platform": platform(client),
        "pools": [sums[name].row() for name in _order(assigner.pools, sums)],
        "classes": classes.rows(),
        "existing": fleet_existing.components(client),
        "driver_daemon_sets": fleet_drivers.daemon_sets(client),
        "namespaces": fleet_namespaces.namespaces(client, namespaces),
        "unknown_nodes": [{"name": name, "near": values.nearest(name, met)} for name in sorted(set(named) - met)],
    }
    if rows:
        result["nodes"] = sorted(found, key=lambda row: row["name"])
    return result


def nodes(
    client: Client,
    assigner: pool_rules.Assigner,
    *,
    label_selector: str = "",
    warn: c.Callable[[str], None] = lambda text: None,
) -> c.Iterator[tuple[dict[str, t.Any], NodeFacts, Pool]]:
    """Each Node with its facts and its pool, page by page. Raises ManyFaults after the last one if pools overlap."""
    for page in client.pages(NODE, label_selector=label_selector):
        while page.items:
            # Nodes are released one by one, because a page of large nodes needs much more memory than their facts.
            node = page.items.pop()
            facts = reduce_node(node)
            yield node, facts, assigner.pool_of(facts, (node.get("metadata") or {}).get("labels") or {})
    _check(assigner, whole=not label_selector, warn=warn)


def cluster_uid(client: Client) -> str:
    """The uid of kube-system, which identifies a cluster permanently. Empty if it cannot be read."""
    try:
        return str(client.get(NAMESPACE, "kube-system", metadata_only=True)["metadata"]["uid"])
    except (Forbidden, NotFound):
        return ""


def refuse_another(client: Client, expected: str) -> None:
    """Raises ManyFaults if it is not the cluster with this uid. expected: "" for any, without a request."""
    if expected and (faults := identity.other_cluster(cluster_uid(client), expected)):
        raise ManyFaults(faults)


def platform(client: Client) -> dict[str, str]:
    version = str(client.server_version().get("gitVersion") or "")
    for mark, distribution in (("+k3s", "k3s"), ("+rke2", "rke2")):
        if mark in version:
            return {"distribution": distribution, "version": version}
    try:
        client.resource_by_group("config.openshift.io", "ClusterVersion")
    except UnknownKind:
        return {"distribution": "kubernetes", "version": version}
    return {"distribution": "openshift", "version": version}


def query(expression: str, data: dict[str, t.Any], jmespath: t.Any) -> t.Any:
    """The value of a JMESPath expression. jmespath: the package."""
    try:
        return jmespath.search(expression, data)
    except jmespath.exceptions.JMESPathError as error:
        why = " ".join(str(error).split())[:300]
        raise HwaccelError("the query cannot be evaluated", "query", why, "correct the JMESPath expression") from None


def _check(assigner: pool_rules.Assigner, *, whole: bool, warn: c.Callable[[str], None]) -> None:
    """Overlapping pools are an error; a node that has not joined yet is not."""
    wrong = assigner.faults(complete=False)
    if wrong:
        raise ManyFaults(wrong)
    for fault in assigner.faults(complete=whole):
        warn(str(fault))


def _order(declared: c.Iterable[Pool], sums: c.Mapping[str, _PoolSum]) -> list[str]:
    named = [pool.name for pool in declared]
    return named + sorted(name for name in sums if name not in named)


def row(facts: NodeFacts, pool: Pool) -> dict[str, t.Any]:
    """One entry of `nodes` in the result of `node_info`."""
    return {
        "name": facts.name,
        "pool": pool.name,
        "ready": facts.ready,
        "not_ready": facts.not_ready,
        "unschedulable": facts.unschedulable,
        "quarantined": facts.quarantined,
        "kernel": facts.kernel,
        "os_id": facts.os_id,
        "os_version": facts.os_version,
        "os_image": facts.os_image,
        "architecture": facts.architecture,
        "runtime": facts.runtime,
        "runtime_version": facts.runtime_version,
        "gpu_present": facts.gpu_present,
        "gpu_assumed": pool_rules.assumed(facts, pool),
        "gpu": {"product": facts.gpu.product, "count": facts.gpu.count, "memory_mib": facts.gpu.memory_mib}
        if facts.gpu.count
        else None,
        "host_driver": facts.host_driver,
        "driver_version": facts.driver_version,
        "allocatable": dict(facts.allocatable),
    }
