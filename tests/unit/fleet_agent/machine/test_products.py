# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which drivers a GPU takes."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import DRIVER, changed, log
from fleet_agent.machine import products

OLD, NEW = "580.178.04", "595.91.07"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Tesla-V100-SXM2-32GB", "volta"),
        ("NVIDIA-L40S", "ada-lovelace"),
        ("NVIDIA-L4", "ada-lovelace"),
        ("NVIDIA-A100-SXM4-80GB", "ampere"),
        ("NVIDIA-A10", "ampere"),
        ("NVIDIA-Nothing-Known", "hopper"),
    ],
)
def test_families(name, family):
    assert products.find(name).family == family


@pytest.mark.parametrize(
    ("product", "version", "kind", "message"),
    [
        ("Tesla-V100-SXM2-32GB", OLD, "auto", ""),
        ("Tesla-V100-SXM2-32GB", OLD, "proprietary", ""),
        ("Tesla-V100-SXM2-32GB", OLD, "open", "not supported by open"),
        ("Tesla-V100-SXM2-32GB", NEW, "auto", f"NVRM: NVIDIA {NEW} driver release."),
        ("NVIDIA-H100-80GB-HBM3", NEW, "auto", ""),
        ("NVIDIA-H100-80GB-HBM3", NEW, "proprietary", ""),
        ("NVIDIA-B200", NEW, "auto", ""),
        ("NVIDIA-B200", NEW, "proprietary", "requires use of the NVIDIA open kernel modules"),
        ("NVIDIA-H100-80GB-HBM3", NEW, "opne", "invalid value for the KERNEL_MODULE_TYPE variable: opne"),
    ],
)
def test_a_driver_loads_only_on_gpus_that_it_knows(world, product, version, kind, message):
    node = world.node(gpu={"product": product, "count": 8, "memory_mib": 32768})

    def choose(spec):
        container = next(one for one in spec["containers"] if "driver" in one["image"])
        container["image"] = f"nvcr.io/nvidia/driver:{version}-ubuntu24.04"
        container["env"] = [*container.get("env", []), {"name": "KERNEL_MODULE_TYPE", "value": kind}]

    driver = world.pod(node, changed(DRIVER, choose)).main[0]
    world.until(lambda: driver.restarts >= 1 if message else "nvidia" in node.host.modules)
    assert message in log(driver)
    assert bool(message) == ("nvidia" not in node.host.modules)
