# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rule groups of Prometheus: alerts with their limits, and recording rules."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring import alerts, thresholds
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring.queries import by_node, pods_of

Rule = dict[str, t.Any]
_CHANGES = ("severity", "for", "enabled")

#: Matches GPUs that are allocated to a pod. Prometheus adds `exported_` to labels of the exporter that the target has too.
_JOBS = 'exported_namespace!=""'
_ONE = "exported_namespace, node, gpu, GPU_I_ID"


def _by_namespace(metric: str) -> str:
    """One value for each GPU or MIG instance of a namespace."""
    return f"max by ({_ONE}) ({by_node(f'{metric}{{{_JOBS}}}')})"


#: Recording rules about usage, name to expression. There are no more series than nodes, or namespaces with GPUs.
RECORDED: dict[str, str] = {
    alerts.NODE_GPUS_SEEN: f"count by (node) (group by (node, gpu) ({by_node('DCGM_FI_DEV_GPU_TEMP')}))",
    "node:hwaccel_gpu_utilization:avg": f"avg by (node) ({by_node('DCGM_FI_DEV_GPU_UTIL')}) / 100",
    "cluster:hwaccel_gpus_seen:sum": f"sum({alerts.NODE_GPUS_SEEN})",
    "cluster:hwaccel_gpu_utilization:avg": "avg(DCGM_FI_DEV_GPU_UTIL) / 100",
    "namespace:hwaccel_gpus:count": f"count by (exported_namespace) ({_by_namespace('DCGM_FI_DEV_GPU_TEMP')})",
    "namespace:hwaccel_gpu_utilization:avg": f"avg by (exported_namespace) ({_by_namespace('DCGM_FI_DEV_GPU_UTIL')}) / 100",
    "namespace:hwaccel_gpu_memory_used_bytes:sum": f"sum by (exported_namespace) ({_by_namespace('DCGM_FI_DEV_FB_USED')}) * 1024 * 1024",
    "namespace:hwaccel_gpu_power_watts:sum": f"sum by (exported_namespace) ({_by_namespace('DCGM_FI_DEV_POWER_USAGE')})",
}


def expected(exporters: c.Mapping[str, tuple[str, int]]) -> list[Rule]:
    """Rules for the expected GPUs of each node of a pool. exporters: DaemonSet to its pool and the declared number.

    A node belongs to the pool whose exporter it has, which depends on its labels. So nodes that join later are included.
    """
    return [
        {
            "record": alerts.NODE_GPUS_EXPECTED,
            "expr": f"max by (node) ({pods_of(daemon_set)}) * {count}",
            "labels": {"pool": pool},
        }
        for daemon_set, (pool, count) in sorted(exporters.items())
    ]


def groups(
    exporters: c.Mapping[str, tuple[str, int]],
    limits: c.Mapping[str, t.Any] | None = None,
    changed: c.Mapping[str, c.Mapping[str, t.Any]] | None = None,
    runbooks: str = "",
) -> tuple[list[dict[str, t.Any]], list[Fault]]:
    """Groups in the format of a Prometheus rules file, and errors in the settings.

    limits: thresholds by name, which replace defaults. changed: severity, for and enabled by alert. runbooks: address of docs/alerts.md, empty for none.
    """
    given, faults = thresholds.values(limits or {})
    changed = changed or {}
    faults += _faults(changed)
    recorded = [{"record": name, "expr": expression} for name, expression in RECORDED.items()]
    made = [{"name": "hwaccel-gpu.rules", "rules": [*expected(exporters), *recorded]}]
    for name, members in (("hwaccel-gpu.hardware", alerts.HARDWARE), ("hwaccel-gpu.fleet", alerts.FLEET)):
        rules = [
            _rule(one, given, changed.get(one.name) or {}, runbooks)
            for one in members
            if (changed.get(one.name) or {}).get("enabled", True)
        ]
        if rules:
            made.append({"name": name, "rules": rules})
    return made, faults


def _rule(alert: alerts.Alert, limits: c.Mapping[str, t.Any], changed: c.Mapping[str, t.Any], runbooks: str) -> Rule:
    annotations = {"summary": alert.summary, "description": alert.description % limits}
    if runbooks:
        annotations["runbook_url"] = f"{runbooks}#{alert.name.lower()}"
    return {
        "alert": alert.name,
        "expr": alert.expression % limits,
        "for": str(changed.get("for") or alert.wait),
        "labels": {"severity": str(changed.get("severity") or alert.severity)},
        "annotations": annotations,
    }


def _faults(changed: c.Mapping[str, c.Mapping[str, t.Any]]) -> list[Fault]:
    where, faults = "monitoring_alerts", []
    for name, entry in changed.items():
        if name not in alerts.ALERTS:
            faults.append(Fault(f"alert {name!r} is unknown", where, "", f"choose one of {', '.join(alerts.ALERTS)}"))
        for key in sorted(set(entry or {}) - set(_CHANGES)):
            faults.append(
                Fault(f"{key!r} of alert {name} is unknown", where, "", f"choose one of {', '.join(_CHANGES)}")
            )
        if "for" in (entry or {}) and not thresholds.DURATION.fullmatch(str(entry["for"])):
            faults.append(
                Fault(
                    f"for of alert {name} is not a duration",
                    where,
                    repr(entry["for"]),
                    'write it in the format of Prometheus, such as "30m"',
                )
            )
    return faults
