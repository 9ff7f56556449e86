# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expected and observed resources, and the only module that names them."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, resources
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool, PoolGpu
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import parse_plugin_config
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.schedulable import expected, observed
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s

EIGHT = Pool("training", gpu=PoolGpu(count=8))
SLICE = "nvidia.com/mig-1g.10gb"


def sharing(method: str = "timeSlicing", **kwargs: t.Any) -> resources.PluginConfig:
    return parse_plugin_config(
        {"version": "v1", "sharing": {method: {"resources": [{"name": s.GPU, "replicas": 4}], **kwargs}}}
    )


def labeled(**labels: str) -> s.Obj:
    known = {
        "count": names.GPU_COUNT_LABEL,
        "product": names.GPU_PRODUCT_LABEL,
        "strategy": names.MIG_STRATEGY_LABEL,
        "replicas": names.GPU_REPLICAS_LABEL,
    }
    return s.node(labels={known.get(key, key): value for key, value in labels.items()})


@pytest.mark.parametrize(
    ("node", "pool", "config", "quantities"),
    [
        (s.node(), EIGHT, None, {s.GPU: 8}),
        (labeled(count="7"), EIGHT, None, {s.GPU: 8}),
        (labeled(count="4"), None, None, {s.GPU: 4}),
        (s.node(), None, None, {}),
        (s.node(kernel="5.15.148-tegra"), None, None, {s.GPU: 1}),
        (s.node(), EIGHT, sharing(), {s.GPU: 32}),
        (s.node(), EIGHT, sharing(renameByDefault=True), {s.GPU + ".shared": 32}),
        (s.node(), EIGHT, sharing("mps", renameByDefault=True), {s.GPU + ".shared": 32}),
        (
            s.node(),
            EIGHT,
            sharing(resources=[{"name": s.GPU, "replicas": 2, "rename": "nvidia.com/gpu-slow"}]),
            {s.GPU: 16},
        ),
        (labeled(count="4", replicas="10"), None, None, {s.GPU: 40}),
        (labeled(count="56", product="NVIDIA-H100-MIG-1g.10gb", strategy="single"), EIGHT, None, {s.GPU: 56}),
        (labeled(count="8", strategy="mixed", **{SLICE + ".count": "7"}), EIGHT, None, {SLICE: 7}),
    ],
)
def test_expected_resources_of_a_node(
    node: s.Obj, pool: Pool | None, config: resources.PluginConfig | None, quantities: dict[str, int]
) -> None:
    assert expected(reduce_node(node), pool, config) == quantities


def test_replicas_from_labels_have_the_resource_name_of_the_node() -> None:
    node = labeled(count="2", replicas="4")
    node["status"]["allocatable"][s.GPU + ".shared"] = "8"
    assert expected(reduce_node(node)) == {s.GPU + ".shared": 8}


def test_observed_resources_are_allocatable_gpus_only() -> None:
    node = s.node(allocatable=7)
    node["status"]["allocatable"] |= {SLICE: "2", "nvidia.com/hostdev": "3", "amd.com/gpu": "1"}
    node["status"]["capacity"][s.GPU] = "8"
    assert observed(reduce_node(node)) == {s.GPU: 7, SLICE: 2}


def test_renamed_resources_are_observed_if_the_configuration_is_known() -> None:
    node = s.node()
    node["status"]["allocatable"]["nvidia.com/gpu-slow"] = "16"
    assert observed(reduce_node(node)) == {}
    assert observed(reduce_node(node, ["nvidia.com/gpu-slow"])) == {"nvidia.com/gpu-slow": 16}


def test_devices_of_resource_slices_count_too() -> None:
    slices = [
        {
            "spec": {
                "driver": "gpu.nvidia.com",
                "nodeName": "training-0",
                "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
            }
        },
        {"spec": {"driver": "gpu.nvidia.com", "nodeName": "other", "devices": [{"name": "gpu-0"}]}},
        {"spec": {"driver": "nic.example.org", "nodeName": "training-0", "devices": [{"name": "nic-0"}]}},
    ]
    assert observed(reduce_node(s.node()), slices) == {"gpu.nvidia.com": 2}


def test_missing_and_surplus_resources_and_their_description() -> None:
    assert resources.missing({s.GPU: 8, SLICE: 1}, {s.GPU: 7, SLICE: 2}) == {s.GPU: 1}
    assert resources.surplus({s.GPU: 8}, {s.GPU: 9, SLICE: 2}) == {s.GPU: 1, SLICE: 2}
    assert resources.describe({}) == "none"
    assert resources.describe({s.GPU: 8}) == "8 nvidia.com/gpu"


def test_mps_takes_precedence_over_time_slicing() -> None:
    """k8s-device-plugin v0.20.0, api/config/v1/sharing.go: ReplicatedResources."""
    shared = {"mps": {"resources": [{"name": s.GPU, "replicas": 3}]}, "timeSlicing": {"renameByDefault": True}}
    assert parse_plugin_config({"sharing": shared}).sharing == (resources.Sharing(s.GPU, 3, s.GPU),)


@pytest.mark.parametrize(
    "config",
    [None, {}, {"sharing": None}, {"sharing": {"timeSlicing": {"resources": [{"name": s.GPU, "replicas": 1}]}}}],
)
def test_configurations_without_sharing_have_no_sharing(config: t.Any) -> None:
    assert parse_plugin_config(config).sharing == ()


def test_no_other_code_names_the_resource() -> None:
    """Labels and manifests have their own names; only resources.py names the resource itself."""
    root = pathlib.Path(resources.__file__).parents[1]
    bare = re.compile(r"[\"']nvidia\.com/gpu[\"']")
    found = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if bare.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["_gpu/resources.py"]
