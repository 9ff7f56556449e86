# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of nodes, counts by class, and recognition of operating systems."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import ClassSum, reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.osnames import os_of_image
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("Ubuntu 24.04.1 LTS", ("ubuntu", "24.04")),
        ("Ubuntu 22.04.5 LTS", ("ubuntu", "22.04")),
        ("Debian GNU/Linux 12 (bookworm)", ("debian", "12")),
        ("Red Hat Enterprise Linux 9.4 (Plow)", ("rhel", "9.4")),
        ("Red Hat Enterprise Linux CoreOS 418.94.202501221327-0", ("rhcos", "4.18")),
        ("Red Hat Enterprise Linux CoreOS 9.6.20250805-0 (Plow)", ("rhel", "9.6")),
        ("Rocky Linux 9.7 (Blue Onyx)", ("rocky", "9.7")),
        ("Oracle Linux Server 8.10", ("ol", "8.10")),
        ("SUSE Linux Enterprise Server 15 SP6", ("sles", "15.6")),
        ("SUSE Linux Micro 6.0", ("sl-micro", "6.0")),
        ("Flatcar Container Linux by Kinvolk 4081.2.0 (Oklo)", ("flatcar", "4081.2")),
        ("Talos (v1.9.1)", ("talos", "1.9")),
        ("Amazon Linux 2023.6.20241212", ("amzn", "2023")),
        ("Fedora CoreOS 41.20241122.3.0", ("fedora", "41")),
        ("Something Else 1", ("", "")),
        ("", ("", "")),
    ],
)
def test_operating_systems(image: str, expected: tuple[str, str]) -> None:
    assert os_of_image(image) == expected


def test_kernel_and_os_are_the_kubelets_even_where_nfd_says_something_else() -> None:
    labels = {names.KERNEL_LABEL: "5.15.0-1-generic", names.OS_ID_LABEL: "debian", names.OS_VERSION_LABEL: "12"}
    facts = reduce_node(s.node(labels=labels))
    assert (facts.kernel, facts.nfd_kernel, facts.os_id, facts.os_version) == (
        s.KERNEL,
        "5.15.0-1-generic",
        "ubuntu",
        "24.04",
    )


def test_an_unknown_image_takes_nfds_word() -> None:
    facts = reduce_node(s.node(os_image="HiveOS", labels={names.OS_ID_LABEL: "hive", names.OS_VERSION_LABEL: "3"}))
    assert (facts.os_id, facts.os_version) == ("hive", "3")


@pytest.mark.parametrize(
    ("labels", "kernel", "present"),
    [
        ({s.NFD + "pci-10de.present": "true"}, s.KERNEL, True),
        ({s.NFD + "pci-0302_10de.present": "true"}, s.KERNEL, True),
        ({s.NFD + "pci-0300_10de.present": "true"}, s.KERNEL, True),
        ({s.NFD + "pci-10de.present": "false"}, s.KERNEL, False),
        ({s.NFD + "pci-8086.present": "true"}, s.KERNEL, False),
        ({names.CPU_VENDOR_LABEL: "NVIDIA"}, s.KERNEL, True),
        ({names.INTEGRATED_LABEL: "true"}, s.KERNEL, True),
        ({}, "5.15.148-tegra", True),
        ({}, s.KERNEL, False),
    ],
)
def test_gpu_presence(labels: dict[str, str], kernel: str, present: bool) -> None:
    assert reduce_node(s.node(gpus=0, labels=labels, kernel=kernel)).gpu_present is present


