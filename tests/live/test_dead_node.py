# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A teardown while a node is away: everything else goes, its pods are named, and they go when it is back.

The sandbox keeps all its machines running. What an API server sees of a dead one is made here: its Node is not ready, and its pods do not end
(a finalizer keeps them; on a real node it is the kubelet's word that is missing).

Runtime: about two minutes on two cores.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import until
from ansible_collections.hwaccel.gpu.tests.live.support.site import cluster, playbook

GPU = {"product": "NVIDIA-L4", "count": 1, "memory_mib": 23034}
FLEET = {"time_scale": 0.01, "pools": [{"name": "gpu", "count": 2, "kernel": "6.8.0-134-generic", "gpu": GPU}]}
DEAD = "gpu-1"
SPACES = ("hwaccel-gpu", "hwaccel-gpu-system")


def pods(client: Client) -> list[dict[str, t.Any]]:
    found = [item for space in SPACES for item in client.list(client.resource("v1", "Pod"), space).items]
    return [item for item in found if item["spec"].get("nodeName") == DEAD]


def hold(client: Client, finalizers: list[str]) -> None:
    for item in pods(client):
        metadata = item["metadata"]
        client.patch(
            client.resource("v1", "Pod"),
            metadata["name"],
            metadata["namespace"],
            {"metadata": {"finalizers": finalizers}},
        )


def set_ready(client: Client, status: str) -> None:
    node = client.get(client.resource("v1", "Node"), DEAD)
    conditions = [
        entry | {"status": status} if entry["type"] == "Ready" else entry for entry in node["status"]["conditions"]
    ]
    client.patch(client.resource("v1", "Node"), DEAD, "", {"status": {"conditions": conditions}}, subresource="status")


def left(client: Client) -> list[str]:
    """Whatever of the collection is still there."""
    names = [item["metadata"]["name"] for item in client.list(client.resource("v1", "Namespace")).items]
    kinds = [
        item["metadata"]["name"]
        for item in client.list(client.resource_by_group("apiextensions.k8s.io", "CustomResourceDefinition")).items
    ]
    return [name for name in names if name.startswith("hwaccel-gpu")] + [
        name for name in kinds if name.endswith("nfd.k8s-sigs.io")
    ]


def test_a_teardown_does_not_wait_for_a_dead_node(make_sandbox: t.Any) -> None:
    sandbox = make_sandbox(FLEET)
    client = connect({"kubeconfig": sandbox.kubeconfig})
    hosts = {"one": cluster(sandbox.kubeconfig, hwaccel_wait_timeout=240)}
    done = playbook("site", hosts)
    assert done.rc == 0, done.stdout[-6000:]
    assert pods(client)
    hold(client, ["example.com/dead"])
    set_ready(client, "Unknown")

    gone = playbook("teardown", hosts, warnings=[f"is deleted and waits for pod .* on node {DEAD}.*: not ready"])
    assert gone.rc == 0, gone.stdout[-6000:]
    assert any(
        "DaemonSet hwaccel-gpu/nvidia-validator is deleted and waits for pod" in warning for warning in gone.warnings
    )
    node = client.get(client.resource("v1", "Node"), DEAD)
    assert not [taint for taint in node["spec"].get("taints", []) if taint["key"].startswith("hwaccel.gpu/")]

    # What its pods owned held a Namespace and a CRD, which are kept and told as long as they hold anything.
    set_ready(client, "True")
    hold(client, [])
    until(lambda: not pods(client), "the pods of the node that is back to go", seen=lambda: pods(client))
    again = playbook("teardown", hosts)
    assert again.rc == 0, again.stdout[-6000:]
    until(lambda: not left(client), "what was deleted to go", seen=lambda: left(client))
    sandbox.close()
