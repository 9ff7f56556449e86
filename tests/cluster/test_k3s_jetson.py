# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Jetson board joins a cluster of K3s and gets the GPU stack by site: NVIDIA's runtime gives what JetPack's CSV files list, on the stand-in for K3s.

Runtime and device plugin are real. The board has the architecture of this machine, so that a label says what the kernel's name would, and its validation is
that of other nodes; that of arm64 is shown in the sandbox (tests/live/test_allocation.py), and deviceQuery runs here by itself. Tests use the same machines, in
their order.
"""

from __future__ import annotations

import functools
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.tests.cluster.rig import pods
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_gpus import driven_site
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, K3sSite
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD
from ansible_collections.hwaccel.gpu.tests.node.rig.host_driver import JETSON_LIBRARY, OPEN_DEVICES, permitted
from ansible_collections.hwaccel.gpu.tests.node.rig.nvidia_images import defaults

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(k3s_rig: K3sRig, tmp_path_factory: pytest.TempPathFactory) -> K3sSite:
    site = driven_site(k3s_rig, tmp_path_factory.mktemp("toolkit"), ("s1",), ("orin1",), board=True)
    site.labels["orin1"][names.INTEGRATED_LABEL] = "true"
    run = site.play("site")
    assert run.rc == 0, run.stdout[-8000:]
    return site


def test_the_board_offers_its_gpu_once_a_pod_has_computed(made: K3sSite) -> None:
    node = made.client().get(NODE, "orin1")
    assert node["metadata"]["labels"]["nvidia.com/gpu.present"] == "true"
    assert gpus_of(node) == 1 and names.PROOF in node["metadata"]["annotations"]
    config = made.machines["orin1"].read(f"{DATA}/agent/etc/containerd/config.toml")
    assert "/usr/bin/nvidia-container-runtime" in config
    second = made.play("site")
    assert (second.rc, second.changed()) == (0, 0), second.stdout[-6000:]


def plugin(made: K3sSite) -> dict[str, t.Any]:
    (found,) = (
        one
        for one in made.client().list(POD).items
        if one["metadata"]["name"].startswith("nvidia-device-plugin") and one["spec"]["nodeName"] == "orin1"
    )
    return found


def test_the_device_plugin_runs_under_nvidia_s_runtime_and_gives_the_gpu_by_its_number(made: K3sSite) -> None:
    pod = plugin(made)
    assert pod["spec"]["runtimeClassName"] == "nvidia"
    container = pod["spec"]["containers"][0]["name"]
    logs = made.client().logs(pod["metadata"]["namespace"], pod["metadata"]["name"], container, tail_lines=200)
    assert '"deviceIDStrategy": "index"' in logs and '"envvar"' in logs, logs


def test_a_pod_gets_what_jetpack_lists_and_device_query_finds_the_gpu(made: K3sSite) -> None:
    image = defaults("gpu_validation")["gpu_validation_integrated_image"]
    ran = functools.partial(
        pods.output,
        made.client(),
        made.machines["orin1"],
        image=image,
        limits={"nvidia.com/gpu": 1},
        runtimeClassName="nvidia",
    )
    shown = ran("devices", f"cat {JETSON_LIBRARY}; {OPEN_DEVICES}")
    assert shown == "stand-in for libcuda.so\n" + permitted("/dev/nvidia0", "/dev/nvhost-gpu")
    queried = ran("query", "deviceQuery")
    assert "Integrated GPU sharing Host Memory:            Yes" in queried and "Result = PASS" in queried


def test_of_two_pods_that_want_the_gpu_one_waits_until_the_other_has_ended(made: K3sSite) -> None:
    run = made.play("validate", "-e", "gpu_validation_exclusivity=true")
    assert run.rc == 0, run.stdout[-6000:]
    assert "Insufficient nvidia.com/gpu" in run.stdout
    assert "allocation: 1 of 1 passed" in run.stdout
