# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change reaches every healthy node of a small fleet in which one has failed, and Kubernetes' DaemonSet controller is the one that brings it."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import AGENTS, GPU, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

#: Its driver never loads: validator, plugin and GPU feature discovery are never ready there. A tenth of three nodes may fail.
BROKEN = "gpu-2"
FLEET: dict[str, t.Any] = {
    "time_scale": 0.02,
    "pools": [
        {
            "name": "gpu",
            "count": 3,
            "kernel": "6.8.0-134-generic",
            "gpu": GPU,
            "nodes": {BROKEN: {"faults": ["driver_load_failure"]}},
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


def registries(client: Client, app: str) -> dict[str, str]:
    """Where the image of the app's pod is from, by node. Of pods that are not on their way out."""
    found = [
        pod
        for pod in client.list(client.resource("v1", "Pod"), AGENTS, label_selector=f"app={app}").items
        if "deletionTimestamp" not in pod["metadata"]
    ]
    return {pod["spec"]["nodeName"]: pod["spec"]["containers"][0]["image"].partition("/")[0] for pod in found}


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Sandbox:
    """Whose healthy nodes have all that the roles bring."""
    sandbox: Sandbox = make_sandbox(FLEET)
    run = site.playbook("site", {"one": site.cluster(sandbox.kubeconfig, hwaccel_wait_timeout=240)})
    assert run.summary["one"]["failed_nodes"] == [BROKEN], run.stdout[-6000:]
    return sandbox


def test_a_failed_node_keeps_no_change_from_the_others(cluster: Sandbox) -> None:
    client = connect({"kubeconfig": cluster.kubeconfig})
    old = {app: registries(client, app) for app in UPDATED}
    assert all(found.keys() >= {"gpu-0", "gpu-1"} and MIRROR not in found.values() for found in old.values()), old
    after = site.playbook(
        "site", {"one": site.cluster(cluster.kubeconfig, hwaccel_wait_timeout=240, hwaccel_image_registry=MIRROR)}
    )
    assert after.summary["one"]["failed_nodes"] == [BROKEN], after.stdout[-6000:]
    for app in UPDATED:
        found = registries(client, app)
        assert (found["gpu-0"], found["gpu-1"]) == (MIRROR, MIRROR), (app, found)
    # The driver is not Kubernetes' to replace.
    assert MIRROR not in registries(client, "nvidia-driver").values()


def test_a_validator_that_is_replaced_before_the_toolkit_runs_keeps_no_node(cluster: Sandbox) -> None:
    """It takes its gate with it, and no other starts before the toolkit has run: neither may wait for the other. Here the toolkit's image comes late."""
    client = connect({"kubeconfig": cluster.kubeconfig})
    toolkit, validator = (
        Agent(client, app) for app in ("nvidia-container-toolkit-daemonset", "nvidia-operator-validator")
    )
    until(lambda: validator.ready, "the validator")
    cluster.add_fault("image_pull_failure", node="gpu-1", image="container-toolkit")
    late = {"name": "nvidia-container-toolkit-ctr", "image": "late.example.com/nvidia/k8s/container-toolkit:v1.20.0"}
    patch, patch_type = (
        {"spec": {"template": {"spec": {"containers": [late]}}}},
        "application/strategic-merge-patch+json",
    )
    client.patch(
        client.resource("apps/v1", "DaemonSet"), "nvidia-container-toolkit", AGENTS, patch, patch_type=patch_type
    )
    until(
        lambda: toolkit.waits_for in ("ErrImagePull", "ImagePullBackOff"),
        "the toolkit to miss its image",
        seen=lambda: toolkit.pods,
    )
    old = validator.pods[0]["metadata"]
    client.delete(client.resource("v1", "Pod"), old["name"], AGENTS)
    until(lambda: all(pod["metadata"]["uid"] != old["uid"] for pod in validator.pods), "the validator to be replaced")
    cluster.clear_faults()
    until(lambda: validator.ready, "the new validator", seen=lambda: validator.pods)


@dataclasses.dataclass(frozen=True)
class Agent:
    """What one DaemonSet has on gpu-1."""

    client: Client
    app: str

    @property
    def pods(self) -> list[dict[str, t.Any]]:
        return self.client.list(
            self.client.resource("v1", "Pod"),
            AGENTS,
            label_selector=f"app={self.app}",
            field_selector="spec.nodeName=gpu-1",
        ).items

    @property
    def containers(self) -> list[dict[str, t.Any]]:
        return [status for pod in self.pods for status in pod["status"].get("containerStatuses", [])]

    @property
    def ready(self) -> bool:
        return bool(self.containers) and all(status["ready"] for status in self.containers)

    @property
    def waits_for(self) -> str:
        return "".join(status["state"].get("waiting", {}).get("reason", "") for status in self.containers)
