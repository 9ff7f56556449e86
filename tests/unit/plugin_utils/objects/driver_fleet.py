# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet to which plans of the driver role are applied one after the other, and a DaemonSet controller that behaves like the real one."""

from __future__ import annotations

import copy
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pools as pool_rules
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet_drivers
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import driver
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.scheduling import daemon_sets, node, takes
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

#: Manifests are parsed once, because only the plan is tested.
MANIFESTS = stack.manifests("driver")
KERNEL = "feature.node.kubernetes.io/kernel-version.full"


class DriverFleet:
    """`nodes`: labels by name. `pods`: (DaemonSet, version, number of the pod) by node."""

    def __init__(self, **nodes: dict[str, str]) -> None:
        self.nodes = nodes
        self.pods: dict[str, tuple[str, str, int]] = {}
        self.created = 0
        self.drivers: dict[str, dict[str, t.Any]] = {}
        #: Nodes on which no driver can start.
        self.broken: set[str] = set()

    def run(self, **settings: t.Any) -> dict[str, t.Any]:
        """One run of the role: plan, apply, and reconcile."""
        plan = self.plan(**settings)
        assert plan["faults"] == []
        self.drivers = {one["metadata"]["name"]: copy.deepcopy(one) for one in daemon_sets(plan, "nvidia-driver")}
        self.reconcile()
        return plan

    def plan(self, **settings: t.Any) -> dict[str, t.Any]:
        return driver.plan(MANIFESTS, stack.settings("driver", **settings), self._facts(settings.get("pools") or []))

    def reconcile(self) -> None:
        self.pods = {name: pod for name, pod in self.pods.items() if name in self.nodes and self._takes(pod[0], name)}
        for name in self.nodes:
            takers = [one for one in self.drivers if self._takes(one, name)]
            assert len(takers) <= 1, f"{name} is selected by {takers}"
            if takers and name not in self.pods:
                labels = self.drivers[takers[0]]["metadata"]["labels"]
                self.created += 1
                self.pods[name] = takers[0], labels["hwaccel.gpu/driver-version"], self.created

    def versions(self) -> dict[str, str]:
        return {name: version for name, (_daemon_set, version, _number) in sorted(self.pods.items())}

    def _takes(self, daemon_set: str, name: str) -> bool:
        return daemon_set in self.drivers and takes(
            self.drivers[daemon_set], self.nodes[name] | {"kubernetes.io/hostname": name}
        )

    def _facts(self, declared: list[dict[str, t.Any]]) -> dict[str, t.Any]:
        assigner = pool_rules.Assigner(pool_rules.parse_pools(declared))
        classes: dict[tuple[str, str], int] = {}
        for name, labels in self.nodes.items():
            key = assigner.pool_of(NodeFacts(name, gpu_present=True), labels).name, labels[KERNEL]
            classes[key] = classes.get(key, 0) + 1
        rows = [
            stack.node_class(pool, kernel, nfd_kernel=kernel, count=count)
            for (pool, kernel), count in sorted(classes.items())
        ]
        return stack.fleet(*rows, driver_daemon_sets=fleet_drivers.daemon_sets(self._cluster()))

    def _cluster(self) -> Cluster:
        """A cluster with these DaemonSets and their pods."""
        cluster = Cluster()
        cluster.on("list", _reads_only_drivers)
        managed = {"managedFields": [{"manager": "hwaccel.gpu/driver"}]}
        for one in self.drivers.values():
            cluster.put(one | {"metadata": one["metadata"] | managed})
        for name, pod in self.pods.items():
            cluster.put(self._pod(name, pod[0]))
        return cluster

    def _pod(self, node_name: str, daemon_set: str) -> dict[str, t.Any]:
        state = {"waiting": {"reason": "ImagePullBackOff"}} if node_name in self.broken else {"running": {}}
        owner = self.drivers[daemon_set]
        metadata = {
            "name": f"{daemon_set}-{node_name}",
            "namespace": owner["metadata"]["namespace"],
            "labels": owner["spec"]["template"]["metadata"]["labels"],
            "ownerReferences": [{"name": daemon_set}],
        }
        return {
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"nodeName": node_name, "containers": [{"name": "nvidia-driver-ctr"}]},
            "status": {"containerStatuses": [{"name": "nvidia-driver-ctr", "state": state}]},
        }


def _reads_only_drivers(request: Request) -> None:
    assert "hwaccel.gpu/driver-version" in request.selector
    assert request.namespace or request.kind != "Pod", "pods are only listed in namespaces with a driver"


def machine(pool: str = "", kernel: str = "6.8.0-134-generic", wanted: str = "") -> dict[str, str]:
    """Labels of a node. `wanted`: its desired driver version."""
    return node(pool, kernel) | ({"hwaccel.gpu/driver-version": wanted} if wanted else {})
