# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CUDA's deviceQuery, with the output of NVIDIA/cuda-samples c94ff366, Samples/1_Utilities/deviceQuery/deviceQuery.cpp.

Only lines about devices and their memory are included. An integrated GPU has the capability of Orin's.
"""

from __future__ import annotations

from typing import Any

from fleet_agent.loop import Process
from fleet_agent.machine import nvml

_RUNTIME = "12.2"
_INSUFFICIENT, _NO_DEVICE = (
    (35, "CUDA driver version is insufficient for CUDA runtime version"),
    (100, "no CUDA-capable device is detected"),
)


def device_query(proc: Any) -> Process:
    proc.out(f"{proc.argv[0]} Starting...\n\n CUDA Device Query (Runtime API) version (CUDART static linking)\n\n")
    gpus = nvml.visible_gpus(proc.container)
    if not proc.container.driver_injected or not gpus:
        code, text = _NO_DEVICE if proc.container.driver_injected else _INSUFFICIENT
        proc.out(f"cudaGetDeviceCount returned {code}\n-> {text}\nResult = FAIL\n")
        return 1
    cuda = nvml.cuda_version(proc.host.modules["nvidia"])
    proc.say(f"Detected {len(gpus)} CUDA Capable device(s)")
    for index in range(len(gpus)):
        proc.out(_device(proc, index, cuda))
    proc.out(
        f"\ndeviceQuery, CUDA Driver = CUDART, CUDA Driver Version = {cuda}, CUDA Runtime Version = {_RUNTIME}, NumDevs = {len(gpus)}\nResult = PASS\n"
    )
    return 0
    yield


def _device(proc: Any, index: int, cuda: str) -> str:
    gpu, integrated = proc.host.spec.gpu, nvml.is_tegra(proc)
    name = gpu.product if integrated else gpu.product.replace("-", " ")
    return (
        f'\nDevice {index}: "{name}"\n'
        f"  CUDA Driver Version / Runtime Version          {cuda} / {_RUNTIME}\n"
        f"  CUDA Capability Major/Minor version number:    {'8.7' if integrated else '9.0'}\n"
        f"  Total amount of global memory:                 {gpu.memory_mib} MBytes ({gpu.memory_mib * 1048576} bytes)\n"
        "  Warp size:                                     32\n"
        f"  Integrated GPU sharing Host Memory:            {'Yes' if integrated else 'No'}\n"
        f"  Device has ECC support:                        {'Disabled' if integrated else 'Enabled'}\n"
    )
