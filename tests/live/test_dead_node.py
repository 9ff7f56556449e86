# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A teardown while a node is unreachable: everything else is deleted, the node's pods are reported, and they are deleted when it is back.

All machines of the sandbox run. The test itself produces what an API server observes of a dead machine: its Node is not ready, and its pods do
not end (because of a finalizer; on a real node because the kubelet does not confirm their end).

Runtime: about two minutes on two cores.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.tests.live.support.clusters import AGENTS, CONTROLLERS, Cluster, until

GPU = {"product": "NVIDIA-L4", "count": 1, "memory_mib": 23034}
FLEET = {"time_scale": 0.01, "pools": [{"name": "gpu", "count": 2, "kernel": "6.8.0-134-generic", "gpu": GPU}]}
DEAD = "gpu-1"


def pods(cluster: Cluster) -> list[dict[str, t.Any]]:
    """The collection's pods on the dead node."""
    return [pod for space in (AGENTS, CONTROLLERS) for pod in cluster.pods(node=DEAD, namespace=space).items]


def set_finalizers(cluster: Cluster, finalizers: list[str]) -> None:
    for pod in pods(cluster):
        metadata = pod["metadata"]
        cluster.client.patch(
            cluster.client.resource("v1", "Pod"),
            metadata["name"],
            metadata["namespace"],
            {"metadata": {"finalizers": finalizers}},
        )


def set_ready(cluster: Cluster, status: str) -> None:
    conditions = [
        entry | {"status": status} if entry["type"] == "Ready" else entry
        for entry in cluster.node(DEAD)["status"]["conditions"]
    ]
    cluster.client.patch(
        cluster.client.resource("v1", "Node"), DEAD, "", {"status": {"conditions": conditions}}, subresource="status"
    )


def left(cluster: Cluster) -> list[str]:
    """Namespaces and CustomResourceDefinitions of the collection that still exist."""
    client = cluster.client
    spaces = [item["metadata"]["name"] for item in client.list(client.resource("v1", "Namespace")).items]
    kinds = [
        item["metadata"]["name"]
        for item in client.list(client.resource_by_group("apiextensions.k8s.io", "CustomResourceDefinition")).items
    ]
    return [name for name in spaces if name.startswith("hwaccel-gpu")] + [
        name for name in kinds if name.endswith("nfd.k8s-sigs.io")
    ]


def test_a_teardown_does_not_wait_for_a_dead_node(make_sandbox: t.Any) -> None:
    cluster = Cluster(make_sandbox(FLEET), hwaccel_wait_timeout=240)
    cluster.deploy()
    assert pods(cluster)
    set_finalizers(cluster, ["example.com/dead"])
    set_ready(cluster, "Unknown")

    first = cluster.run("teardown", warnings=[f"is deleted and waits for pod .* on node {DEAD}.*: not ready"])
    assert first.rc == 0, first.stdout[-6000:]
    assert any(
        "DaemonSet hwaccel-gpu/nvidia-validator is deleted and waits for pod" in warning for warning in first.warnings
    )
    assert not [key for key in cluster.taints(DEAD) if key.startswith("hwaccel.gpu/")]

    # Objects of the pods kept a Namespace and a CustomResourceDefinition, which are reported until they contain nothing.
    set_ready(cluster, "True")
    set_finalizers(cluster, [])
    until(lambda: not pods(cluster), "the pods of the recovered node to be deleted", seen=lambda: pods(cluster))
    again = cluster.run("teardown")
    assert again.rc == 0, again.stdout[-6000:]
    until(lambda: not left(cluster), "the deletions to complete", seen=lambda: left(cluster))
    cluster.sandbox.close()
