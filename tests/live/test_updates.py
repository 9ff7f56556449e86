# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The DaemonSet controller rolls out a change to every healthy node of a small fleet in which one node has failed."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support.clusters import AGENTS, GPU, Cluster, until

#: Its driver never loads, so validator, device plugin and GPU feature discovery are never ready there. Of three nodes, hwaccel_max_failed allows one.
FAULTY = "gpu-2"
FLEET: dict[str, t.Any] = {
    "time_scale": 0.02,
    "pools": [
        {
            "name": "gpu",
            "count": 3,
            "kernel": "6.8.0-134-generic",
            "gpu": GPU,
            "nodes": {FAULTY: {"faults": ["driver_load_failure"]}},
        }
    ],
}
MIRROR = "mirror.example.com"
#: By their label app.
UPDATED = {
    "nfd-worker",
    "nvidia-container-toolkit-daemonset",
    "nvidia-operator-validator",
    "nvidia-device-plugin-daemonset",
    "gpu-feature-discovery",
}


def registries(cluster: Cluster, app: str) -> dict[str, str]:
    """Registries of the images of the app's pods, by node. Pods that are being deleted do not count."""
    pods = [pod for pod in cluster.pods(app).items if "deletionTimestamp" not in pod["metadata"]]
    return {pod["spec"]["nodeName"]: pod["spec"]["containers"][0]["image"].partition("/")[0] for pod in pods}


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    """All stages are deployed on the healthy nodes."""
    cluster = Cluster(make_sandbox(FLEET), hwaccel_wait_timeout=240)
    run = cluster.run("site")
    assert run.summary["one"]["failed_nodes"] == [FAULTY], run.stdout[-6000:]
    return cluster


def test_a_failed_node_does_not_prevent_an_update_of_the_others(cluster: Cluster) -> None:
    before = {app: registries(cluster, app) for app in UPDATED}
    assert all(one.keys() >= {"gpu-0", "gpu-1"} and MIRROR not in one.values() for one in before.values()), before
    run = cluster.run("site", hwaccel_image_registry=MIRROR)
    assert run.summary["one"]["failed_nodes"] == [FAULTY], run.stdout[-6000:]
    for app in UPDATED:
        after = registries(cluster, app)
        assert (after["gpu-0"], after["gpu-1"]) == (MIRROR, MIRROR), (app, after)
    # The DaemonSet of the driver has the update strategy OnDelete, so its pods stay.
    assert MIRROR not in registries(cluster, "nvidia-driver").values()


def test_a_validator_that_is_replaced_before_the_toolkit_runs_does_not_block_the_node(cluster: Cluster) -> None:
    """The gate of the deleted validator closes, and a new validator starts only after the toolkit has run: neither may wait for the other.

    Here the image of the toolkit is available later than the deletion.
    """
    toolkit, validator, node = "nvidia-container-toolkit-daemonset", "nvidia-operator-validator", "gpu-1"
    until(lambda: cluster.runs(validator, node), "the validator")
    cluster.sandbox.add_fault("image_pull_failure", node=node, image="container-toolkit")
    missing = {"name": "nvidia-container-toolkit-ctr", "image": "late.example.com/nvidia/k8s/container-toolkit:v1.20.0"}
    cluster.client.patch(
        cluster.client.resource("apps/v1", "DaemonSet"),
        "nvidia-container-toolkit",
        AGENTS,
        {"spec": {"template": {"spec": {"containers": [missing]}}}},
        patch_type="application/strategic-merge-patch+json",
    )
    until(
        lambda: cluster.waiting_reason(toolkit, node) in ("ErrImagePull", "ImagePullBackOff"),
        "the pull of the toolkit's image to fail",
        seen=lambda: cluster.pods(toolkit, node=node).items,
    )
    old = cluster.pods(validator, node=node).items[0]["metadata"]
    cluster.client.delete(cluster.client.resource("v1", "Pod"), old["name"], AGENTS)
    until(
        lambda: all(pod["metadata"]["uid"] != old["uid"] for pod in cluster.pods(validator, node=node).items),
        "the validator to be replaced",
    )
    cluster.sandbox.clear_faults()
    until(
        lambda: cluster.runs(validator, node),
        "the new validator",
        seen=lambda: cluster.pods(validator, node=node).items,
    )
