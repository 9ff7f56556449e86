# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Providers of components: from the plans of the roles' filters, in a summary and in the lines below its table."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.filter.fleet_table import fleet_table
from ansible_collections.hwaccel.gpu.plugins.filter.providers import providers
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pools
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import device_plugin, driver, feature_discovery
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import StagePlan
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

REPOSITORY = "nvcr.io/nvidia"
#: Objects that node_info observes on a cluster with NVIDIA's operator.
OPERATOR = {
    "cluster_policy": [{"kind": "ClusterPolicy", "namespace": "", "name": "cluster-policy", "image": ""}],
    "nfd": [
        {
            "kind": "DaemonSet",
            "namespace": "gpu-operator",
            "name": "nfd-worker",
            "image": "registry.k8s.io/nfd/node-feature-discovery:v0.19.0",
        }
    ],
    "driver": [
        {
            "kind": "DaemonSet",
            "namespace": "gpu-operator",
            "name": "nvidia-driver-daemonset",
            "image": f"{REPOSITORY}/driver:595.91.07-ubuntu22.04",
        }
    ],
    "device_plugin": [
        {
            "kind": "DaemonSet",
            "namespace": "gpu-operator",
            "name": "nvidia-device-plugin-daemonset",
            "image": f"{REPOSITORY}/k8s-device-plugin@sha256:00",
        }
    ],
}


def plans(existing: dict[str, t.Any], declared: list[dict[str, t.Any]], provider: str = "") -> dict[str, t.Any]:
    facts = stack.fleet(*(stack.node_class(one["name"], "6.8.0-45-generic") for one in declared)) | {
        "existing": existing
    }
    makers = {"feature_discovery": feature_discovery.plan, "driver": driver.plan, "device_plugin": device_plugin.plan}
    own = {"driver": {"provider": provider}}
    return {
        role: plan(stack.manifests(role), stack.settings(role, pools=declared, **own.get(role, {})), facts)
        for role, plan in makers.items()
    }


def pool(name: str, provider: str = "") -> dict[str, t.Any]:
    return {
        "name": name,
        "selector": f"pool={name}",
        "gpu": {"product": "NVIDIA-L40S", "count": 4},
        "driver": {"provider": provider} if provider else {},
    }


def test_components_of_an_operator_are_reported_with_its_objects() -> None:
    found = providers(plans(OPERATOR, [pool("a")]))
    table = fleet_table({"pools": [], "providers": found})
    operator = "existing, GPU Operator (ClusterPolicy cluster-policy)"
    assert table[-5:] == [
        f"Node Feature Discovery: {operator}, DaemonSet gpu-operator/nfd-worker (node-feature-discovery:v0.19.0)",
        f"driver of pool a: {operator}, DaemonSet gpu-operator/nvidia-driver-daemonset (driver:595.91.07-ubuntu22.04)",
        f"container toolkit of pool a: {operator}",
        f"device plugin: {operator}, DaemonSet gpu-operator/nvidia-device-plugin-daemonset (k8s-device-plugin)",
        f"GPU feature discovery: {operator}",
    ]


def test_pools_are_listed_by_provider_and_components_of_the_collection_have_no_line() -> None:
    found = providers(plans({}, [pool("a"), pool("b", "host"), pool("c", "none"), pool("d", "host")], "hwaccel"))
    assert [
        (row["component"], row["provider"], row["pools"])
        for row in found
        if row["component"] in ("driver", "container toolkit")
    ] == [
        ("driver", "hwaccel", ["a"]),
        ("driver", "host", ["b", "d"]),
        ("driver", "none", ["c"]),
        ("container toolkit", "hwaccel", ["a", "b", "d"]),
        ("container toolkit", "none", ["c"]),
    ]
    table = fleet_table({"pools": [], "providers": found})
    assert table[-4:] == [
        "",
        "driver of pools b, d: host",
        "driver of pool c: none",
        "container toolkit of pool c: none",
    ]


@pytest.mark.parametrize("given", [{}, {"driver": {}}, {"driver": StagePlan().as_dict("hwaccel")}])
def test_without_other_providers_there_is_only_the_table(given: dict[str, t.Any]) -> None:
    assert "" not in fleet_table({"pools": [], "providers": providers(given)})
    assert fleet_table({"pools": []}) == fleet_table({"pools": [], "providers": providers(given)})


def test_every_provider_of_a_pool_can_be_reported() -> None:
    for provider in pools.PROVIDERS:
        (row, _toolkit) = providers({"driver": {"provider": provider, "pools": {"a": provider}, "existing": OPERATOR}})
        assert (row["provider"], bool(row["objects"])) == (provider, provider == "existing")
