# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Later declarations restart no running driver: one cluster whose pools are declared later, whose version changes, and whose nodes leave.

Runtime: seven runs of site on one sandbox, six of them of one stage.
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import AGENTS, GPU, Cluster, until

OLD, NEW = "595.91.07", "580.178.04"
LABEL = "hwaccel.gpu/driver-version"
FLEET: dict[str, t.Any] = {
    "time_scale": 0.01,
    "pools": [{"name": "gpu", "count": 3, "labels": {"pool": "gpu"}, "kernel": "6.8.0-134-generic", "gpu": GPU}],
}
LATE = {"name": "late", "count": 1, "labels": {"pool": "gpu"}, "kernel": "6.8.0-57-generic", "gpu": GPU}
POOLS = [{"name": "training", "selector": "pool=gpu", "gpu": GPU}]


class Drivers(Cluster):
    """A cluster whose driver pods are compared before and after a run."""

    def apply(self, *stages: str, **variables: t.Any) -> site.Run:
        """A run of `site` that must succeed, without names of stages with all that schedulable GPUs need. The stage driver alone decides about driver pods."""
        run = self.deploy(**({"hwaccel_stages": ", ".join(stages)} if stages else {}), **variables)
        assert {tuple(row["gates"]) for row in run.summary["one"]["pools"]} == {
            ("driver",) if stages else ("features", "driver", "devices")
        }
        return run

    def placed(self) -> list[tuple[str, str, str]]:
        """Node, uid and version of each scheduled driver pod. While one DaemonSet takes over a node from another, two pods can have the same node."""
        return [
            (pod["spec"]["nodeName"], pod["metadata"]["uid"], pod["metadata"]["labels"][LABEL])
            for pod in self.pods("nvidia-driver").items
            if "nodeName" in pod["spec"]
        ]

    def versions(self) -> list[tuple[str, str]]:
        """Node and version of each scheduled driver pod, in order."""
        return sorted((node, version) for node, _uid, version in self.placed())

    def drivers(self) -> dict[str, tuple[str, str]]:
        """Uid and version of the driver pod by node; each node has one."""
        placed = self.placed()
        drivers = {node: (uid, version) for node, uid, version in placed}
        assert len(placed) == len(drivers), f"two drivers on one node: {placed}"
        return drivers

    def daemon_sets(self, version: str) -> list[str]:
        resource = self.client.resource("apps/v1", "DaemonSet")
        return [
            one["metadata"]["name"]
            for one in self.client.list(resource, AGENTS, label_selector=f"{LABEL}={version}").items
        ]

    def changes_nothing(self, **variables: t.Any) -> bool:
        audit = AuditLog(self.sandbox.audit_log)
        again = self.apply("driver", **variables)
        assert [str(request) for request in audit.our_writes()] == []
        return again.changed() == 0


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Drivers:
    cluster = Drivers(make_sandbox(FLEET), hwaccel_wait_timeout=240)
    cluster.apply()
    return cluster


def test_pools_that_are_declared_later_restart_no_driver(cluster: Drivers) -> None:
    before = cluster.drivers()
    assert set(before) == {"gpu-0", "gpu-1", "gpu-2"}
    run = cluster.apply("driver", hwaccel_pools=POOLS)
    assert f"driver {OLD} stays on 3 nodes (gpu-0, gpu-1, gpu-2)" in run.stdout
    assert cluster.drivers() == before
    assert cluster.changes_nothing(hwaccel_pools=POOLS)
    assert cluster.drivers() == before


def test_another_version_restarts_no_driver(cluster: Drivers) -> None:
    before = cluster.drivers()
    run = cluster.apply("driver", hwaccel_pools=POOLS, driver_version=NEW)
    assert f"set the label {LABEL}={NEW}" in run.stdout
    assert cluster.drivers() == before
    assert cluster.changes_nothing(hwaccel_pools=POOLS, driver_version=NEW)
    assert cluster.drivers() == before


def test_a_labeled_node_and_a_node_with_a_new_kernel_get_the_new_version(cluster: Drivers) -> None:
    before = cluster.drivers()
    cluster.client.patch(cluster.client.resource("v1", "Node"), "gpu-0", "", {"metadata": {"labels": {LABEL: NEW}}})
    cluster.sandbox.set_fleet(FLEET | {"pools": [*FLEET["pools"], LATE]})
    until(
        lambda: cluster.versions() == [("gpu-0", NEW), ("gpu-1", OLD), ("gpu-2", OLD), ("late-0", NEW)],
        "gpu-0 and late-0 to get the new version",
    )
    cluster.apply(hwaccel_pools=POOLS, driver_version=NEW)
    after = cluster.drivers()
    assert (after["gpu-1"], after["gpu-2"]) == (before["gpu-1"], before["gpu-2"])
    assert after["gpu-0"] != before["gpu-0"]


def test_the_old_version_is_pruned_with_its_last_node(cluster: Drivers) -> None:
    assert cluster.daemon_sets(OLD)
    cluster.sandbox.set_fleet(FLEET | {"pools": [LATE]})
    until(lambda: cluster.versions() == [("late-0", NEW)], "the pods of removed nodes to be deleted")
    before = cluster.drivers()
    run = cluster.apply("driver", hwaccel_pools=POOLS, driver_version=NEW)
    assert f"driver {OLD} stays" not in run.stdout
    assert cluster.daemon_sets(OLD) == []
    assert cluster.drivers() == before
