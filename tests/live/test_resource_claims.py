# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod whose ResourceClaim was allocated by the real scheduler does not start on a node without a DRA driver, as with a real kubelet."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

GROUP, DRIVER, SPACE = "resource.k8s.io/v1", "gpu.nvidia.com", "default"


def objects(node: str) -> list[dict[str, t.Any]]:
    """A driver that published the GPU of a node and is gone since, and a pod that claims it."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    device = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    container = {"name": "c", "image": "busybox:1.36", "command": ["sleep", "60"]}
    claims = [{"name": "gpu", "resourceClaimName": "claim"}]
    return [
        {"apiVersion": GROUP, "kind": "DeviceClass", "metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}},
        {
            "apiVersion": GROUP,
            "kind": "ResourceSlice",
            "metadata": {"name": "by-hand"},
            "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]},
        },
        {
            "apiVersion": GROUP,
            "kind": "ResourceClaim",
            "metadata": {"name": "claim", "namespace": SPACE},
            "spec": {"devices": device},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "claims", "namespace": SPACE},
            "spec": {
                "containers": [container],
                "resourceClaims": claims,
                "tolerations": [{"operator": "Exists"}],
                "terminationGracePeriodSeconds": 0,
            },
        },
    ]


def test_a_pod_waits_for_a_driver_that_is_not_registered(sandbox: Sandbox) -> None:
    client = connect({"kubeconfig": sandbox.kubeconfig})
    node = client.list(client.resource("v1", "Node")).items[0]["metadata"]["name"]
    created = objects(node)
    for one in created:
        client.create(one, client.resource(one["apiVersion"], one["kind"]))
    events = client.resource("v1", "Event")

    def messages() -> set[str]:
        found = client.list(events, SPACE, field_selector="involvedObject.name=claims").items
        return {item["message"] for item in found if item["reason"] == "FailedPrepareDynamicResources"}

    try:
        until(messages, "the kubelet to report the claim", seen=messages)
        assert messages() == {
            "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu.nvidia.com is not registered"
        }
        pod = client.get(client.resource("v1", "Pod"), "claims", SPACE)
        assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == (node, "Pending")
    finally:
        for one in reversed(created):
            metadata = one["metadata"]
            client.delete(
                client.resource(one["apiVersion"], one["kind"]), metadata["name"], metadata.get("namespace", "")
            )
