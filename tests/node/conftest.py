# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the tests on real nodes: make test-node runs them in namespaces of their own.

rig       machines: rig.machine("name")
cluster   a control plane without simulated nodes, and real ones that join it: cluster.join("name")
node      one real node without a GPU yet
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import pathlib
import shutil
import sys

import pytest

from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs
from ansible_collections.hwaccel.gpu.tests.node.rig import images
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import Cluster, Rig, lacking
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode


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
    return images.ensure_images(components, pathlib.Path(busybox), say).parent


@pytest.fixture(scope="session")
def cluster(rig: Rig, components: programs.Components, image_folder: pathlib.Path) -> Cluster:
    return rig.cluster({"pools": []}, components, image_folder)


@pytest.fixture(scope="session")
def node(cluster: Cluster) -> KubernetesNode:
    return cluster.join("real-1")
