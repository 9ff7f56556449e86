# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For each alert, series on which it fires and series on which it does not, in the notation of promtool: one value per minute."""

from __future__ import annotations

import dataclasses

#: Labels that the exporter writes for one GPU, and those that Prometheus adds (pod and namespace of the exporter; the job's become exported_*).
_LABELS = 'gpu="1", UUID="GPU-1", modelName="NVIDIA H100", pod="nvidia-dcgm-exporter-x", namespace="hwaccel-gpu"'
OF_GPU = {"node": "n1", "gpu": "1", "UUID": "GPU-1", "modelName": "NVIDIA H100"}

Series = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Case:
    """`after`: minutes until the evaluation. `labels`: labels of the alert that fires. `value`: the value in its text."""

    fires: Series
    silent: Series
    after: int
    labels: dict[str, str]
    value: str = ""


def gpu(metric: str, more: str = "", spelling: str = "hostname") -> str:
    return f'{metric}{{{_LABELS}, {spelling}="n1"{", " + more if more else ""}}}'


def one(metric: str, fires: str, silent: str, after: int, more: str = "") -> Case:
    return Case(((gpu(metric, more), fires),), ((gpu(metric, more), silent),), after, OF_GPU)


def xid(code: int, silent: int) -> Case:
    """The count of a window: it appears, stays as long as the window, and disappears. A GPU with another Xid does not fire."""
    window = "_x9 1x4 _x40"
    metric = "DCGM_EXP_XID_ERRORS_COUNT"
    return Case(
        ((gpu(metric, f'xid="{code}"'), window), (gpu(metric), "0x60")),
        ((gpu(metric, f'xid="{silent}"'), window), (gpu(metric), "0x60")),
        16,
        OF_GPU | {"xid": str(code)},
    )


def pod_info(name: str, owner: str, node: str = "n1") -> tuple[str, str]:
    labels = (
        f'namespace="hwaccel-gpu", pod="{name}", node="{node}", created_by_kind="DaemonSet", created_by_name="{owner}"'
    )
    return f"kube_pod_info{{{labels}}}", "1x200"


def pod_ready(name: str, values: str) -> tuple[str, str]:
    return f'kube_pod_status_ready{{namespace="hwaccel-gpu", pod="{name}", condition="true"}}', values


def unready(owner: str, after: int) -> Case:
    pod = pod_info(f"{owner}-x", owner)
    return Case((pod, pod_ready(f"{owner}-x", "0x200")), (pod, pod_ready(f"{owner}-x", "1x200")), after, {"node": "n1"})


def _amount(what: str, count: int) -> tuple[str, str]:
    return f'kube_node_status_{what}{{node="n1", resource="nvidia_com_gpu", unit="integer"}}', f"{count}x60"


def _gpu_series(number: int) -> Series:
    """Series of the GPUs of n1. One of them has two instances, which count as one GPU."""
    more = tuple((f'DCGM_FI_DEV_GPU_TEMP{{gpu="{index}", Hostname="n1"}}', "40x60") for index in range(1, number))
    halves = tuple(
        (f'DCGM_FI_DEV_GPU_TEMP{{gpu="0", Hostname="n1", GPU_I_ID="{number}"}}', "40x60") for number in (1, 2)
    )
    return halves + more


def _kernel(version: str, values: str) -> tuple[str, str]:
    return f'kube_node_info{{node="n1", kernel_version="{version}"}}', values


_TRAINING = pod_info("nvidia-dcgm-exporter-training-x", "nvidia-dcgm-exporter-training")
_VALIDATOR = (pod_info("nvidia-validator-x", "nvidia-validator"), pod_ready("nvidia-validator-x", "0x200"))

