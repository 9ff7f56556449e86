# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the tests on real nodes: make test-node runs them in namespaces of their own.

rig       machines: rig.machine("name")
cluster   a control plane without simulated nodes, and real ones that join it: cluster.join("name")
node      one real node with two GPUs
enabled   site has run on that node and on nineteen simulated ones, twice
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import pathlib
import platform
import shutil
import sys
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs
from ansible_collections.hwaccel.gpu.tests.node.rig import images, nvidia_images
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import Cluster, Rig, lacking
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import MEMORY_MIB, PRODUCT, KubernetesNode

REAL = "real-1"
#: What the machines' operating system and kernel ask for.
DRIVERS = nvidia_images.driver_images(platform.release(), "debian", "12")
GPU = {"product": PRODUCT.replace(" ", "-"), "count": 2, "memory_mib": MEMORY_MIB}
#: Labels of nodes by how many GPUs they have, for the pools that are declared.
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Node Feature Discovery comes first: with the labels that its tests take away for a moment, everything else would leave the node."""
    items.sort(key=lambda item: item.path.name != "test_feature_discovery.py")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@pytest.fixture(scope="session")
def rig() -> c.Iterator[Rig]:
    if reason := lacking():
        pytest.skip(reason)
    with contextlib.closing(Rig(say)) as made:
        yield made


@pytest.fixture(scope="session")
def components() -> programs.Components:
    try:
        return programs.ensure_components(say)
    except programs.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def image_folder(rig: Rig, components: programs.Components) -> pathlib.Path:
    busybox = shutil.which("busybox")
    assert busybox, "it is among what the rig needs"
    return images.ensure_images(components, pathlib.Path(busybox), say, DRIVERS).parent


@pytest.fixture(scope="session")
def cluster(rig: Rig, components: programs.Components, image_folder: pathlib.Path) -> Cluster:
    return rig.cluster({"pools": []}, components, image_folder)


@pytest.fixture(scope="session")
def node(cluster: Cluster) -> KubernetesNode:
    return cluster.join(REAL, gpus=2, labels=TWO)


@dataclasses.dataclass(frozen=True)
class Enabled:
    """variables: of the cluster's inventory host. first, second: runs of site."""

    clusters: site.Clusters
    first: site.Run
    second: site.Run


@pytest.fixture(scope="session")
def discovered(cluster: Cluster, node: KubernetesNode) -> site.Run:
    """Before simulated nodes are there, so that all of Node Feature Discovery is real."""
    return site.playbook("site", {"rig": variables(cluster) | {"hwaccel_stages": "feature_discovery", "hwaccel_pools": []}})


@pytest.fixture(scope="session")
def enabled(cluster: Cluster, discovered: site.Run) -> Enabled:
    cluster.sandbox.set_fleet(FLEET)
    clusters = {"rig": variables(cluster)}
    return Enabled(clusters, site.playbook("site", clusters), site.playbook("site", clusters))


def variables(cluster: Cluster) -> dict[str, t.Any]:
    """As short an interval of NFD's as it takes, and the tag of the driver's image for a system that NVIDIA publishes none for."""
    builds = [reference.rpartition(":")[2] for reference in DRIVERS]
    return site.cluster(
        cluster.sandbox.kubeconfig, hwaccel_stages=site.ALL, hwaccel_pools=POOLS, hwaccel_wait_timeout=180, feature_discovery_sleep_interval="1s",
        driver_build_images=builds,
    )
