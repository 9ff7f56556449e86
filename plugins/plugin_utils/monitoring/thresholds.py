# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of the alerts: values that a user may want to change, with their source."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: https://prometheus.io/docs/prometheus/latest/querying/basics/#time-durations
DURATION = re.compile(r"(\d+(ms|s|m|h|d|w|y))+")
_MEMORY = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/"
_LIMITS = "NVIDIA/DCGM 72fa3fe, common/DcgmGPUHardwareLimits.h"
_OURS = "chosen by this collection"


@dataclasses.dataclass(frozen=True)
class Threshold:
    """default: a number, or a duration in the format of Prometheus. source: where it comes from."""

    default: int | float | str
    meaning: str
    source: str


THRESHOLDS: dict[str, Threshold] = {
    "xid_hold": Threshold(
        "15m",
        "How long an Xid is shown after it occurred. Must be longer than the exporter's window of 5 minutes.",
        _OURS,
    ),
    "ecc_uncorrectable": Threshold(
        0,
        "Number of uncorrectable memory errors within an hour that is tolerated.",
        f"{_MEMORY}: each one ends the affected job",
    ),
    "rows_remapped": Threshold(
        0,
        "Number of rows remapped for uncorrectable errors within a day that is tolerated.",
        f"{_MEMORY}: each one is a defective row",
    ),
    "temperature_margin": Threshold(
        3, "Degrees C below the temperature at which the GPU or its memory slows down.", _OURS
    ),
    "power_capped_share": Threshold(0.9, "Share of the time in which the power limit reduces the clocks.", _OURS),
    "nvlink_recoveries": Threshold(
        0,
        "Number of recoveries of an NVLink within an hour that is tolerated.",
        f"{_LIMITS}: DCGM_LIMIT_MAX_NVLINK_ERROR 1 is one too many",
    ),
    "nvlink_crc_rate": Threshold(
        100, "CRC errors of NVLinks per second.", f"{_LIMITS}: DCGM_LIMIT_MAX_NVLINK_CRC_ERROR"
    ),
    "kernel_change_window": Threshold("1d", "How long an earlier kernel of a node is taken into account.", _OURS),
}


def values(meaning: c.Mapping[str, t.Any]) -> tuple[dict[str, int | float | str], list[Fault]]:
    """Defaults with the given values, and errors in them."""
    found: dict[str, int | float | str] = {name: one.default for name, one in THRESHOLDS.items()}
    faults = []
    for name, value in meaning.items():
        if name not in THRESHOLDS:
            faults.append(
                Fault(
                    f"threshold {name!r} is unknown",
                    "monitoring_thresholds",
                    "",
                    f"choose one of {', '.join(THRESHOLDS)}",
                )
            )
        elif isinstance(THRESHOLDS[name].default, str):
            if DURATION.fullmatch(str(value)):
                found[name] = str(value)
            else:
                faults.append(
                    Fault(
                        f"threshold {name} is not a duration",
                        "monitoring_thresholds",
                        repr(value),
                        'write it in the format of Prometheus, such as "30m"',
                    )
                )
        else:
            try:
                found[name] = float(value) if "." in str(value) else int(value)
            except (TypeError, ValueError):
                faults.append(
                    Fault(f"threshold {name} is not a number", "monitoring_thresholds", repr(value), "set a number")
                )
    return found, faults
