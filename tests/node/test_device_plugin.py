# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device plugin behind the real kubelet: GPUs taken and waited for, a sick one, a plugin that is gone, a kubelet that starts anew.

The plugin is a stand-in, its interface, its manifest and the kubelet are not.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import WHOLE
from ansible_collections.hwaccel.gpu.tests.node.conftest import REAL, Enabled, Taken
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode

APP = "nvidia-device-plugin-daemonset"


def switch(cluster: Cluster, value: str | None) -> None:
    """NVIDIA's own, which keeps the plugin away from a node."""
    cluster.client.patch(NODE, REAL, "", {"metadata": {"labels": {"nvidia.com/gpu.deploy.device-plugin": value}}})


def status(cluster: Cluster, name: str) -> dict[str, t.Any]:
    return dict(cluster.client.get(POD, name, "default")["status"])


def running(cluster: Cluster, name: str) -> bool:
    return status(cluster, name).get("phase") == "Running"


def registrations(node: KubernetesNode, uid: str) -> int:
    """By the log of the plugin's pod, on the machine: a kubelet that starts does not show it. How long its GPUs are away may be too short to be seen."""
    return int(node.machine.sh(f"cat /var/log/pods/*_{uid}/*/*.log | grep -c 'Registered device plugin' || :"))


def test_two_pods_have_one_gpu_each_and_a_third_waits(cluster: Cluster, node: KubernetesNode, take: Taken) -> None:
    for name in ("first", "second"):
        take(name)
        cluster.wait(f"{name} runs", lambda name=name: running(cluster, name))
    take("third")

    def why() -> str:
        return " ".join(condition.get("message", "") for condition in status(cluster, "third").get("conditions", ()))

    cluster.wait("the scheduler has said why", lambda: f"Insufficient {WHOLE}" in why())
    assert status(cluster, "third")["phase"] == "Pending"


def test_the_exporter_names_the_pod_that_has_a_gpu(cluster: Cluster, node: KubernetesNode, take: Taken) -> None:
    take("user")
    cluster.wait("it runs", lambda: running(cluster, "user"))
    address = cluster.pod(REAL, "nvidia-dcgm-exporter")["status"]["podIP"]
    text = node.machine.sh(f"busybox wget -qO- http://{address}:9400/metrics")
    temperatures = [line for line in text.splitlines() if line.startswith("DCGM_FI_DEV_GPU_TEMP{")]
    assert len(temperatures) == 2
    assert sum('namespace="default"' in line and 'pod="user"' in line for line in temperatures) == 1


def test_a_sick_gpu_is_offered_to_nobody_until_the_plugin_starts_anew(
    cluster: Cluster, node: KubernetesNode, enabled: Enabled
) -> None:
    node.set_gpus(2, {"xid": {"1": 48}})
    cluster.wait("one GPU is left", lambda: cluster.gpus(REAL) == ("2", "1"))
    node.set_gpus(2)
    cluster.replace_pod(REAL, APP)
    cluster.wait("both are back", lambda: cluster.gpus(REAL) == ("2", "2"))


def test_a_kubelet_that_starts_anew_is_registered_with_anew(
    cluster: Cluster, node: KubernetesNode, take: Taken
) -> None:
    take("stays")
    cluster.wait("it runs", lambda: running(cluster, "stays"))
    before = cluster.pod(REAL, APP)["metadata"]["uid"]
    known = registrations(node, before)
    node.machine.sh("systemctl restart kubelet")
    cluster.wait("the plugin has registered anew", lambda: registrations(node, before) > known)
    cluster.wait("both GPUs are there", lambda: cluster.gpus(REAL) == ("2", "2"))
    take("next")
    cluster.wait("a pod has the second one", lambda: running(cluster, "next"))
    assert cluster.pod(REAL, APP)["metadata"]["uid"] == before
    assert running(cluster, "stays")


def test_without_a_plugin_allocatable_tells_at_once_and_capacity_does_not(
    cluster: Cluster, node: KubernetesNode, enabled: Enabled
) -> None:
    switch(cluster, "false")
    cluster.wait("none can be allocated", lambda: cluster.gpus(REAL) == ("2", "0"))
    switch(cluster, None)
    cluster.wait("both are back", lambda: cluster.gpus(REAL) == ("2", "2"))