CASES: dict[str, Case] = {
    "GpuXidBusLost": xid(79, 94),
    "GpuXidMemoryUncorrectable": xid(95, 79),
    "GpuXidMemoryContained": xid(94, 95),
    "GpuXidRowRemapRecorded": xid(63, 64),
    "GpuXidRowRemapFailed": xid(64, 63),
    "GpuXidNvlink": xid(74, 79),
    "GpuXidGsp": xid(119, 79),
    "GpuXidOther": xid(109, 43),
    # The counter restarts at 0 with the driver, which is no error.
    "GpuEccUncorrectable": one("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "0x10 1x50", "3x10 0x50", 20),
    "GpuRowsRemapped": one("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "2x10 3x50", "3x60", 20),
    "GpuRowRemapPending": one("DCGM_FI_DEV_ROW_REMAP_PENDING", "1x90", "0x90", 70),
    "GpuRowRemapFailure": one("DCGM_FI_DEV_ROW_REMAP_FAILURE", "1x10", "0x10", 5),
    "GpuHot": Case(
        ((gpu("DCGM_FI_DEV_GPU_TEMP"), "88x20"), (gpu("DCGM_FI_DEV_SLOWDOWN_TEMP"), "90x20")),
        (
            (gpu("DCGM_FI_DEV_GPU_TEMP"), "88x20"),
            (gpu("DCGM_FI_DEV_SLOWDOWN_TEMP"), "0x20"),
            (gpu("DCGM_FI_DEV_GPU_TEMP_LIMIT"), "12x20"),
        ),
        15,
        OF_GPU,
    ),
    "GpuMemoryHot": Case(
        ((gpu("DCGM_FI_DEV_MEMORY_TEMP"), "94x20"), (gpu("DCGM_FI_DEV_MEM_MAX_OP_TEMP"), "95x20")),
        ((gpu("DCGM_FI_DEV_MEMORY_TEMP"), "91x20"), (gpu("DCGM_FI_DEV_MEM_MAX_OP_TEMP"), "95x20")),
        15,
        OF_GPU,
    ),
    "GpuThermalSlowdown": Case(
        ((gpu("DCGM_EXP_CLOCK_EVENTS_COUNT", 'clock_event="hw_thermal"'), "4x20"),),
        ((gpu("DCGM_EXP_CLOCK_EVENTS_COUNT", 'clock_event="power_cap"'), "4x20"),),
        15,
        OF_GPU,
    ),
    "GpuPowerBrake": Case(
        ((gpu("DCGM_EXP_CLOCK_EVENTS_COUNT", 'clock_event="hw_power_brake"'), "4x20"),),
        ((gpu("DCGM_EXP_CLOCK_EVENTS_COUNT", 'clock_event="hw_slowdown"'), "4x20"),),
        15,
        OF_GPU,
    ),
    # 57 and 30 seconds of each minute, in ns.
    "GpuPowerCapped": one("DCGM_FI_DEV_POWER_VIOLATION", "0+57000000000x120", "0+30000000000x120", 100),
    "GpuNvlinkRecovery": one("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "0x10 1x50", "4x60", 20),
    "GpuNvlinkCrcErrors": one("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "0+12000x30", "0+60x30", 20),
    "GpuMissing": Case(
        (_TRAINING, *_gpu_series(7)), (_TRAINING, *_gpu_series(8)), 20, {"node": "n1", "pool": "training"}, "1"
    ),
    "GpuNotAllocatable": Case(
        (_amount("capacity", 8), _amount("allocatable", 7)),
        (_amount("capacity", 8), _amount("allocatable", 8)),
        20,
        {"node": "n1", "resource": "nvidia_com_gpu"},
        "1",
    ),
    "GpuPluginDown": unready("nvidia-device-plugin", 20),
    "GpuExporterDown": Case(
        (_TRAINING,), (_TRAINING, (gpu("DCGM_FI_DEV_GPU_TEMP", spelling="Hostname"), "40x60")), 20, {"node": "n1"}
    ),
    "GpuMetricsAbsent": Case((("up", "1x60"),), ((gpu("DCGM_FI_DEV_GPU_TEMP"), "40x60"),), 20, {}),
    "GpuGateClosed": unready("nvidia-operator-validator", 70),
    "GpuNodeQuarantined": Case(
        (('kube_node_spec_taint{node="n1", key="hwaccel.gpu/quarantine", effect="NoSchedule"}', "1x300"),),
        (('kube_node_spec_taint{node="n1", key="node.kubernetes.io/unreachable", effect="NoSchedule"}', "1x300"),),
        250,
        {"node": "n1"},
    ),
    "GpuDriverLostWithKernel": Case(
        (*_VALIDATOR, _kernel("6.8.0-1", "1x20"), _kernel("6.8.0-2", "_x20 1x100")),
        (*_VALIDATOR, _kernel("6.8.0-1", "1x120")),
        70,
        {"node": "n1"},
    ),
}
