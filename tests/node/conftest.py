# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the tests on real nodes: make test-node runs them in namespaces of their own.

rig       machines: rig.machine("name")
cluster   a control plane without simulated nodes, which real nodes can join: cluster.join("name")
node      one real node with two GPUs
enabled   site has run twice, on that node and on nineteen simulated ones
torn_down teardown has run there; its tests are the last
take      take("name"): a pod on the real node that requests a GPU
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import pathlib
import platform
import shutil
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import WHOLE
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.ending import interrupted_by_sigterm
from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs
from ansible_collections.hwaccel.gpu.tests.node.rig import images, nvidia_images, teardown
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import POD, Cluster, Rig
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import MEMORY_MIB, PRODUCT, KubernetesNode
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

REAL, NAMESPACE = "real-1", "hwaccel-gpu"
#: Driver images for operating system and kernel of the machines.
DRIVERS = nvidia_images.driver_images(platform.release(), "debian", "12")
GPU = {"product": PRODUCT.replace(" ", "-"), "count": 2, "memory_mib": MEMORY_MIB}
#: Labels of nodes with two and eight GPUs, for the selectors of the declared pools.
TWO, EIGHT = {"gpus": "two"}, {"gpus": "eight"}
FLEET: dict[str, t.Any] = {
    "time_scale": 0.02,
    "pools": [
        {"name": "sim", "count": 15, "gpu": {**GPU, "count": 8}, "labels": EIGHT},
        {"name": "cpu", "count": 3},
        {"name": "twin", "count": 1, "gpu": GPU, "labels": TWO},
    ],
}
POOLS = [
    {"name": "real", "selector": "gpus=two", "gpu": {"product": GPU["product"], "count": 2}},
    {"name": "sim", "selector": "gpus=eight", "gpu": {"product": GPU["product"], "count": 8}},
]
#: Alerts that wait for minutes by default, and here for a second.
AT_ONCE = ("GpuExporterDown", "GpuMetricsAbsent", "GpuMissing", "GpuNotAllocatable")
Taken = c.Callable[[str], None]


def pytest_sessionstart() -> None:
    interrupted_by_sigterm()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of Node Feature Discovery run first, because they remove labels, without which all other pods would leave the node.

    Tests of the teardown run last.
    """

    def order(item: pytest.Item) -> int:
        if "torn_down" in getattr(item, "fixturenames", ()):
            return 2
        return 0 if item.path.name == "test_feature_discovery.py" else 1

    items.sort(key=order)


@pytest.fixture(scope="session")
def rig() -> c.Iterator[Rig]:
    if reason := unmet_precondition():
        pytest.skip(reason)
    with contextlib.closing(Rig(say)) as rig:
        yield rig


@pytest.fixture(scope="session")
def components() -> programs.Components:
    try:
        return programs.ensure_components(say)
    except programs.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def image_folder(rig: Rig, components: programs.Components) -> pathlib.Path:
    busybox = shutil.which("busybox")
    assert busybox, "the rig requires busybox"
    return images.ensure_images(components, pathlib.Path(busybox), say, DRIVERS).parent


@pytest.fixture(scope="session")
def cluster(rig: Rig, components: programs.Components, image_folder: pathlib.Path) -> Cluster:
    return rig.cluster({"pools": []}, components, image_folder)


@pytest.fixture(scope="session")
def node(cluster: Cluster) -> KubernetesNode:
    return cluster.join(REAL, gpus=2, labels=TWO)


@dataclasses.dataclass(frozen=True)
class Enabled:
    """clusters: the inventory. first, second: runs of site."""

    clusters: site.Clusters
    first: site.Run
    second: site.Run


@pytest.fixture(scope="session")
def bare(cluster: Cluster, node: KubernetesNode) -> teardown.Traces:
    return teardown.traces(cluster, node)


@pytest.fixture(scope="session")
def discovered(cluster: Cluster, bare: teardown.Traces) -> site.Run:
    """A run before simulated nodes exist, so that every program of Node Feature Discovery is real."""
    return site.playbook(
        "site", {"rig": variables(cluster) | {"hwaccel_stages": "feature_discovery", "hwaccel_pools": []}}
    )


@pytest.fixture(scope="session")
def enabled(cluster: Cluster, discovered: site.Run) -> Enabled:
    cluster.sandbox.set_fleet(FLEET)
    clusters = {"rig": variables(cluster)}
    return Enabled(clusters, site.playbook("site", clusters), site.playbook("site", clusters))


@pytest.fixture
def take(cluster: Cluster, enabled: Enabled) -> c.Iterator[Taken]:
    """take(name) creates a pod for the node that requests a GPU and keeps running until the end of the test."""
    names: list[str] = []

    def create(name: str) -> None:
        container = {
            "name": "main",
            "image": images.BUSYBOX,
            "command": ["sleep", "1000000"],
            "resources": {"limits": {WHOLE: 1}},
        }
        spec = {
            "nodeSelector": {"kubernetes.io/hostname": REAL},
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "tolerations": [{"operator": "Exists"}],
        }
        cluster.client.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}, POD
        )
        names.append(name)

    yield create
    for name in names:
        cluster.client.delete(POD, name, "default")
    cluster.wait(
        "the pods are deleted",
        lambda: (
            not any(pod["metadata"]["name"] in names for pod in cluster.client.list(POD, namespace="default").items)
        ),
    )


@pytest.fixture(scope="session")
def torn_down(cluster: Cluster, node: KubernetesNode, bare: teardown.Traces, enabled: Enabled) -> teardown.Teardown:
    return teardown.tear_down(cluster, node, bare, enabled.clusters)


def variables(cluster: Cluster) -> dict[str, t.Any]:
    """Inventory variables with short intervals, and with the tags of driver images for a system for which NVIDIA publishes none."""
    builds = [reference.rpartition(":")[2] for reference in DRIVERS]
    return site.cluster(
        cluster.sandbox.kubeconfig,
        hwaccel_stages=site.ALL,
        hwaccel_pools=POOLS,
        hwaccel_wait_timeout=600,
        gpu_validation_schedule_timeout=240,
        feature_discovery_sleep_interval="1s",
        driver_build_images=builds,
        monitoring_scrape_interval="2s",
        monitoring_alerts={name: {"for": "1s"} for name in AT_ONCE},
    )
