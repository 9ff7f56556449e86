# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of each image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fleet_agent.machine import gpu_tools, images
from fleet_agent.programs import (
    all_reduce,
    device_plugin,
    device_query,
    driver,
    driver_manager,
    exporter,
    gfd,
    misc,
    nfd,
    nfd_master,
    toolkit,
    validator,
)

_OPERATOR: dict[str, Callable[..., Any]] = {
    "nvidia-validator": validator.validator,
    "vectorAdd": gpu_tools.vector_add,
    "gpu-operator": misc.operator,
    "driver-manager": driver_manager.manager,
}
_SAMPLE: dict[str, Callable[..., Any]] = {"vectorAdd": gpu_tools.vector_add}

PROGRAMS: dict[str, dict[str, Callable[..., Any]]] = {
    "driver": {"nvidia-driver": driver.driver},
    "k8s-driver-manager": {"driver-manager": driver_manager.manager, "k8s-driver-manager": driver_manager.manager},
    "container-toolkit": {"nvidia-toolkit": toolkit.toolkit, "nvidia-ctk-installer": toolkit.toolkit},
    "gpu-operator": _OPERATOR,
    "gpu-operator-validator": _OPERATOR,
    "k8s-device-plugin": {
        "nvidia-device-plugin": device_plugin.device_plugin,
        "gpu-feature-discovery": gfd.gfd,
        "config-manager": device_plugin.config_manager,
        "mps-control-daemon": misc.just_runs,
    },
    "node-feature-discovery": {
        "nfd-worker": nfd.worker,
        "nfd-master": nfd_master.master,
        "nfd-gc": nfd.gc,
        "nfd-topology-updater": nfd.topology_updater,
    },
    "dcgm-exporter": {"dcgm-exporter": exporter.exporter},
    "cuda-sample": _SAMPLE,
    "vectoradd": _SAMPLE,
    "cuda-vector-add": _SAMPLE,
    "cuda": _SAMPLE | {"deviceQuery": device_query.device_query},
    "pytorch": {"python3": all_reduce.python3, "python": all_reduce.python3},
    "pause": {"pause": misc.just_runs},
}
ENTRY_POINTS: dict[str, list[str]] = {
    "driver": ["nvidia-driver"],
    "k8s-driver-manager": ["driver-manager"],
    "container-toolkit": ["nvidia-ctk-installer"],
    "gpu-operator": ["gpu-operator"],
    "gpu-operator-validator": ["nvidia-validator"],
    "k8s-device-plugin": ["nvidia-device-plugin"],
    "dcgm-exporter": ["dcgm-exporter"],
    "cuda-sample": ["vectorAdd"],
    "vectoradd": ["vectorAdd"],
    "cuda-vector-add": ["vectorAdd"],
    "cuda": ["bash"],
    "pytorch": ["bash"],
    "pause": ["/pause"],
    "busybox": ["sh"],
}
DEFAULT_ARGUMENTS: dict[str, list[str]] = {"driver": ["init"]}


def find(image: images.Image, name: str) -> Callable[..., Any] | None:
    return PROGRAMS.get(image.family, {}).get(name)


def entry_point(image: images.Image) -> list[str]:
    return ENTRY_POINTS.get(image.family, [])


def default_arguments(image: images.Image) -> list[str]:
    return DEFAULT_ARGUMENTS.get(image.family, [])


def shell_in(image: images.Image) -> bool:
    return images.has_shell(image)
