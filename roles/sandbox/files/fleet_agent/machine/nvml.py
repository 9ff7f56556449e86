# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVML for programs that load it: the driver's library, and GPUs that the container can open."""

from __future__ import annotations

from typing import Any

from fleet_agent.machine.cdi import LIBRARY

NO_LIBRARY, NO_MODULE = "ERROR_LIBRARY_NOT_FOUND", "ERROR_DRIVER_NOT_LOADED"


def visible_gpus(container: Any) -> list[int]:
    """GPUs that a process of the container can open now."""
    host = container.pod.kubelet.host
    if "nvidia" not in host.modules or host.spec.gpu is None or not host.gpus_work:
        return []
    if container.view.privileged:
        return list(range(host.spec.gpu.count))
    return list(container.gpus)


def is_tegra(proc: Any) -> bool:
    gpu = proc.host.spec.gpu
    return gpu is not None and gpu.product.lower().startswith(("tegra", "orin", "jetson"))


def error(proc: Any, driver_root: str = "") -> str:
    """NVML's error name, empty if it initializes."""
    if not proc.container.driver_injected and not (
        driver_root and proc.view.is_file(driver_root.rstrip("/") + LIBRARY)
    ):
        return NO_LIBRARY
    if "nvidia" not in proc.host.modules:
        return NO_MODULE
    return "" if gpus(proc) else "ERROR_NO_PERMISSION"


def gpus(proc: Any) -> list[int]:
    return visible_gpus(proc.container)


def hold(proc: Any) -> None:
    """The process keeps the device files open: so that the kernel modules cannot be unloaded."""
    proc.host.clients.add(proc.container.container_id)


#: nvmlErrorString. Of a library that cannot be loaded, go-nvml says its own name.
_TEXTS = {NO_MODULE: "Driver Not Loaded", "ERROR_NO_PERMISSION": "Insufficient Permissions"}


def text(name: str) -> str:
    """What programs print about an error of NVML."""
    return _TEXTS.get(name, name)


def cuda_version(driver: str) -> str:
    """CUDA version of a driver branch."""
    branch = driver.split(".", maxsplit=1)[0]
    return {
        "610": "13.3",
        "595": "13.2",
        "580": "13.0",
        "570": "12.8",
        "550": "12.4",
        "540": "12.6",
        "535": "12.2",
    }.get(branch, "13.0")
