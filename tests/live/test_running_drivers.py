# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running drivers outlive what is declared after them: one cluster whose pools are declared late, whose version changes, and whose nodes leave.

Runtime: seven runs of site on one sandbox, six of them of one stage.
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import AGENTS, GPU, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

OLD, NEW = "595.91.07", "580.178.04"
LABEL = "hwaccel.gpu/driver-version"
FLEET: dict[str, t.Any] = {
    "time_scale": 0.01,
    "pools": [{"name": "gpu", "count": 3, "labels": {"pool": "gpu"}, "kernel": "6.8.0-134-generic", "gpu": GPU}],
}
LATE = {"name": "late", "count": 1, "labels": {"pool": "gpu"}, "kernel": "6.8.0-57-generic", "gpu": GPU}
POOLS = [{"name": "training", "selector": "pool=gpu", "gpu": GPU}]


class Cluster:
    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.client: Client = connect({"kubeconfig": sandbox.kubeconfig})

    def site(self, *stages: str, **variables: t.Any) -> site.Run:
        """All that the nodes need where no stage is named; of what becomes of drivers, the stage driver alone decides."""
        asked = {"hwaccel_stages": ", ".join(stages)} if stages else {}
        run = site.playbook(
            "site", {"one": site.cluster(self.sandbox.kubeconfig, hwaccel_wait_timeout=240, **asked, **variables)}
        )
        assert run.rc == 0, run.stdout[-6000:]
        assert {tuple(row["gates"]) for row in run.summary["one"]["pools"]} == {
            ("driver",) if stages else ("features", "driver", "devices")
        }
        return run

    def placed(self) -> list[tuple[str, str, str]]:
        """Node, uid and version of each driver pod that has a node: while one DaemonSet takes a node from another, two may name the same node."""
        found = self.client.list(self.client.resource("v1", "Pod"), AGENTS, label_selector="app=nvidia-driver").items
        return [
            (pod["spec"]["nodeName"], pod["metadata"]["uid"], pod["metadata"]["labels"][LABEL])
            for pod in found
            if "nodeName" in pod["spec"]
        ]

    def versions(self) -> list[tuple[str, str]]:
        """Node and version of each driver pod that has a node, in order."""
        return sorted((node, version) for node, _uid, version in self.placed())

    def drivers(self) -> dict[str, tuple[str, str]]:
        """Uid and version of the driver pod by node; one a node."""
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
        again = self.site("driver", **variables)
        assert [str(request) for request in audit.our_writes()] == []
        return again.changed() == 0


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    found = Cluster(make_sandbox(FLEET))
    found.site()
    return found


def test_pools_that_are_declared_later_restart_no_driver(cluster: Cluster) -> None:
    before = cluster.drivers()
    assert set(before) == {"gpu-0", "gpu-1", "gpu-2"}
    run = cluster.site("driver", hwaccel_pools=POOLS)
    assert f"driver {OLD} stays on 3 nodes (gpu-0, gpu-1, gpu-2)" in run.stdout
    assert cluster.drivers() == before
    assert cluster.changes_nothing(hwaccel_pools=POOLS)
    assert cluster.drivers() == before


def test_another_version_restarts_no_driver(cluster: Cluster) -> None:
    before = cluster.drivers()
    run = cluster.site("driver", hwaccel_pools=POOLS, driver_version=NEW)
    assert f"set the label {LABEL}={NEW}" in run.stdout
    assert cluster.drivers() == before
    assert cluster.changes_nothing(hwaccel_pools=POOLS, driver_version=NEW)
    assert cluster.drivers() == before


def test_a_node_takes_it_by_its_label_and_a_new_kernel_by_itself(cluster: Cluster) -> None:
    before = cluster.drivers()
    cluster.client.patch(cluster.client.resource("v1", "Node"), "gpu-0", "", {"metadata": {"labels": {LABEL: NEW}}})
    cluster.sandbox.set_fleet(FLEET | {"pools": [*FLEET["pools"], LATE]})
    until(
        lambda: cluster.versions() == [("gpu-0", NEW), ("gpu-1", OLD), ("gpu-2", OLD), ("late-0", NEW)],
        "gpu-0 and late-0 to get the new version",
    )
    cluster.site(hwaccel_pools=POOLS, driver_version=NEW)
    after = cluster.drivers()
    assert (after["gpu-1"], after["gpu-2"]) == (before["gpu-1"], before["gpu-2"])
    assert after["gpu-0"] != before["gpu-0"]


def test_the_old_version_goes_with_its_last_node(cluster: Cluster) -> None:
    assert cluster.daemon_sets(OLD)
    cluster.sandbox.set_fleet(FLEET | {"pools": [LATE]})
    until(lambda: cluster.versions() == [("late-0", NEW)], "the pods of nodes that have left to go")
    before = cluster.drivers()
    run = cluster.site("driver", hwaccel_pools=POOLS, driver_version=NEW)
    assert f"driver {OLD} stays" not in run.stdout
    assert cluster.daemon_sets(OLD) == []
    assert cluster.drivers() == before
