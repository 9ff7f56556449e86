# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real node in the sandbox's cluster: its kubelet runs pods, and the API server can connect to it."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode


def test_a_pod_runs_and_its_log_is_read_from_the_node(cluster: Cluster, node: KubernetesNode) -> None:
    container = {"name": "main", "image": BUSYBOX, "command": ["sh", "-c", "echo from $HOSTNAME"]}
    spec = {"restartPolicy": "Never", "nodeName": node.machine.name, "containers": [container]}
    cluster.client.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hello", "namespace": "default"}, "spec": spec}, POD
    )
    cluster.wait(
        "the pod has run", lambda: cluster.client.get(POD, "hello", "default")["status"].get("phase") == "Succeeded"
    )
    log = cluster.client.logs("default", "hello", "main")
    cluster.client.delete(POD, "hello", "default")
    assert log.startswith("from hello\n")
    info = cluster.client.get(NODE, node.machine.name)["status"]["nodeInfo"]
    assert (info["kubeletVersion"], info["containerRuntimeVersion"].partition("://")[0]) == ("v1.36.4", "containerd")
