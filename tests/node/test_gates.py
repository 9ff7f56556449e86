# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates of a real node over a reboot, by their files and by what the API says of its pods. The minute before the driver's startup probe is real too."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.node.conftest import REAL, Enabled
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode

RESOURCE = "nvidia.com/gpu"
FOLDER = "/run/nvidia/validations"
FAULT = "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"
#: In the order in which they open.
FILES = ("driver-ready", "toolkit-ready", "cuda-ready")


def files(node: KubernetesNode) -> set[str]:
    return set(node.machine.sh(f"ls -A {FOLDER} 2>/dev/null || :").split())


def pod_of(cluster: Cluster, app: str) -> dict[str, t.Any]:
    found = cluster.client.list(POD, label_selector=f"app={app}", field_selector=f"spec.nodeName={REAL}").items
    return max(found, key=lambda pod: pod["metadata"]["creationTimestamp"])


def step(cluster: Cluster, app: str) -> str:
    """The init container that a pod is at since the node's boot, "" past the last."""
    for one in pod_of(cluster, app)["status"].get("initContainerStatuses", ()):
        if one["state"].get("terminated", {}).get("exitCode") != 0:
            return str(one["name"])
    return ""


def ready(cluster: Cluster, app: str) -> bool:
    conditions = pod_of(cluster, app)["status"]["conditions"]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def failed_since(cluster: Cluster, starts: int) -> bool:
    driver = pod_of(cluster, "nvidia-driver")["status"]["containerStatuses"][0]
    ended = driver["state"].get("terminated") or driver.get("lastState", {}).get("terminated") or {}
    return driver["restartCount"] > starts and ended.get("exitCode") == 1


def allocatable(cluster: Cluster) -> str:
    return str(cluster.client.get(NODE, REAL)["status"]["allocatable"].get(RESOURCE))


@pytest.mark.slow
def test_a_reboot_closes_all_gates_and_a_driver_that_fails_keeps_them_shut(cluster: Cluster, node: KubernetesNode, enabled: Enabled) -> None:
    assert set(FILES) <= files(node)
    starts = pod_of(cluster, "nvidia-driver")["status"]["containerStatuses"][0]["restartCount"]
    node.set_gpus(2, {"load": FAULT})
    node.machine.reboot()
    cluster.wait("the driver has failed", lambda: failed_since(cluster, starts + 1), 180)
    assert not files(node) & {*FILES, ".driver-ctr-ready"}
    cluster.wait("the toolkit waits for the driver", lambda: step(cluster, "nvidia-container-toolkit-daemonset") == "driver-validation")
    # Without the toolkit there is no runtime for the others, so of their containers the API knows what was before the boot.
    assert not ready(cluster, "nvidia-operator-validator")
    assert not ready(cluster, "nvidia-device-plugin-daemonset")
    assert allocatable(cluster) == "0"
    name = pod_of(cluster, "nvidia-driver")["metadata"]
    cluster.wait("its log says why", lambda: FAULT in cluster.client.logs(name["namespace"], name["name"], "nvidia-driver-ctr"))

    node.set_gpus(2)
    cluster.wait("GPUs can be allocated again", lambda: allocatable(cluster) == "2", 420)
    times = [float(node.machine.sh(f"stat -c %.Y {FOLDER}/{file}")) for file in FILES]
    assert times == sorted(times)
    boot = node.machine.read("/proc/sys/kernel/random/boot_id").strip()
    assert all(f"BOOT_ID={boot}" in node.machine.read(f"{FOLDER}/{file}").splitlines() for file in FILES)


@pytest.mark.slow
def test_a_driver_that_was_killed_closes_the_gate_and_opens_it_again(cluster: Cluster, node: KubernetesNode, enabled: Enabled) -> None:
    """Its modules stay loaded, and the plugin goes on: nobody's GPU is taken away."""
    plugin = pod_of(cluster, "nvidia-device-plugin-daemonset")["status"]["containerStatuses"][0]["containerID"]
    node.machine.sh("kill -KILL $(pidof -s nvidia-driver)")
    cluster.wait("the gate is closed", lambda: "cuda-ready" not in files(node), 90)
    cluster.wait("it is open again", lambda: "cuda-ready" in files(node), 240)
    assert allocatable(cluster) == "2"
    assert pod_of(cluster, "nvidia-device-plugin-daemonset")["status"]["containerStatuses"][0]["containerID"] == plugin
