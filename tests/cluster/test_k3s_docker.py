# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server and an agent of K3s on Docker: Debian's, with the cri-dockerd that K3s contains, on the stand-in.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import json

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_docker import WITH_NVIDIA, DockerRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import FOLDER, K3sSite
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = pytest.mark.slow
_RUNTIME_CLASS = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False)
_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)


@pytest.fixture(scope="module")
def site() -> c.Iterator[K3sSite]:
    try:
        rig = DockerRig(say, WITH_NVIDIA)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with contextlib.closing(rig):
        site = K3sSite(rig, ("s1",), ("a1",), shares=rig.shares)
        site.variables["cluster_k3s_engine"] = "docker"
        yield site


def pods_on(machine: Machine) -> list[str]:
    """Containers of Docker that belong to pods."""
    return machine.sh("docker ps --all --filter=label=io.kubernetes.docker.type --format '{{.Names}}'").split()


def test_without_docker_nothing_is_changed(site: K3sSite) -> None:
    site.machines["s1"].sh("systemctl stop docker.socket docker")
    run = site.play()
    site.machines["s1"].sh("systemctl start docker && docker start mine")
    assert run.rc != 0 and run.changed() == 0
    assert "Docker does not run (cluster_k3s_engine): unit docker is not active" in json.dumps(run.summary)


def test_machines_become_nodes_whose_containers_are_docker_s(site: K3sSite) -> None:
    predicted = site.done("--check").summary["one"]["changes"]
    run = site.done()
    assert run.summary["one"]["changes"] == predicted
    nodes = {one["metadata"]["name"]: one["status"]["nodeInfo"] for one in site.client().list(NODE).items}
    assert {name: info["containerRuntimeVersion"].partition("://")[0] for name, info in nodes.items()} == {
        "s1": "docker",
        "a1": "docker",
    }
    assert site.done().changed() == 0


def test_a_pod_that_names_nvidia_s_runtime_starts_with_that_of_docker(site: K3sSite) -> None:
    classes = {one["metadata"]["name"]: one["handler"] for one in site.client().list(_RUNTIME_CLASS).items}
    assert classes == {"nvidia": "docker"}
    site.start_pod("a1", runtimeClassName="nvidia")
    name = next(one for one in pods_on(site.machines["a1"]) if one.startswith("k8s_main_stays-a1"))
    inspected = json.loads(site.machines["a1"].sh(f"docker inspect {name}"))[0]
    assert inspected["HostConfig"]["Runtime"] == "nvidia"
    assert "RUNTIME=nvidia" in site.machines["a1"].sh(f"tr '\\0' '\\n' </proc/{inspected['State']['Pid']}/environ")


def test_containers_outlive_a_restart_and_a_node_keeps_its_engine(site: K3sSite) -> None:
    before = site.container("a1")
    site.machines["a1"].sh("systemctl restart k3s-agent")
    site.variables["cluster_k3s_engine"] = "containerd"
    refused = site.play()
    site.variables["cluster_k3s_engine"] = "docker"
    assert refused.rc != 0 and refused.changed() == 0
    assert "the node runs on Docker, and containerd is set" in json.dumps(refused.summary)
    assert site.done().changed() == 0
    assert before and site.container("a1") == before


def test_teardown_removes_containers_of_pods_and_no_others(site: K3sSite) -> None:
    uid = site.client().get(_NAMESPACE, "kube-system")["metadata"]["uid"]
    site.done("-e", "cluster_k3s_entry=teardown", "-e", f"hwaccel_confirm={uid}")
    for machine in site.machines.values():
        assert pods_on(machine) == []
        assert machine.sh("docker ps --format '{{.Names}}'").split() == ["mine"]
        left = f"ls -d /etc/rancher /usr/local/bin/k3s {FOLDER} /var/lib/rancher/k3s /run/k3s 2>/dev/null || :"
        assert machine.sh(left) == ""
