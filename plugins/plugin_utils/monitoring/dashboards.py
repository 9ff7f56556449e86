# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Grafana dashboards as data: the fleet, one node, one job.

https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring import alerts
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring.queries import by_node

#: Version of the model. A newer Grafana migrates it.
SCHEMA = 39
#: Default width in a grid of 24 columns.
_HEIGHTS = {"stat": 4, "timeseries": 8}
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_MIB = "decmbytes"


@dataclasses.dataclass(frozen=True)
class Panel:
    """queries: PromQL to its legend. unit: Grafana's name. kind: stat or timeseries."""

    title: str
    queries: dict[str, str]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12


@dataclasses.dataclass(frozen=True)
class Dashboard:
    """variables: name to the query of its values. profiling: panels of metrics that are only exported on request."""

    name: str
    title: str
    variables: dict[str, str]
    panels: tuple[Panel, ...]
    profiling: tuple[Panel, ...] = ()


def _number(title: str, query: str, unit: str = "short") -> Panel:
    return Panel(title, {query: ""}, unit, "stat", 4)


def _of_node(metric: str, function: str = "") -> str:
    """The metric of the selected nodes, with either label of the exporter. function: over the interval of a panel's step."""
    found = (f'{metric}{{{label}=~"$node"}}' for label in ("hostname", "Hostname"))
    return by_node(" or ".join(f"{function}({one}[$__rate_interval])" if function else one for one in found))


def _of_job(metric: str) -> str:
    return by_node(f'{metric}{{exported_namespace=~"$namespace", exported_pod=~"$pod"}}')


_GPU, _POD = "{{node}} GPU {{gpu}}", "{{exported_pod}}: {{node}} GPU {{gpu}}"
_FIRING = 'count(ALERTS{alertname=~"Gpu.+", alertstate="firing"}) or vector(0)'

FLEET = Dashboard(
    "fleet",
    "GPUs: fleet",
    {},
    (
        _number("GPUs", "cluster:hwaccel_gpus_seen:sum"),
        _number(
            "Missing",
            f"sum({alerts.NODE_GPUS_EXPECTED}) - sum({alerts.NODE_GPUS_SEEN} and on (node) {alerts.NODE_GPUS_EXPECTED})",
        ),
        _number("Utilization", "cluster:hwaccel_gpu_utilization:avg", "percentunit"),
        _number("Power", "sum(DCGM_FI_DEV_POWER_USAGE)", "watt"),
        _number("Quarantined nodes", f'count(kube_node_spec_taint{{key="{names.QUARANTINE}"}}) or vector(0)'),
        _number("Alerts", _FIRING),
        Panel("GPUs by namespace", {"namespace:hwaccel_gpus:count": "{{exported_namespace}}"}),
        Panel(
            "Utilization by namespace",
            {"namespace:hwaccel_gpu_utilization:avg": "{{exported_namespace}}"},
            "percentunit",
        ),
        Panel(
            "Memory by namespace", {"namespace:hwaccel_gpu_memory_used_bytes:sum": "{{exported_namespace}}"}, "bytes"
        ),
        Panel("Power by namespace", {"namespace:hwaccel_gpu_power_watts:sum": "{{exported_namespace}}"}, "watt"),
        Panel("Least used nodes", {"bottomk(10, node:hwaccel_gpu_utilization:avg)": "{{node}}"}, "percentunit"),
        Panel("Hottest GPUs", {f"topk(10, {by_node('DCGM_FI_DEV_GPU_TEMP')})": _GPU}, "celsius"),
        Panel(
            "Xids",
            {f"sum by (node, xid) ({by_node('DCGM_EXP_XID_ERRORS_COUNT')}) > 0": "{{node}} Xid {{xid}}"},
            width=24,
        ),
    ),
)

