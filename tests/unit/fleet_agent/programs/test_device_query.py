# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CUDA samples on a Jetson: the collection can read the output of the simulated program."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import device_query
from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container, log

IMAGE = "docker.io/dustynv/cuda:12.2-samples-r36.2.0"
ORIN = {"product": "Orin", "count": 1, "memory_mib": 7618}


def run(world, image=IMAGE, handler="nvidia", devices="all", **spec):
    node = world.node(architecture="arm64", kernel="5.15.148-tegra", gpu=ORIN, **spec)
    node.host.handlers["nvidia"] = ""
    main = container(
        "c",
        image,
        ["sh", "-c", "PATH=$PATH:/opt/cuda-samples/bin/aarch64/linux/release\ndeviceQuery && vectorAdd"],
        NVIDIA_VISIBLE_DEVICES=devices,
    )
    main["securityContext"] = {}
    pod = world.pod(
        node,
        {"restartPolicy": "Never", "runtimeClassName": handler, "containers": [main]}
        if handler
        else {"restartPolicy": "Never", "containers": [main]},
    )
    return pod


def text(pod):
    """The log without the timestamps of the container runtime."""
    return "\n".join(line.partition(" ")[2] for line in log(pod.main[0]).splitlines())


def test_a_jetson_reports_its_gpu_and_computes(world):
    pod = run(world, host_driver="540.4.0")
    world.until(lambda: pod.forced_phase or "terminated" in pod.main[0].state)
    output = text(pod)
    assert device_query.PASSED.search(output) and "Test PASSED" in output
    assert device_query.devices_in(output) == [device_query.Device("Orin", "12.6", 7618, True)]


def test_without_the_nvidia_runtime_cuda_finds_no_driver(world):
    pod = run(world, handler="", host_driver="540.4.0")
    world.until(lambda: "terminated" in pod.main[0].state)
    assert (
        device_query.error(text(pod)) == "CUDA error 35: CUDA driver version is insufficient for CUDA runtime version"
    )


def test_the_runtime_takes_no_other_names_for_the_gpu_than_its_number(world):
    assert "Result = PASS" in text(finished(world, "0"))
    pod = finished(world, "tegra")
    assert "unsupported device id: tegra" in pod.main[0].state["terminated"]["message"]


def finished(world, devices):
    pod = run(world, devices=devices, host_driver="540.4.0")
    world.until(lambda: "terminated" in pod.main[0].state)
    return pod


@pytest.mark.parametrize("image", ["nvidia/cuda:12.2.0-base-ubuntu22.04", "registry.example.com/team/cuda:1"])
def test_a_foreign_image_of_that_name_is_not_the_image_of_the_samples(world, image):
    pod = run(world, image, host_driver="540.4.0")
    world.until(lambda: pod.main[0].image_id)
    assert pod.main[0].image.family == ""
