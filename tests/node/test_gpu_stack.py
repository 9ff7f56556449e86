# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our manifests on a real node whose GPUs and driver are stand-ins: the files of the gates, and the environment of a pod that has a GPU."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.tests.node.conftest import NAMESPACE, REAL, Enabled
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import PRODUCT, KubernetesNode
from ansible_collections.hwaccel.gpu.tests.node.rig.nvidia_images import defaults

RESOURCE = "nvidia.com/gpu"


def test_every_gate_has_a_file_of_this_boot(node: KubernetesNode, enabled: Enabled) -> None:
    boot = node.machine.read("/proc/sys/kernel/random/boot_id").strip()
    folder = "/run/nvidia/validations"
    for file in ("driver-ready", "toolkit-ready", "cuda-ready"):
        assert f"BOOT_ID={boot}" in node.machine.read(f"{folder}/{file}").splitlines(), file
    assert "IS_HOST_DRIVER=false" in node.machine.read(f"{folder}/driver-ready")
    assert "GPUS=2" in node.machine.read(f"{folder}/cuda-ready").splitlines()


def test_a_pod_gets_one_gpu(cluster: Cluster, enabled: Enabled) -> None:
    script = "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader && vectorAdd && ls -d /dev/nvidia[0-9]*"
    image = defaults("gpu_validation")["gpu_validation_image"]
    container = {
        "name": "main",
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"limits": {RESOURCE: 1}},
    }
    # The pod bypasses the scheduler, which this test does not need. The kubelet allocates a GPU nevertheless.
    spec: dict[str, t.Any] = {
        "restartPolicy": "Never",
        "runtimeClassName": "nvidia",
        "nodeName": REAL,
        "containers": [container],
    }
    cluster.client.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user", "namespace": "default"}, "spec": spec}, POD
    )
    phase = cluster.wait("the pod has ended", lambda: _ended(cluster, "user"))
    log = cluster.client.logs("default", "user", "main")
    cluster.client.delete(POD, "user", "default")
    assert (phase, log.splitlines()[0]) == ("Succeeded", f"{PRODUCT}, {defaults('driver')['driver_version']}"), log
    assert "Test PASSED" in log
    assert sum(line in ("/dev/nvidia0", "/dev/nvidia1") for line in log.splitlines()) == 1


def _ended(cluster: Cluster, name: str) -> str:
    phase = str(cluster.client.get(POD, name, "default")["status"].get("phase"))
    return phase if phase in ("Succeeded", "Failed") else ""


def test_the_toolkit_keeps_running_while_containerd_is_restarted(cluster: Cluster, enabled: Enabled) -> None:
    pods = cluster.client.list(
        POD, NAMESPACE, label_selector="app=nvidia-container-toolkit-daemonset", field_selector=f"spec.nodeName={REAL}"
    ).items
    assert [one["restartCount"] for pod in pods for one in pod["status"]["containerStatuses"]] == [0]
