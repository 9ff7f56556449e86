# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Panels query existing metrics, and Prometheus has a result for each of their queries."""

from __future__ import annotations

import itertools
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring import alerts, counters, rules
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring.dashboards import DASHBOARDS, Dashboard, model
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring.cases import pod_info
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring.panels import filled_in
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring.test_rules import KUBE_STATE_METRICS

#: Recorded metrics have colons. Prometheus itself provides ALERTS.
METRIC = re.compile(r"\b(?:\w+:hwaccel_\w+:\w+|DCGM_\w+|kube_\w+|ALERTS)\b")


def queries(dashboard: Dashboard, *, profiling: bool) -> list[str]:
    dashboard_model = model(dashboard, profiling=profiling)
    variables = [
        variable["query"]["query"] for variable in dashboard_model["templating"]["list"] if variable["type"] == "query"
    ]
    return [*variables, *(target["expr"] for panel in dashboard_model["panels"] for target in panel["targets"])]


def available(*, profiling: bool) -> set[str]:
    exported = {one.field for one in counters.exported(profiling=profiling) if one.kind != "label"}
    return exported | KUBE_STATE_METRICS | set(rules.RECORDED) | {alerts.NODE_GPUS_EXPECTED, "ALERTS"}


@pytest.mark.parametrize("profiling", [False, True])
@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)
def test_every_metric_of_a_panel_exists(dashboard: Dashboard, profiling: bool) -> None:
    for query in queries(dashboard, profiling=profiling):
        used = set(METRIC.findall(query))
        assert used, query
        assert used <= available(profiling=profiling), query


def exported(spelling: str) -> list[dict[str, str]]:
    """Series of one node from its exporter and kube-state-metrics: two GPUs, one of them with a job and an Xid."""
    job = ', exported_namespace="red", exported_pod="train-0"'
    made = [
        {
            "series": f'{one.field}{{{spelling}="n1", gpu="{gpu}", UUID="GPU-{gpu}", xid="13", clock_event="power_cap"{job if gpu else ""}}}',
            "values": "1+1x30",
        }
        for one in counters.exported(profiling=True)
        if one.kind != "label"
        for gpu in (0, 1)
    ]
    pod, values = pod_info("nvidia-dcgm-exporter-training-x", "nvidia-dcgm-exporter-training")
    return [*made, {"series": pod, "values": values}]


@pytest.mark.parametrize("spelling", ["hostname", "Hostname"])
@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)
def test_every_panel_shows_data_of_an_exporter(
    dashboard: Dashboard, spelling: str, promtool: t.Callable[..., str]
) -> None:
    groups, _faults = rules.groups({"nvidia-dcgm-exporter-training": ("training", 8)})
    # No metric is absent, so each query has a result.
    absent_tests = [
        {"expr": f"absent({filled_in(query)})", "eval_time": "20m", "exp_samples": []}
        for query in queries(dashboard, profiling=True)
    ]
    assert (
        promtool(
            "test", groups, {"interval": "1m", "input_series": exported(spelling), "promql_expr_test": absent_tests}
        )
        == ""
    )


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)
def test_panels_do_not_overlap_on_the_grid(dashboard: Dashboard) -> None:
    panels = model(dashboard, profiling=True)["panels"]
    boxes = [panel["gridPos"] for panel in panels]
    assert all(box["x"] + box["w"] <= 24 for box in boxes)
    for one, other in itertools.combinations(boxes, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below
    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)
def test_legends_have_labels_and_the_data_source_is_a_variable(dashboard: Dashboard) -> None:
    dashboard_model = model(dashboard, profiling=False)
    assert dashboard_model["templating"]["list"][0]["type"] == "datasource"
    for panel in dashboard_model["panels"]:
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
        assert panel["type"] == "stat" or all("{{" in target["legendFormat"] for target in panel["targets"])
