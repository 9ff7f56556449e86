# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards with an integrated GPU beside machines with cards: which objects the playbook `render` writes for each, and for which architecture."""

from __future__ import annotations

import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._state.placement import fits
from ansible_collections.hwaccel.gpu.tests.unit.repository.test_playbooks import run

POOLS = [
    {
        "name": "cards",
        "selector": "pool=cards",
        "gpu": {"product": "NVIDIA-H100-80GB-HBM3", "count": 8},
        "machines": [{"kernel": "6.8.0-134-generic", "os_image": "Ubuntu 24.04.3 LTS", "architecture": "amd64"}],
    },
    {
        "name": "boards",
        "selector": "pool=boards",
        "gpu": {"product": "Orin", "count": 1},
        "machines": [{"kernel": "5.15.148-tegra", "os_image": "Ubuntu 22.04.5 LTS", "architecture": "arm64"}],
    },
]
_NFD = "feature.node.kubernetes.io/"
#: The labels of an Orin from kubelet, NFD and our NodeFeatureRule. It has no GPU on a PCI bus. The toolkit comes with JetPack (docs/container-runtime.md).
BOARD = {
    "kubernetes.io/arch": "arm64",
    "kubernetes.io/os": "linux",
    "pool": "boards",
    f"{_NFD}cpu-model.vendor_id": "ARM",
    f"{_NFD}kernel-version.full": "5.15.148-tegra",
    f"{_NFD}system-os_release.ID": "ubuntu",
    f"{_NFD}system-os_release.VERSION_ID": "22.04",
    "hwaccel.gpu/integrated": "true",
    "nvidia.com/gpu.deploy.container-toolkit": "false",
}
CARDS = {
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
    "pool": "cards",
    f"{_NFD}pci-10de.present": "true",
    f"{_NFD}kernel-version.full": "6.8.0-134-generic",
    f"{_NFD}system-os_release.ID": "ubuntu",
    f"{_NFD}system-os_release.VERSION_ID": "24.04",
}
#: Images that are published for arm64 as well, according to the builds of their projects as of 2026-11: kubernetes-sigs/node-feature-discovery v0.19.0
#: (IMAGE_ALL_PLATFORMS in the Makefile), NVIDIA/k8s-device-plugin v0.20.0 and gpu-operator v26.7.0 (deployments/container/multi-arch.mk).
FOR_ARM64 = {"node-feature-discovery", "k8s-device-plugin", "gpu-operator"}


@pytest.fixture(scope="module")
def daemon_sets(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, t.Any]]:
    folder = tmp_path_factory.mktemp("jetson")
    variables = {
        "hwaccel_pools": POOLS,
        "hwaccel_stages": ["feature_discovery", "driver", "device_plugin", "monitoring"],
    }
    code, output = run(
        folder, "render", {"gpu_clusters": {"hosts": {"one": variables}}}, "-e", "hwaccel_render_to=rendered"
    )
    assert code == 0, output
    texts = [path.read_text(encoding="utf-8") for path in sorted((folder / "rendered").rglob("*.y*ml"))]
    found = [document for text in texts for document in yaml.safe_load_all(text) if document]
    return [one for one in found if one["kind"] == "DaemonSet"]


def pods_on(daemon_sets: list[dict[str, t.Any]], labels: dict[str, str]) -> dict[str, dict[str, t.Any]]:
    """Pod specs of the DaemonSets that run on a node with these labels, by name."""
    node = {"metadata": {"name": "one", "labels": labels}, "spec": {}}
    templates = {one["metadata"]["name"]: one["spec"]["template"] for one in daemon_sets}
    return {name: template["spec"] for name, template in templates.items() if fits(node, template)}


def test_a_board_runs_discovery_and_device_plugin_and_no_driver(daemon_sets: list[dict[str, t.Any]]) -> None:
    assert sorted(pods_on(daemon_sets, BOARD)) == [
        "gpu-feature-discovery",
        "nfd-worker",
        "nvidia-device-plugin",
        "nvidia-validator",
    ]


def test_a_machine_with_cards_runs_driver_toolkit_and_exporter_as_well(daemon_sets: list[dict[str, t.Any]]) -> None:
    more = sorted(pods_on(daemon_sets, CARDS).keys() - pods_on(daemon_sets, BOARD).keys())
    assert [name.partition("-cards")[0] for name in more] == [
        "nvidia-container-toolkit",
        "nvidia-dcgm-exporter",
        "nvidia-driver",
    ]


def test_every_image_of_a_board_is_published_for_its_architecture(daemon_sets: list[dict[str, t.Any]]) -> None:
    pods = pods_on(daemon_sets, BOARD).values()
    images = {
        container["image"] for spec in pods for container in [*spec.get("initContainers", ()), *spec["containers"]]
    }
    assert {image.rpartition(":")[0].rpartition("/")[2] for image in images} <= FOR_ARM64, images


def test_the_device_plugin_of_a_board_uses_the_runtime(daemon_sets: list[dict[str, t.Any]]) -> None:
    """The device plugin refuses CDI, which other machines use, where NVML is missing (tests/unit/fleet_agent/test_agent_gates.py runs this script on both)."""
    plugin = pods_on(daemon_sets, BOARD)["nvidia-device-plugin"]
    assert plugin["runtimeClassName"] == "nvidia"
    (mount,) = (one for one in plugin["containers"][0]["volumeMounts"] if one["mountPath"] == "/host")
    assert {volume["name"]: volume.get("hostPath") for volume in plugin["volumes"]}[mount["name"]] == {"path": "/"}
