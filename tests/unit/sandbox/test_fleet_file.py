# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fleet files: defaults, derived fields, overrides, and every fault of one file at once."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import fleet_file

GPU = {"product": "NVIDIA-L40S", "count": 4, "memory_mib": 46068}
DEFAULT_FLEET = pathlib.Path(__file__).parents[3] / "roles" / "sandbox" / "files" / "fleet.yml"


def faults_of(data: t.Any) -> dict[str, str]:
    with pytest.raises(ManyFaults) as caught:
        fleet_file.parse(data)
    return {fault.where: fault.what for fault in caught.value.faults}


def pool(**fields: t.Any) -> dict[str, t.Any]:
    return {"pools": [{"name": "a", **fields}]}


def test_default_fleet_has_sixteen_gpu_nodes_in_three_pools_and_four_without() -> None:
    nodes = fleet_file.parse(yaml.safe_load(DEFAULT_FLEET.read_text(encoding="utf-8")))["nodes"].values()
    assert sum(1 for node in nodes if node["gpu"]) == 16
    assert len({node["pool"] for node in nodes if node["gpu"]}) == 3
    assert sum(1 for node in nodes if not node["gpu"]) == 4
    assert len({(node["kernel"], node["os_id"]) for node in nodes if node["gpu"]}) == 3


def test_a_pool_with_a_name_only_is_one_node_with_defaults() -> None:
    fleet = fleet_file.parse(pool())
    assert fleet == {
        "time_scale": 0.1,
        "seed": 1,
        "images": [],
        "nodes": {
            "a-0": {
                "pool": "a",
                "architecture": "amd64",
                "os_image": "Ubuntu 24.04.1 LTS",
                "os_id": "ubuntu",
                "os_version": "24.04",
                "kernel": "6.8.0-45-generic",
                "container_runtime": "containerd://2.0.0",
                "gpu": None,
                "interconnect": {"transport": "Socket", "bandwidth": 1.0},
                "host_driver": "",
                "host_toolkit": False,
                "labels": {},
                "taints": [],
                "faults": [],
                "boot": 1,
            }
        },
    }


@pytest.mark.parametrize(
    ("os_image", "expected"),
    [
        ("Ubuntu 22.04.5 LTS", ("ubuntu", "22.04")),
        ("Red Hat Enterprise Linux 9.6 (Plow)", ("rhel", "9.6")),
        ("Red Hat Enterprise Linux CoreOS 418.94.202501221327-0", ("rhcos", "418.94")),
        ("Rocky Linux 9.5 (Blue Onyx)", ("rocky", "9.5")),
        ("Debian GNU/Linux 12 (bookworm)", ("debian", "12")),
        ("SUSE Linux Enterprise Server 15 SP6", ("sles", "15")),
        ("Plan 9", ("", "")),
    ],
)
def test_system_is_derived_from_the_image(os_image: str, expected: tuple[str, str]) -> None:
    assert fleet_file.system(os_image) == expected


def test_an_unknown_system_may_be_named() -> None:
    node = fleet_file.parse(pool(os_image="Plan 9", os_id="plan9", os_version="4"))["nodes"]["a-0"]
    assert (node["os_id"], node["os_version"]) == ("plan9", "4")


def test_overrides_of_one_node() -> None:
    nodes = fleet_file.parse(
        pool(
            count=3,
            faults=["plugin_fewer_gpus"],
            nodes={
                "a-1": {
                    "kernel": "6.8.0-48-generic",
                    "os_image": "Ubuntu 22.04.5 LTS",
                    "faults": [{"name": "image_pull_failure", "image": "driver"}],
                }
            },
        )
    )["nodes"]
    assert list(nodes) == ["a-0", "a-1", "a-2"]
    assert nodes["a-1"]["kernel"] == "6.8.0-48-generic"
    assert nodes["a-1"]["os_version"] == "22.04"
    assert nodes["a-1"]["faults"] == [{"name": "plugin_fewer_gpus"}, {"name": "image_pull_failure", "image": "driver"}]
    assert nodes["a-2"]["faults"] == [{"name": "plugin_fewer_gpus"}]
    assert nodes["a-2"]["os_version"] == "24.04"


