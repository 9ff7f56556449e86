# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device plugin with a real kubelet: GPUs in use, pods that wait for one, an unhealthy GPU, a deleted plugin, a restarted kubelet.

The plugin is a stand-in; its interface, its manifest and the kubelet are real.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import WHOLE
from ansible_collections.hwaccel.gpu.tests.node.conftest import REAL, Enabled, Taken
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode

APP = "nvidia-device-plugin-daemonset"


def switch(cluster: Cluster, value: str | None) -> None:
    """Sets the GPU Operator's label, which can exclude a node from the device plugin."""
    cluster.client.patch(NODE, REAL, "", {"metadata": {"labels": {"nvidia.com/gpu.deploy.device-plugin": value}}})


def status(cluster: Cluster, name: str) -> dict[str, t.Any]:
    return dict(cluster.client.get(POD, name, "default")["status"])


def running(cluster: Cluster, name: str) -> bool:
    return status(cluster, name).get("phase") == "Running"


def registrations(node: KubernetesNode, uid: str) -> int:
    """Registrations in the log of the plugin's pod, read on the machine, because a starting kubelet does not serve it.

    The time without GPUs may be too short to be observed.
    """
    return int(node.machine.sh(f"cat /var/log/pods/*_{uid}/*/*.log | grep -c 'Registered device plugin' || :"))


def test_two_pods_have_one_gpu_each_and_a_third_is_pending(cluster: Cluster, node: KubernetesNode, take: Taken) -> None:
    for name in ("first", "second"):
        take(name)
        cluster.wait(f"{name} runs", lambda name=name: running(cluster, name))
    take("third")

    def messages() -> str:
        return " ".join(condition.get("message", "") for condition in status(cluster, "third").get("conditions", ()))

    cluster.wait("the scheduler reports the reason", lambda: f"Insufficient {WHOLE}" in messages())
    assert status(cluster, "third")["phase"] == "Pending"


def test_the_exporter_reports_the_pod_that_has_a_gpu(cluster: Cluster, node: KubernetesNode, take: Taken) -> None:
    take("user")
    cluster.wait("the pod runs", lambda: running(cluster, "user"))
    address = cluster.pod(REAL, "nvidia-dcgm-exporter")["status"]["podIP"]
    text = node.machine.sh(f"busybox wget -qO- http://{address}:9400/metrics")
    temperatures = [line for line in text.splitlines() if line.startswith("DCGM_FI_DEV_GPU_TEMP{")]
    assert len(temperatures) == 2
    assert sum('namespace="default"' in line and 'pod="user"' in line for line in temperatures) == 1


def test_an_unhealthy_gpu_is_not_allocatable_until_the_plugin_is_restarted(
    cluster: Cluster, node: KubernetesNode, enabled: Enabled
) -> None:
    node.set_gpus(2, {"xid": {"1": 48}})
    cluster.wait("one GPU is allocatable", lambda: cluster.gpus(REAL) == ("2", "1"))
    node.set_gpus(2)
    cluster.replace_pod(REAL, APP)
    cluster.wait("both are allocatable", lambda: cluster.gpus(REAL) == ("2", "2"))


def test_the_plugin_registers_again_with_a_restarted_kubelet(
    cluster: Cluster, node: KubernetesNode, take: Taken
) -> None:
    take("stays")
    cluster.wait("the pod runs", lambda: running(cluster, "stays"))
    before = cluster.pod(REAL, APP)["metadata"]["uid"]
    registered = registrations(node, before)
    node.machine.sh("systemctl restart kubelet")
    cluster.wait("the plugin has registered again", lambda: registrations(node, before) > registered)
    cluster.wait("both GPUs are allocatable", lambda: cluster.gpus(REAL) == ("2", "2"))
    take("next")
    cluster.wait("a pod has the second GPU", lambda: running(cluster, "next"))
    assert cluster.pod(REAL, APP)["metadata"]["uid"] == before
    assert running(cluster, "stays")


def test_without_a_plugin_allocatable_changes_at_once_and_capacity_does_not(
    cluster: Cluster, node: KubernetesNode, enabled: Enabled
) -> None:
    switch(cluster, "false")
    cluster.wait("no GPU is allocatable", lambda: cluster.gpus(REAL) == ("2", "0"))
    switch(cluster, None)
    cluster.wait("both are allocatable", lambda: cluster.gpus(REAL) == ("2", "2"))
