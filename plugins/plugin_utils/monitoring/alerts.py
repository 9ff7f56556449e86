# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts as data: problems of GPUs, and of the components that monitor them.

DCGM_FI_DEV_XID_ERRORS keeps the last Xid forever (NVIDIA/dcgm-exporter #190, #500), so the exporter's counts within a window are used.
Some Xids are never reported (#162 names 79, 119 and 120): a missing GPU is also detected by its missing series.
Runbooks: docs/alerts.md, one section for each alert.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring.queries import (
    by_node,
    gpu_resources,
    not_ready,
    per_gpu,
    pods_of,
)

EXPORTER, PLUGIN, VALIDATOR = "nvidia-dcgm-exporter", "nvidia-device-plugin", "nvidia-validator"
#: Other deployments match too: NVIDIA's operator calls its DaemonSets nvidia-device-plugin-daemonset and nvidia-operator-validator, the exporter's
#: chart calls it dcgm-exporter.
EXPORTERS, PLUGINS, VALIDATORS = "(nvidia-)?dcgm-exporter(-.+)?", f"{PLUGIN}(-.+)?", "nvidia-(operator-)?validator"
#: A metric with one series for each GPU, which every exporter of DCGM's metrics has.
_SEEN = "DCGM_FI_DEV_GPU_TEMP"
NODE_GPUS_EXPECTED, NODE_GPUS_SEEN = "node:hwaccel_gpus_expected:count", "node:hwaccel_gpus_seen:count"


@dataclasses.dataclass(frozen=True)
class Alert:
    """expression: PromQL with thresholds as %(name)s. wait: how long it must be true. summary and description: as in Prometheus, {{ $labels.node }}.

    severity: critical, needs action now; warning, within a day; info, context for other alerts.
    """

    name: str
    severity: str
    wait: str
    expression: str
    summary: str
    description: str


@dataclasses.dataclass(frozen=True)
class XidClass:
    """Xids with the same severity and meaning, which are from: DCGM's health watch (NVIDIA/DCGM 72fa3fe, BuildXidMappings) and NVIDIA's Xid catalog."""

    name: str
    severity: str
    codes: tuple[int, ...]
    summary: str


XID_CLASSES = (
    XidClass("GpuXidBusLost", "critical", (79,), "has fallen off the bus"),
    XidClass("GpuXidMemoryUncorrectable", "critical", (48, 95, 140), "had a memory error that was not contained"),
    XidClass("GpuXidMemoryContained", "warning", (94,), "had a memory error that ended one job"),
    XidClass("GpuXidRowRemapRecorded", "warning", (63,), "has recorded a memory row to be remapped"),
    XidClass("GpuXidRowRemapFailed", "critical", (64,), "could not record a memory row to be remapped"),
    XidClass("GpuXidNvlink", "critical", (74,), "had a fatal NVLink error"),
    XidClass("GpuXidGsp", "critical", (119, 120), "has a system processor that does not respond"),
)
#: Xids without an alert: by the catalog's resolutions RESTART_APP and IGNORE, programs caused them, not hardware. 0 means none.
APPLICATION_XIDS = (0, 13, 31, 43, 45)
_WHERE = "GPU {{ $labels.gpu }} of {{ $labels.node }}"


def _counted(matcher: str) -> str:
    return f"max by (xid, node, gpu, UUID, modelName) ({by_node(f'max_over_time(DCGM_EXP_XID_ERRORS_COUNT{{{matcher}}}[%(xid_hold)s])')}) > 0"


def _xids() -> c.Iterator[Alert]:
    for one in XID_CLASSES:
        text = f"The driver reported Xid {{{{ $labels.xid }}}} of {_WHERE} ({{{{ $labels.UUID }}}}, {{{{ $labels.modelName }}}})."
        yield Alert(
            one.name, one.severity, "0s", _counted(f'xid=~"{_pattern(one.codes)}"'), f"{_WHERE} {one.summary}", text
        )
    known = [*APPLICATION_XIDS, *(code for one in XID_CLASSES for code in one.codes)]
    text = f"The driver reported Xid {{{{ $labels.xid }}}} of {_WHERE}. Xids that programs cause (13, 31, 43, 45) are not included."
    yield Alert(
        "GpuXidOther", "info", "0s", _counted(f'xid!~"{_pattern(sorted(known))}|"'), f"{_WHERE} had another Xid", text
    )


def _pattern(codes: c.Iterable[int]) -> str:
    return "|".join(map(str, codes))


HARDWARE = (
    *_xids(),
    Alert(
        "GpuEccUncorrectable",
        "critical",
        "0s",
        per_gpu("increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[1h])") + " > %(ecc_uncorrectable)s",
        f"{_WHERE} has uncorrectable memory errors",
        f"Within an hour {_WHERE} ({{{{ $labels.UUID }}}}) had more of them than %(ecc_uncorrectable)s.",
    ),
    Alert(
        "GpuRowsRemapped",
        "warning",
        "0s",
        per_gpu("increase(DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS[1d])") + " > %(rows_remapped)s",
        f"{_WHERE} has remapped memory rows",
        f"Within a day {_WHERE} ({{{{ $labels.UUID }}}}) remapped more rows than %(rows_remapped)s for uncorrectable errors.",
    ),
    Alert(
        "GpuRowRemapPending",
        "warning",
        "1h",
        per_gpu("DCGM_FI_DEV_ROW_REMAP_PENDING") + " > 0",
        f"{_WHERE} waits for a reset",
        f"A memory row of {_WHERE} ({{{{ $labels.UUID }}}}) will be remapped by its next reset.",
    ),
    Alert(
        "GpuRowRemapFailure",
        "critical",
        "0s",
        per_gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE") + " > 0",
        f"{_WHERE} has no memory rows left",
        f"A memory row of {_WHERE} ({{{{ $labels.UUID }}}}) could not be remapped, which is NVIDIA's criterion for its replacement.",
    ),
    Alert(
        "GpuHot",
        "warning",
        "5m",
        # Hopper and newer report the distance to their limit, older ones the limit itself.
        f"{per_gpu('DCGM_FI_DEV_GPU_TEMP_LIMIT')} <= %(temperature_margin)s or "
        f"{per_gpu('DCGM_FI_DEV_GPU_TEMP')} >= ({per_gpu('DCGM_FI_DEV_SLOWDOWN_TEMP')} > 0) - %(temperature_margin)s",
        f"{_WHERE} is about to slow down",
        f"{_WHERE} ({{{{ $labels.modelName }}}}) is within %(temperature_margin)s degrees of the temperature at which it slows down.",
    ),
    Alert(
        "GpuMemoryHot",
        "warning",
        "5m",
        f"{per_gpu('DCGM_FI_DEV_MEMORY_TEMP')} >= ({per_gpu('DCGM_FI_DEV_MEM_MAX_OP_TEMP')} > 0) - %(temperature_margin)s",
        f"The memory of {_WHERE} is about to slow it down",
        f"The memory of {_WHERE} ({{{{ $labels.modelName }}}}) is within %(temperature_margin)s degrees of its highest operating temperature.",
    ),
    Alert(
        "GpuThermalSlowdown",
        "critical",
        "5m",
        per_gpu('DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event=~"sw_thermal|hw_thermal"}') + " > 0",
        f"{_WHERE} is slowed down by heat",
        f"{_WHERE} ({{{{ $labels.modelName }}}}) reduces its clocks because it is too hot.",
    ),
    Alert(
        "GpuPowerBrake",
        "critical",
        "5m",
        per_gpu('DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event="hw_power_brake"}') + " > 0",
        f"{_WHERE} is slowed down by its power supply",
        f"The machine asserts the power brake of {_WHERE}, which reduces its clocks by half or more.",
    ),
    Alert(
        "GpuPowerCapped",
        "info",
        "1h",
        per_gpu("rate(DCGM_FI_DEV_POWER_VIOLATION[15m])") + " / 1e9 > %(power_capped_share)s",
        f"{_WHERE} is slowed down by its power limit",
        f"The power limit of {_WHERE} reduces its clocks more than %(power_capped_share)s of the time.",
    ),
    Alert(
        "GpuNvlinkRecovery",
        "critical",
        "0s",
        per_gpu("increase(DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL[1h])") + " > %(nvlink_recoveries)s",
        f"An NVLink of {_WHERE} had to recover",
        f"Within an hour NVLinks of {_WHERE} ({{{{ $labels.UUID }}}}) recovered more often than %(nvlink_recoveries)s times.",
    ),
    Alert(
        "GpuNvlinkCrcErrors",
        "warning",
        "5m",
        f"{per_gpu('rate(DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL[5m])')} > %(nvlink_crc_rate)s or "
        f"{per_gpu('rate(DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL[5m])')} > %(nvlink_crc_rate)s",
        f"NVLinks of {_WHERE} have many transmission errors",
        f"NVLinks of {_WHERE} ({{{{ $labels.UUID }}}}) have more than %(nvlink_crc_rate)s CRC errors in a second.",
    ),
)

_ALLOCATABLE, _CAPACITY = (
    f'max by (node, resource) (kube_node_status_{what}{{resource=~"{gpu_resources()}"}})'
    for what in ("allocatable", "capacity")
)
_KERNELS = (
    "count by (node) (count by (node, kernel_version) (last_over_time(kube_node_info[%(kernel_change_window)s]))) > 1"
)

FLEET = (
    Alert(
        "GpuMissing",
        "critical",
        "10m",
        f"{NODE_GPUS_EXPECTED} - on (node) group_left () {NODE_GPUS_SEEN} > 0",
        "{{ $labels.node }} lacks GPUs",
        "{{ $labels.node }} of pool {{ $labels.pool }} reports {{ $value }} GPUs fewer than the inventory declares.",
    ),
    Alert(
        "GpuNotAllocatable",
        "warning",
        "10m",
        f"{_CAPACITY} - {_ALLOCATABLE} > 0",
        "{{ $labels.node }} does not offer all of its GPUs",
        "{{ $value }} of {{ $labels.resource }} on {{ $labels.node }} are unhealthy according to its device plugin.",
    ),
    Alert(
        "GpuPluginDown",
        "critical",
        "15m",
        not_ready(PLUGINS),
        "{{ $labels.node }} has no device plugin",
        "The device plugin of {{ $labels.node }} is not ready, so no pod can use a GPU there.",
    ),
    Alert(
        "GpuExporterDown",
        "warning",
        "15m",
        f"max by (node) ({pods_of(EXPORTERS)}) unless on (node) max by (node) ({by_node(_SEEN)})",
        "{{ $labels.node }} has no GPU metrics",
        "An exporter is running on {{ $labels.node }}, but there are no metrics of its GPUs.",
    ),
    Alert(
        "GpuMetricsAbsent",
        "critical",
        "15m",
        f"absent({_SEEN})",
        "No GPU has metrics",
        "Prometheus has no metrics of any GPU.",
    ),
    Alert(
        "GpuGateClosed",
        "warning",
        "1h",
        not_ready(VALIDATORS),
        "The GPUs of {{ $labels.node }} are not proven",
        "The validator of {{ $labels.node }} is not ready: driver, runtime and CUDA have not been validated.",
    ),
    Alert(
        "GpuNodeQuarantined",
        "warning",
        "4h",
        f'max by (node) (kube_node_spec_taint{{key="{names.QUARANTINE}"}}) > 0',
        "{{ $labels.node }} is quarantined",
        f"{{{{ $labels.node }}}} has the taint {names.QUARANTINE}.",
    ),
    Alert(
        "GpuDriverLostWithKernel",
        "critical",
        "30m",
        f"{not_ready(VALIDATORS)} and on (node) ({_KERNELS})",
        "{{ $labels.node }} has a new kernel and no driver for it",
        "{{ $labels.node }} runs another kernel than before, and its GPUs have not been validated since.",
    ),
)

ALERTS = {one.name: one for one in (*HARDWARE, *FLEET)}