def test_nodes_that_kwok_plays_are_no_machines() -> None:
    node = s.node()
    assert not reduce_node(node).simulated
    node["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
    assert reduce_node(node).simulated


def test_gpu_of_a_foreign_plugin_without_nfd() -> None:
    facts = reduce_node(s.node(nfd=False, allocatable=4))
    assert facts.gpu_present
    assert facts.allocatable == ((s.GPU, 4),)


@pytest.mark.parametrize(
    ("labels", "kernel", "driver"),
    [
        ({names.HOST_DRIVER_LABEL: "580.95.05"}, s.KERNEL, "580.95.05"),
        ({names.HOST_DRIVER_LABEL: "true"}, s.KERNEL, "unknown"),
        ({names.DEPLOY_DRIVER_LABEL: "pre-installed"}, s.KERNEL, "pre-installed"),
        ({names.DEPLOY_DRIVER_LABEL: "true"}, s.KERNEL, ""),
        ({}, "5.15.148-tegra", "unknown"),
    ],
)
def test_host_drivers(labels: dict[str, str], kernel: str, driver: str) -> None:
    assert reduce_node(s.node(labels=labels, kernel=kernel)).host_driver == driver


def test_what_gpu_feature_discovery_says() -> None:
    labels = {
        names.GPU_PRODUCT_LABEL: "NVIDIA-H100-80GB-HBM3",
        names.GPU_COUNT_LABEL: "8",
        names.GPU_MEMORY_LABEL: "81559",
        names.MIG_CAPABLE_LABEL: "true",
        names.GPU_REPLICAS_LABEL: "1",
        names.DRIVER_VERSION_LABEL: "580.178.04",
        "nvidia.com/mig-1g.10gb.count": "7",
        "nvidia.com/mig-1g.10gb.memory": "9",
    }
    facts = reduce_node(s.node(labels=labels))
    assert facts.driver_version == "580.178.04"
    assert (facts.gpu.product, facts.gpu.count, facts.gpu.memory_mib, facts.gpu.mig_capable) == (
        "NVIDIA-H100-80GB-HBM3",
        8,
        81559,
        True,
    )
    assert facts.gpu.mig_devices == (("1g.10gb", 7),)
    old = reduce_node(
        s.node(
            labels={
                "nvidia.com/cuda.driver.major": "470",
                "nvidia.com/cuda.driver.minor": "57",
                "nvidia.com/cuda.driver.rev": "02",
            }
        )
    )
    assert old.driver_version == "470.57.02"


def test_readiness_and_opting_out() -> None:
    assert reduce_node(s.node()).ready
    lost = reduce_node(s.node(ready=False))
    assert not lost.ready
    assert lost.not_ready == "NodeStatusUnknown: Kubelet stopped posting node status."
    assert not reduce_node(s.node(labels={names.OPERANDS_LABEL: "false"})).managed


def test_classes_stay_few_and_count_all() -> None:
    sums = ClassSum()
    for number in range(1000):
        sums.add(
            reduce_node(
                s.node(f"n-{number}", kernel=s.KERNEL if number % 2 else "6.8.0-106-generic", ready=number != 7)
            ),
            "training",
        )
    sums.add(reduce_node(s.node("late", nfd=False)), "training", assumed=True)
    rows = sums.rows()
    assert len(rows) == 3
    assert sum(row["count"] for row in rows) == 1001
    assert sum(row["ready"] for row in rows) == 1000
    assert [row["gpu_assumed"] for row in rows if not row["gpu_present"]] == [True]
    assert set(rows[0]) >= {
        "pool",
        "kernel",
        "os_id",
        "os_version",
        "os_image",
        "architecture",
        "runtime",
        "runtime_version",
        "gpu_product",
        "host_driver",
    }


json_values: st.SearchStrategy[t.Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
odd_nodes = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {}, optional={"name": json_values, "labels": json_values, "annotations": json_values}
        )
        | json_values,
        "spec": st.fixed_dictionaries({}, optional={"taints": json_values, "unschedulable": json_values}) | json_values,
        "status": st.fixed_dictionaries(
            {}, optional={"nodeInfo": json_values, "conditions": json_values, "allocatable": json_values}
        )
        | json_values,
    },
)


@given(odd_nodes)
def test_odd_nodes_give_facts(node: dict[str, t.Any]) -> None:
    facts = reduce_node(node)
    assert isinstance(facts.name, str)
    sums = ClassSum()
    sums.add(facts, "default")
    assert sums.rows()[0]["count"] == 1
