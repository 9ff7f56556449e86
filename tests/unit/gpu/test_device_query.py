# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluation of deviceQuery's output. GOOD is the published output of an Orin NX."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import device_query
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.device_query import Device
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool, PoolGpu

GOOD = """deviceQuery Starting...

 CUDA Device Query (Runtime API) version (CUDART static linking)

Detected 1 CUDA Capable device(s)

Device 0: "Orin"
  CUDA Driver Version / Runtime Version          11.4 / 11.4
  CUDA Capability Major/Minor version number:    8.7
  Total amount of global memory:                 15388 MBytes (16136011776 bytes)
  (008) Multiprocessors, (128) CUDA Cores/MP:    1024 CUDA Cores
  Integrated GPU sharing Host Memory:            Yes

deviceQuery, CUDA Driver = CUDART, CUDA Driver Version = 11.4, CUDA Runtime Version = 11.4, NumDevs = 1
Result = PASS
"""
NO_DRIVER = """ CUDA Device Query (Runtime API) version (CUDART static linking)

cudaGetDeviceCount returned 35
-> CUDA driver version is insufficient for CUDA runtime version
Result = FAIL
"""
#: The product has 16 GB.
POOL = Pool("edge", gpu=PoolGpu("Orin", 1, 16384))


def test_devices_are_read_from_the_output() -> None:
    assert device_query.devices_in(GOOD) == [Device("Orin", "11.4", 15388, True)]
    second = 'Device 1: "NVIDIA RTX A6000"\n  Total amount of global memory:                 48676 MBytes\n'
    two = GOOD.replace("\ndeviceQuery, CUDA", f"\n{second}\ndeviceQuery, CUDA")
    assert device_query.devices_in(two) == [
        Device("Orin", "11.4", 15388, True),
        Device("NVIDIA RTX A6000", "", 48676, False),
    ]
    assert device_query.devices_in("") == [] and device_query.error(GOOD) == ""


@pytest.mark.parametrize("pool", [POOL, Pool("edge"), Pool("edge", gpu=PoolGpu(count=1))])
def test_expected_output_has_no_deviation(pool: Pool) -> None:
    assert device_query.deviations(GOOD, pool) == []


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (
            NO_DRIVER,
            "deviceQuery found no GPU: CUDA error 35: CUDA driver version is insufficient for CUDA runtime version",
        ),
        ("sh: deviceQuery: not found\n", "deviceQuery listed no GPU"),
        (GOOD.replace("Result = PASS", "Result = FAIL"), "its log has no line 'Result = PASS'"),
        (GOOD.replace("Orin", "NVIDIA Tegra X1"), "the pod sees a NVIDIA Tegra X1, Orin is expected"),
        (GOOD.replace("15388", "7618"), "the pod sees 7618 MiB of memory, 16384 MiB are expected"),
        (
            GOOD.replace("Memory:            Yes", "Memory:            No"),
            "the pod sees Orin, which is not an integrated GPU",
        ),
    ],
)
def test_deviations_are_reported(log: str, message: str) -> None:
    assert message in device_query.deviations(log, POOL)