def test_every_fault_is_told_at_once_with_pool_and_field() -> None:
    data = {
        "time_scale": 0,
        "speed": 3,
        "images": ["registry.example.com/team/train:1", "without-tag", 7],
        "pools": [
            {"name": "Bad Name", "count": -1},
            {
                "name": "a",
                "architecture": "sparc",
                "kernel": "new!",
                "gpu": {"product": "two words", "count": 0, "ecc": "on", "mig": True},
                "labels": {"x": 1},
            },
            {"name": "a", "taints": [{"key": "k", "effect": "Never"}], "faults": ["meteorite"], "nodes": {"a-7": {}}},
            "no pool",
        ],
    }
    faults = faults_of(data)
    assert set(faults) >= {
        "fleet.time_scale",
        "fleet.images[1]",
        "fleet.images[2]",
        "fleet",
        "pool Bad Name.name",
        "pool Bad Name.count",
        "pool a.architecture",
        "pool a.kernel",
        "pool a.gpu.product",
        "pool a.gpu.count",
        "pool a.gpu.ecc",
        "pool a.gpu.mig",
        "pool a.labels.x",
        "pool a.name",
        "pool a.taints[0].effect",
        "pool a.faults[0]",
        "pool a.nodes",
        "pools[3]",
    }
    assert faults["pool a.architecture"] == "'sparc' is not one of amd64, arm64"


def test_nodes_of_two_pools_must_not_have_one_name() -> None:
    faults = faults_of(
        {"pools": [{"name": "a", "count": 2}, {"name": "a-1", "count": 1}, {"name": "a-1-0"}, {"name": "a"}]}
    )
    assert "pool a.name" in faults


def test_too_large_a_fleet_is_refused() -> None:
    assert "fleet.pools" in faults_of({"pools": [{"name": "a", "count": 20000}, {"name": "b", "count": 1}]})


@pytest.mark.parametrize("data", [None, [], "text", 3, {"pools": {}}])
def test_no_fleet_at_all_is_a_fault(data: t.Any) -> None:
    assert faults_of(data)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8) | st.integers(), children, max_size=3)
    ),
    max_leaves=8,
)
fields = st.sampled_from(
    [
        "name",
        "count",
        "architecture",
        "os_image",
        "kernel",
        "container_runtime",
        "gpu",
        "labels",
        "taints",
        "nodes",
        "faults",
        "host_driver",
    ]
)
odd_pool = st.dictionaries(fields, anything, max_size=6).map(lambda one: {"name": "a", **one}) | anything


@given(
    st.dictionaries(st.sampled_from(["pools", "seed", "time_scale"]), anything, max_size=3)
    | st.lists(odd_pool, max_size=3).map(lambda pools: {"pools": pools})
)
def test_odd_fleets_are_normalised_or_refused_with_reasons(data: t.Any) -> None:
    try:
        fleet = fleet_file.parse(data)
    except HwaccelError as error:
        assert all(fault.what for fault in error.faults)
    else:
        assert all(
            node["os_id"] and node["boot"] == 1 and isinstance(node["labels"], dict) for node in fleet["nodes"].values()
        )


@pytest.mark.parametrize(
    ("fault", "where"),
    [
        ({"name": "out_of_memory"}, "pool a.faults[0]"),
        ({"name": "gpu_ecc_error", "xid": "13"}, "pool a.faults[0].xid"),
        ({"name": "slow_node", "factor": "much"}, "pool a.faults[0].factor"),
        ({"name": "node_flapping", "factor": "2"}, "pool a.faults[0]"),
    ],
)
def test_a_fault_takes_the_values_that_the_agent_knows(fault: dict[str, str], where: str) -> None:
    assert set(faults_of(pool(faults=[fault]))) == {where}


def test_the_agent_knows_every_fault() -> None:
    """The file is read as text, because the agent is a separate program with its own import path."""
    agent = DEFAULT_FLEET.parent / "fleet_agent" / "machine" / "faults.py"
    assert all(f'    "{name}": "' in agent.read_text(encoding="utf-8") for name in fleet_file.FAULTS)


def test_an_interconnect_of_a_pool_and_of_one_of_its_nodes() -> None:
    nodes = fleet_file.parse(
        pool(
            count=2,
            interconnect={"transport": "IB", "bandwidth": 46},
            nodes={"a-1": {"interconnect": {"bandwidth": 12.5}}},
        )
    )["nodes"]
    assert nodes["a-0"]["interconnect"] == {"transport": "IB", "bandwidth": 46}
    assert nodes["a-1"]["interconnect"] == {"transport": "IB", "bandwidth": 12.5}
    assert fleet_file.parse(pool())["nodes"]["a-0"]["interconnect"] == {"transport": "Socket", "bandwidth": 1.0}
    found = faults_of(pool(interconnect={"bandwidth": 0, "speed": 1}))
    assert found == {
        "pool a.interconnect": "'speed' is an unknown field",
        "pool a.interconnect.bandwidth": "0 is not a bandwidth in GB/s",
    }
