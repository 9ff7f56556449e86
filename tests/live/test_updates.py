# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change reaches every healthy node of a small fleet in which one has failed, and Kubernetes' DaemonSet controller is the one that brings it."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import AGENTS, GPU

#: Its driver never loads: validator, plugin and GPU feature discovery are never ready there. A tenth of three nodes may fail.
BROKEN = "gpu-2"
FLEET: dict[str, t.Any] = {
    "time_scale": 0.02,
    "pools": [{"name": "gpu", "count": 3, "kernel": "6.8.0-134-generic", "gpu": GPU, "nodes": {BROKEN: {"faults": ["driver_load_failure"]}}}],
}
MIRROR = "mirror.example.com"
#: By their label app.
UPDATED = {"nfd-worker", "nvidia-container-toolkit-daemonset", "nvidia-operator-validator", "nvidia-device-plugin-daemonset", "gpu-feature-discovery"}


def registries(client: Client, app: str) -> dict[str, str]:
    """Where the image of the app's pod is from, by node. Of pods that are not on their way out."""
    found = [pod for pod in client.list(client.resource("v1", "Pod"), AGENTS, label_selector=f"app={app}").items if "deletionTimestamp" not in pod["metadata"]]
    return {pod["spec"]["nodeName"]: pod["spec"]["containers"][0]["image"].partition("/")[0] for pod in found}


def test_a_failed_node_keeps_no_change_from_the_others(make_sandbox: t.Any) -> None:
    sandbox = make_sandbox(FLEET)
    client = connect({"kubeconfig": sandbox.kubeconfig})
    before = site.playbook("site", {"one": site.cluster(sandbox.kubeconfig, hwaccel_wait_timeout=240)})
    assert before.summary["one"]["failed_nodes"] == [BROKEN], before.stdout[-6000:]
    old = {app: registries(client, app) for app in UPDATED}
    assert all(found.keys() >= {"gpu-0", "gpu-1"} and MIRROR not in found.values() for found in old.values()), old
    after = site.playbook("site", {"one": site.cluster(sandbox.kubeconfig, hwaccel_wait_timeout=240, hwaccel_image_registry=MIRROR)})
    assert after.summary["one"]["failed_nodes"] == [BROKEN], after.stdout[-6000:]
    for app in UPDATED:
        found = registries(client, app)
        assert (found["gpu-0"], found["gpu-1"]) == (MIRROR, MIRROR), (app, found)
    # The driver is not Kubernetes' to replace.
    assert MIRROR not in registries(client, "nvidia-driver").values()