NODE = Dashboard(
    "node",
    "GPUs: node",
    {"node": f"label_values({alerts.NODE_GPUS_SEEN}, node)"},
    (
        Panel("Utilization", {_of_node("DCGM_FI_DEV_GPU_UTIL"): _GPU}, "percent"),
        Panel("Memory used", {_of_node("DCGM_FI_DEV_FB_USED"): _GPU}, _MIB),
        Panel(
            "Temperature",
            {_of_node("DCGM_FI_DEV_GPU_TEMP"): _GPU, _of_node("DCGM_FI_DEV_MEMORY_TEMP"): f"{_GPU} memory"},
            "celsius",
        ),
        Panel(
            "Power",
            {_of_node("DCGM_FI_DEV_POWER_USAGE"): _GPU, _of_node("DCGM_FI_DEV_ENFORCED_POWER_LIMIT"): f"{_GPU} limit"},
            "watt",
        ),
        Panel("SM clock", {f"{_of_node('DCGM_FI_DEV_SM_CLOCK')} * 1e6": _GPU}, "hertz"),
        Panel("Reasons for reduced clocks", {_of_node("DCGM_EXP_CLOCK_EVENTS_COUNT"): f"{_GPU} {{{{clock_event}}}}"}),
        Panel("Xids", {_of_node("DCGM_EXP_XID_ERRORS_COUNT"): f"{_GPU} Xid {{{{xid}}}}"}),
        Panel(
            "Memory errors",
            {
                _of_node("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "increase"): f"{_GPU} correctable",
                _of_node("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "increase"): f"{_GPU} uncorrectable",
            },
        ),
        Panel(
            "Memory rows remapped",
            {
                _of_node("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"): f"{_GPU} correctable",
                _of_node("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"): f"{_GPU} uncorrectable",
                _of_node("DCGM_FI_DEV_ROW_REMAP_PENDING"): f"{_GPU} pending",
            },
        ),
        Panel(
            "Links",
            {
                _of_node("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "increase"): f"{_GPU} NVLink recoveries",
                _of_node("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "increase"): f"{_GPU} NVLink replays",
                _of_node("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "increase"): f"{_GPU} PCIe replays",
            },
        ),
    ),
    (
        Panel("SMs active", {_of_node("DCGM_FI_PROF_SM_ACTIVE"): _GPU}, "percentunit"),
        Panel("Tensor pipes active", {_of_node("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"): _GPU}, "percentunit"),
    ),
)

JOB = Dashboard(
    "job",
    "GPUs: job",
    {
        "namespace": "label_values(DCGM_FI_DEV_GPU_UTIL, exported_namespace)",
        "pod": 'label_values(DCGM_FI_DEV_GPU_UTIL{exported_namespace=~"$namespace"}, exported_pod)',
    },
    (
        _number("GPUs", f"count({_of_job('DCGM_FI_DEV_GPU_TEMP')})"),
        _number("Utilization", f"avg({_of_job('DCGM_FI_DEV_GPU_UTIL')}) / 100", "percentunit"),
        _number("Power", f"sum({_of_job('DCGM_FI_DEV_POWER_USAGE')})", "watt"),
        Panel("Utilization", {_of_job("DCGM_FI_DEV_GPU_UTIL"): _POD}, "percent"),
        Panel("Memory used", {_of_job("DCGM_FI_DEV_FB_USED"): _POD}, _MIB),
        Panel("SM clock", {f"{_of_job('DCGM_FI_DEV_SM_CLOCK')} * 1e6": _POD}, "hertz"),
        Panel("Power", {_of_job("DCGM_FI_DEV_POWER_USAGE"): _POD}, "watt"),
        Panel("Xids", {f"{_of_job('DCGM_EXP_XID_ERRORS_COUNT')} > 0": f"{_POD} Xid {{{{xid}}}}"}, width=24),
    ),
    (
        Panel("SMs active", {_of_job("DCGM_FI_PROF_SM_ACTIVE"): _POD}, "percentunit"),
        Panel("Tensor pipes active", {_of_job("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"): _POD}, "percentunit"),
    ),
)

DASHBOARDS = (FLEET, NODE, JOB)


def model(dashboard: Dashboard, *, profiling: bool) -> dict[str, t.Any]:
    """The dashboard in Grafana's format. Its data source is a variable, for which Grafana selects its default Prometheus."""
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    return {
        "uid": f"hwaccel-gpu-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["gpu", "hwaccel"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": [source, *(_variable(name, query) for name, query in dashboard.variables.items())]},
        "panels": list(_placed((*dashboard.panels, *(dashboard.profiling if profiling else ())))),
    }


def _variable(name: str, query: str) -> dict[str, t.Any]:
    """Variables by name. Several values can be selected, and the first one is the default."""
    target = {"query": query, "refId": name}
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": target,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
    }


def _placed(panels: c.Iterable[Panel]) -> c.Iterator[dict[str, t.Any]]:
    """Places panels from left to right. A panel that does not fit starts a new row."""
    x = y = height = 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > 24:
            x, y = 0, y + height
        height = _HEIGHTS[panel.kind]
        yield {
            "id": number,
            "title": panel.title,
            "type": panel.kind,
            "datasource": _SOURCE,
            "gridPos": {"x": x, "y": y, "w": panel.width, "h": height},
            "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
            "targets": [
                {"refId": chr(ord("A") + place), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
                for place, (query, legend) in enumerate(panel.queries.items())
            ],
        }
        x += panel.width
