# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of the exporter: its counters file as data.

Names, types and help are those of NVIDIA/dcgm-exporter d5e5f51 (4.5.3-4.8.2), etc/default-counters.csv and etc/dcp-metrics-included.csv, which
has the errors, the violations and DCGM_EXP_* commented out. Names in neither file are fields of NVIDIA/DCGM 72fa3fe, dcgmlib/dcgm_fields.h.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses

#: Clock events of the exporter (clock_events_collector.go, clockEventToString), each with one series while it lasts.
CLOCK_EVENTS = 9


@dataclasses.dataclass(frozen=True)
class Counter:
    """One line. kind: gauge, counter, or label (no series of its own). series: maximum number for one GPU."""

    field: str
    kind: str
    help: str
    series: int = 1


_DEV = "DCGM_FI_DEV_"
COUNTERS = (
    Counter(_DEV + "SM_CLOCK", "gauge", "SM clock frequency (in MHz)."),
    Counter(_DEV + "MEM_CLOCK", "gauge", "Memory clock frequency (in MHz)."),
    Counter(_DEV + "GPU_TEMP", "gauge", "GPU temperature (in C)."),
    Counter(_DEV + "MEMORY_TEMP", "gauge", "Memory temperature (in C)."),
    Counter(_DEV + "SLOWDOWN_TEMP", "gauge", "Temperature at which the GPU slows down (in C)."),
    Counter(_DEV + "GPU_TEMP_LIMIT", "gauge", "Distance to the nearest slowdown temperature (in C)."),
    Counter(_DEV + "MEM_MAX_OP_TEMP", "gauge", "Memory temperature above which the GPU slows down (in C)."),
    Counter(_DEV + "POWER_USAGE", "gauge", "Power draw (in W)."),
    Counter(_DEV + "ENFORCED_POWER_LIMIT", "gauge", "Power limit that is enforced (in W)."),
    Counter(_DEV + "TOTAL_ENERGY_CONSUMPTION", "counter", "Total energy consumption since boot (in mJ)."),
    Counter(_DEV + "POWER_VIOLATION", "counter", "Throttling duration due to power constraints (in ns)."),
    Counter(_DEV + "PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries."),
    Counter(_DEV + "GPU_UTIL", "gauge", "GPU utilization (in %)."),
    Counter(_DEV + "MEM_COPY_UTIL", "gauge", "Memory utilization (in %)."),
    Counter(_DEV + "FB_USED", "gauge", "Framebuffer memory used (in MiB)."),
    Counter(_DEV + "FB_FREE", "gauge", "Framebuffer memory free (in MiB)."),
    Counter(_DEV + "FB_RESERVED", "gauge", "Framebuffer memory reserved (in MiB)."),
    Counter(_DEV + "XID_ERRORS", "gauge", "Value of the last XID error encountered."),
    # The previous metric keeps its value until another Xid occurs. These count events within a window.
    Counter("DCGM_EXP_XID_ERRORS_COUNT", "gauge", "reported XIDs during last window"),
    Counter("DCGM_EXP_CLOCK_EVENTS_COUNT", "gauge", "reported clock events", CLOCK_EVENTS),
    Counter(_DEV + "ECC_SBE_VOL_TOTAL", "counter", "Total number of single-bit volatile ECC errors."),
    Counter(_DEV + "ECC_DBE_VOL_TOTAL", "counter", "Total number of double-bit volatile ECC errors."),
    Counter(_DEV + "CORRECTABLE_REMAPPED_ROWS", "counter", "Number of remapped rows for correctable errors"),
    Counter(_DEV + "UNCORRECTABLE_REMAPPED_ROWS", "counter", "Number of remapped rows for uncorrectable errors"),
    Counter(_DEV + "ROW_REMAP_FAILURE", "gauge", "Whether remapping of rows has failed"),
    Counter(_DEV + "ROW_REMAP_PENDING", "gauge", "Whether remapping of rows is pending"),
    Counter(_DEV + "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "counter", "Total number of NVLink flow-control CRC errors."),
    Counter(_DEV + "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "counter", "Total number of NVLink data CRC errors."),
    Counter(_DEV + "NVLINK_REPLAY_ERROR_COUNT_TOTAL", "counter", "Total number of NVLink retries."),
    Counter(_DEV + "NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "counter", "Total number of NVLink recovery errors."),
    Counter(_DEV + "NVLINK_BANDWIDTH_TOTAL", "counter", "Total number of NVLink bandwidth counters for all lanes."),
    Counter("DCGM_FI_DRIVER_VERSION", "label", "Driver Version"),
)

#: Metrics of the hardware's profiling unit, which need the capability SYS_ADMIN and prevent other profilers from using the GPU.
PROFILING = (
    Counter("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active."),
    Counter("DCGM_FI_PROF_SM_ACTIVE", "gauge", "The ratio of cycles an SM has at least 1 warp assigned."),
    Counter("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Ratio of cycles the tensor (HMMA) pipe is active."),
    Counter(
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
    ),
    Counter(
        "DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "The rate of data transmitted over the PCIe bus in bytes per second."
    ),
    Counter("DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "The rate of data received over the PCIe bus in bytes per second."),
)


def exported(*, profiling: bool) -> tuple[Counter, ...]:
    return COUNTERS + (PROFILING if profiling else ())


def csv(counters: c.Iterable[Counter]) -> str:
    """The file in the exporter's format: field, Prometheus type, help. The help must not contain a comma."""
    return "".join(f"{one.field}, {one.kind}, {one.help}\n" for one in counters)


def series(nodes: int, gpus: int, *, profiling: bool = False) -> int:
    """Maximum number of series in Prometheus for a number of nodes and GPUs of each. MIG instances count as GPUs."""
    return nodes * gpus * sum(one.series for one in exported(profiling=profiling) if one.kind != "label")
