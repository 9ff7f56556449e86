# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exported metrics, recorded metrics, and the number of their series."""

from __future__ import annotations

import csv
import io
import pathlib
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring import alerts, counters, rules
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring.thresholds import THRESHOLDS

TOP = pathlib.Path(__file__).resolve().parents[4]
PAGE = (TOP / "docs" / "alerts.md").read_text(encoding="utf-8")
#: Metrics of kube-state-metrics (c92fe0c5, docs/metrics/cluster/node-metrics.md and docs/metrics/workload/pod-metrics.md), exported without an allowlist.
KUBE_STATE_METRICS = {
    "kube_node_info",
    "kube_node_spec_taint",
    "kube_node_status_allocatable",
    "kube_node_status_capacity",
    "kube_pod_info",
    "kube_pod_status_ready",
}
METRIC = re.compile(r"\b(?:DCGM|kube)_\w+")
EXPORTERS = {"nvidia-dcgm-exporter-training": ("training", 8)}


def series(metric: str, job: str, gpu: int, value: str) -> dict[str, str]:
    namespace = f', exported_namespace="{job}", exported_pod="{job}-0"' if job else ""
    return {"series": f'{metric}{{hostname="n1", gpu="{gpu}", namespace="hwaccel-gpu"{namespace}}}', "values": value}


def test_the_counters_file_has_three_fields_per_line_and_no_duplicates() -> None:
    lines = list(csv.reader(io.StringIO(counters.csv(counters.exported(profiling=True)))))
    assert all(len(line) == 3 and all(line) for line in lines)
    assert {line[1].strip() for line in lines} == {"gauge", "counter", "label"}
    fields = [line[0] for line in lines]
    assert len(fields) == len(set(fields)) > 30


def test_profiling_metrics_are_only_exported_if_requested() -> None:
    assert "PROF" not in counters.csv(counters.exported(profiling=False))
    assert "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" in counters.csv(counters.exported(profiling=True))


def test_rules_use_metrics_that_are_exported_without_profiling() -> None:
    groups, _faults = rules.groups(EXPORTERS)
    used = {metric for group in groups for rule in group["rules"] for metric in METRIC.findall(rule["expr"])}
    exported = {one.field for one in counters.exported(profiling=False) if one.kind != "label"}
    assert {metric for metric in used if metric.startswith("kube")} == KUBE_STATE_METRICS
    assert {metric for metric in used if not metric.startswith("kube")} <= exported


def test_rules_use_rates_of_counters_and_not_of_gauges() -> None:
    kinds = {one.field: one.kind for one in counters.COUNTERS}
    for group in rules.groups(EXPORTERS)[0]:
        for rule in group["rules"]:
            for function, metric in re.findall(r"(\w+)\((DCGM_\w+)", rule["expr"]):
                assert (function in ("rate", "increase")) == (kinds[metric] == "counter"), rule


def test_usage_is_recorded_by_namespace(promtool: t.Callable[..., str]) -> None:
    given = [
        *(
            series("DCGM_FI_DEV_GPU_UTIL", job, gpu, f"{value}x5")
            for job, gpu, value in (("red", 0, 90), ("red", 1, 50), ("blue", 2, 10), ("", 3, 0))
        ),
        *(
            series("DCGM_FI_DEV_GPU_TEMP", job, gpu, "40x5")
            for job, gpu in (("red", 0), ("red", 1), ("blue", 2), ("", 3))
        ),
        series("DCGM_FI_DEV_FB_USED", "red", 0, "1024x5"),
        series("DCGM_FI_DEV_FB_USED", "red", 1, "1024x5"),
    ]
    expected = {
        "namespace:hwaccel_gpus:count": {"red": 2, "blue": 1},
        "namespace:hwaccel_gpu_utilization:avg": {"red": 0.7, "blue": 0.1},
        "namespace:hwaccel_gpu_memory_used_bytes:sum": {"red": 2 * 1024**3},
    }
    queries = [
        {
            "expr": name,
            "eval_time": "3m",
            "exp_samples": [
                {"labels": f'{name}{{exported_namespace="{namespace}"}}', "value": value}
                for namespace, value in values.items()
            ],
        }
        for name, values in expected.items()
    ]
    queries.append(
        {
            "expr": "cluster:hwaccel_gpus_seen:sum",
            "eval_time": "3m",
            "exp_samples": [{"labels": "cluster:hwaccel_gpus_seen:sum", "value": 4}],
        }
    )
    assert (
        promtool(
            "test", rules.groups(EXPORTERS)[0], {"interval": "1m", "input_series": given, "promql_expr_test": queries}
        )
        == ""
    )


def test_every_alert_has_a_section_and_every_threshold_is_documented() -> None:
    headings = re.findall(r"^## (Gpu\w+)$", PAGE, re.MULTILINE)
    assert headings == list(alerts.ALERTS)
    for section in PAGE.split("\n## ")[1:]:
        name = section.split("\n", 1)[0]
        if name in alerts.ALERTS:
            one = alerts.ALERTS[name]
            assert (
                f"**{one.severity}**, after {one.wait}" in section
                if one.wait != "0s"
                else f"**{one.severity}**, at once" in section
            ), name
            assert all(f"`{limit}`" in section for limit in re.findall(r"%\((\w+)\)", one.expression)), name
    for limit, threshold in THRESHOLDS.items():
        assert f"| `{limit}` | `{threshold.default}` | {threshold.meaning} | {threshold.source} |" in PAGE, limit


@pytest.mark.parametrize("profiling", [False, True])
def test_the_page_has_the_number_of_series_of_a_large_fleet(profiling: bool) -> None:
    assert f"{counters.series(1000, 8, profiling=profiling):,}" in PAGE
