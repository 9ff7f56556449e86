# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods with ResourceClaims on nodes without a DRA driver."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container
from fleet_agent.kubelet import claims

MESSAGE = "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu.nvidia.com is not registered"


def claim(world, name, *drivers):
    results = [{"driver": driver, "pool": "n0", "device": "gpu-0", "request": "gpu"} for driver in drivers]
    world.api.cluster.put(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "ns"},
            "status": {"allocation": {"devices": {"results": results}}} if drivers else {},
        }
    )


def test_a_pod_waits_for_the_driver_of_its_claim(world):
    claim(world, "one", "gpu.nvidia.com")
    sleeping = container("c", "busybox:1.36", ["sh", "-c", "sleep 9999"])
    pod = world.pod(
        world.node(), {"containers": [sleeping], "resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]}
    )
    world.until(lambda: ("FailedPrepareDynamicResources", MESSAGE) in world.warnings)
    assert pod.main[0].state == {"waiting": {"reason": "ContainerCreating"}}
    assert not pod.sandbox_ready


def test_a_claim_that_does_not_exist_is_reported(world):
    sleeping = container("c", "busybox:1.36", ["sh", "-c", "sleep 9999"])
    world.pod(world.node(), {"containers": [sleeping], "resourceClaims": [{"name": "x", "resourceClaimName": "none"}]})
    world.until(lambda: world.warnings)
    assert "fetch ResourceClaim none" in world.warnings[0][1]


def test_a_claim_without_devices_needs_no_driver(world):
    claim(world, "empty")
    sleeping = container("c", "busybox:1.36", ["sh", "-c", "sleep 9999"])
    pod = world.pod(
        world.node(), {"containers": [sleeping], "resourceClaims": [{"name": "x", "resourceClaimName": "empty"}]}
    )
    world.until(lambda: pod.main[0].ready)


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({}, {}, ()),
        ({"resourceClaims": [{"name": "a", "resourceClaimName": "one"}]}, {}, ("one",)),
        (
            {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]},
            {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "pod-a-x1"}]},
            ("pod-a-x1",),
        ),
        ({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]}, {}, ()),
        ({}, {"extendedResourceClaimStatus": {"resourceClaimName": "pod-extended"}}, ("pod-extended",)),
    ],
)
def test_claims_of_a_pod(spec, status, expected):
    assert claims.names({"spec": spec, "status": status}) == expected
