# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From machines with Docker and a driver to a GPU on which a pod has computed, by site, on the stand-in for K3s.

The role node_runtime makes NVIDIA's runtime, the real one, the default of Docker before K3s starts there first.
"""

from __future__ import annotations

import contextlib
import json
import pathlib

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_docker import DAEMON, DockerRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_gpus import driven_site
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = pytest.mark.slow


def test_site_gives_gpus_to_pods_on_docker(tmp_path: pathlib.Path) -> None:
    if reason := unmet_precondition():
        pytest.skip(reason)
    try:
        rig = DockerRig(say, DAEMON)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with contextlib.closing(rig):
        site = driven_site(rig, tmp_path, ("s1",), ("a1",), shares=rig.shares)
        site.of_machines["node_runtime_default_runtime"] = True
        site.variables["cluster_k3s_engine"] = "docker"
        run = site.play("site")
        assert run.rc == 0, run.stdout[-8000:]
        daemon = json.loads(site.machines["a1"].read("/etc/docker/daemon.json"))
        assert daemon["default-runtime"] == "nvidia" and daemon["exec-opts"] == DAEMON["exec-opts"]
        node = site.client().get(NODE, "a1")
        assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("docker://")
        assert gpus_of(node) == 2 and names.PROOF in node["metadata"]["annotations"]
        tried = site.play("validate", "-e", "gpu_validation_all_gpus=true")
        assert tried.rc == 0 and "allocation: 1 of 1 passed" in tried.stdout, tried.stdout[-6000:]
        second = site.play("site")
        assert (second.rc, second.changed()) == (0, 0), second.stdout[-6000:]
