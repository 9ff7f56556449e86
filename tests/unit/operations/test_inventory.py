# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes as inventory hosts: their groups and variables."""

from __future__ import annotations

import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool, PoolGpu
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import inventory
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s

QUARANTINE = "hwaccel.gpu/quarantine"
ALWAYS = ["gpu_schedulable", "gpu_unschedulable", "quarantined"]
PRODUCT = {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.count": "4"}


def read(*nodes: s.Obj, warnings: list[str] | None = None, **options: t.Any) -> dict[str, t.Any]:
    cluster = NodeCluster(list(nodes), [])
    warn = [].append if warnings is None else warnings.append
    return inventory.inventory(
        t.cast(t.Any, cluster), inventory.Ask(**options), safe_name=lambda name: re.sub(r"\W", "_", name), warn=warn
    )


def groups(found: dict[str, t.Any]) -> dict[str, list[str]]:
    return {host["name"]: host["groups"] for host in found["hosts"]}


def quarantined(node: s.Obj, gate: str, reason: str = "") -> s.Obj:
    node["metadata"]["labels"][QUARANTINE] = gate
    node["metadata"]["annotations"]["hwaccel.gpu/quarantine-reason"] = reason
    node["spec"]["taints"] = [{"key": QUARANTINE, "value": gate, "effect": "NoSchedule"}]
    return node


def test_an_empty_cluster_has_the_groups_that_plays_use() -> None:
    assert read() == {"groups": ALWAYS, "hosts": []}
    assert read(pools=[{"name": "a b", "selector": "x=y"}])["groups"] == [*ALWAYS[:2], "pool_a_b", "quarantined"]


def test_each_node_is_in_the_groups_of_its_properties() -> None:
    found = read(
        s.node("whole", 4, allocatable=4, labels=PRODUCT),
        s.node("bare", 0),
        s.node("undiscovered", 0, nfd=False),
        quarantined(s.node("bad", 4, allocatable=4, labels=PRODUCT), "driver"),
        quarantined(s.node("odd", 0), "of-old"),
        pools=[
            {"name": "graphics", "nodes": ["whole", "bad"]},
            {"name": "declared", "nodes": ["undiscovered"], "gpu": {"count": 8}},
        ],
        cluster="site-1",
    )
    kernel = "kernel_6_8_0_111_generic"
    assert groups(found) == {
        "bad": [
            "cluster_site_1",
            "gpu_unschedulable",
            kernel,
            "pool_graphics",
            "product_NVIDIA_L40S",
            "quarantined",
            "quarantined_driver",
        ],
        "bare": ["cluster_site_1", kernel, "pool_cpu"],
        "odd": ["cluster_site_1", kernel, "pool_cpu", "quarantined"],
        "undiscovered": ["cluster_site_1", "gpu_unschedulable", kernel, "pool_declared"],
        "whole": ["cluster_site_1", "gpu_schedulable", kernel, "pool_graphics", "product_NVIDIA_L40S"],
    }
    assert set(found["groups"]) == set(ALWAYS).union(*groups(found).values())


def test_the_variables_of_a_node() -> None:
    node = quarantined(
        s.node("n", 4, allocatable=3, labels={**PRODUCT, "zone/a": "1", "zone/b": "2"}), "devices", "one GPU fell off"
    )
    addresses = (("InternalIP", "192.0.2.1"), ("InternalIP", "2001:db8::1"), ("Hostname", "n"))
    node["status"]["addresses"] = [{"type": kind, "address": value} for kind, value in addresses]
    (host,) = read(node, labels=("zone/*", "nothing"), host_address="InternalIP", host_prefix="far-", cluster="c")[
        "hosts"
    ]
    variables = host["variables"]["hwaccel_node"]
    assert (host["name"], host["variables"]["ansible_host"], host["variables"]["hwaccel_cluster"]) == (
        "far-n",
        "192.0.2.1",
        "c",
    )
    assert variables["name"] == "n" and variables["gpu"] == {"product": "NVIDIA-L40S", "count": 4, "memory_mib": 0}
    assert variables["labels"] == {"zone/a": "1", "zone/b": "2"}
    assert variables["addresses"] == {"InternalIP": ["192.0.2.1", "2001:db8::1"], "Hostname": ["n"]}
    assert (variables["quarantine_gate"], variables["quarantine_reason"]) == ("devices", "one GPU fell off")
    assert variables["obstacles"] == ["quarantined", "3 nvidia.com/gpu allocatable, 4 nvidia.com/gpu expected"]


def test_a_node_without_the_address_has_none_and_nodes_without_name_are_skipped() -> None:
    found = read(s.node("n", 0), {**s.node(""), "metadata": {"name": ""}}, host_address="ExternalIP")
    assert [list(host["variables"]) for host in found["hosts"]] == [["hwaccel_node"]]


@pytest.mark.parametrize(
    ("node", "pool", "obstacles"),
    [
        (s.node(allocatable=8), Pool("p"), []),
        (s.node(allocatable=8), Pool("p", gpu=PoolGpu(count=8)), []),
        (
            s.node(allocatable=7),
            Pool("p", gpu=PoolGpu(count=8)),
            ["7 nvidia.com/gpu allocatable, 8 nvidia.com/gpu expected"],
        ),
        (s.node(allocatable=0), Pool("p"), ["0 nvidia.com/gpu allocatable"]),
        (s.node(), Pool("p"), ["none allocatable"]),
        (
            s.node(allocatable=8, ready=False),
            Pool("p"),
            ["not Ready: NodeStatusUnknown: Kubelet stopped posting node status."],
        ),
        ({**s.node(allocatable=8), "spec": {"unschedulable": True}}, Pool("p"), ["cordoned"]),
        (quarantined(s.node(allocatable=8), "driver"), Pool("p"), ["quarantined"]),
    ],
)
def test_obstacles_to_scheduling_gpu_pods(node: s.Obj, pool: Pool, obstacles: list[str]) -> None:
    assert inventory.obstacles(reduce_node(node), pool) == obstacles


def test_pools_that_overlap_or_have_the_same_group_are_faults_and_a_missing_node_a_warning() -> None:
    overlapping = [{"name": "x", "nodes": ["a", "b"]}, {"name": "y", "nodes": ["b", "a"]}]
    with pytest.raises(ManyFaults, match=r"pools x and y overlap \(pools\): both contain a, b"):
        read(s.node("a"), s.node("b"), pools=overlapping)
    with pytest.raises(ManyFaults, match=r"pools a-b and a\.b would both be group pool_a_b"):
        read(pools=[{"name": "a-b", "nodes": ["x"]}, {"name": "a.b", "nodes": ["y"]}])
    warnings: list[str] = []
    read(pools=[{"name": "x", "nodes": ["gone"]}], warnings=warnings)
    assert len(warnings) == 1 and "gone" in warnings[0]
