# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each alert fires on its fault and on nothing else, tested with promtool."""

from __future__ import annotations

import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring import alerts, rules, thresholds
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring.cases import CASES, Case, Series, gpu, pod_info

EXPORTERS = {"nvidia-dcgm-exporter-training": ("training", 8)}
RUNBOOKS = "https://example.com/alerts.md"


def rendered(**given: t.Any) -> list[dict[str, t.Any]]:
    groups, faults = rules.groups(EXPORTERS, runbooks=RUNBOOKS, **given)
    assert faults == []
    return groups


def rule_of(groups: list[dict[str, t.Any]], name: str) -> dict[str, t.Any]:
    return next(rule for group in groups for rule in group["rules"] if rule.get("alert") == name)


def alert_test(name: str, case: Case, series: Series, fired: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    return {
        "interval": "1m",
        "input_series": [{"series": metric, "values": numbers} for metric, numbers in series],
        "alert_rule_test": [{"eval_time": f"{case.after}m", "alertname": name, "exp_alerts": fired}],
    }


def filled_in(text: str, case: Case) -> str:
    """An annotation with its variables replaced like by Prometheus."""
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: case.labels[found[1]], text).replace(
        "{{ $value }}", case.value
    )


def fired_by(rule: dict[str, t.Any], case: Case) -> dict[str, t.Any]:
    return {
        "exp_labels": rule["labels"] | case.labels,
        "exp_annotations": {key: filled_in(text, case) for key, text in rule["annotations"].items()},
    }


def test_every_alert_has_a_case() -> None:
    assert set(CASES) == set(alerts.ALERTS)


@pytest.mark.parametrize("name", alerts.ALERTS)
def test_an_alert_fires_on_its_fault_and_on_nothing_else(name: str, promtool: t.Callable[..., str]) -> None:
    groups, case = rendered(), CASES[name]
    fired = fired_by(rule_of(groups, name), case)
    assert (
        promtool("test", groups, alert_test(name, case, case.fires, [fired]), alert_test(name, case, case.silent, []))
        == ""
    )


@pytest.mark.parametrize("name", ["GpuXidBusLost", "GpuRowRemapFailure", "GpuThermalSlowdown"])
def test_the_older_spelling_of_the_node_label_is_supported(name: str, promtool: t.Callable[..., str]) -> None:
    groups, case = rendered(), CASES[name]
    older = tuple((metric.replace("hostname=", "Hostname="), numbers) for metric, numbers in case.fires)
    fired = fired_by(rule_of(groups, name), case)
    assert older != case.fires
    assert promtool("test", groups, alert_test(name, case, older, [fired])) == ""


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("GpuExporterDown", "dcgm-exporter"),
        ("GpuPluginDown", "nvidia-device-plugin-daemonset"),
        ("GpuGateClosed", "nvidia-validator"),
    ],
)
def test_components_of_other_deployers_are_monitored_too(name: str, owner: str, promtool: t.Callable[..., str]) -> None:
    groups, case = rendered(), CASES[name]
    fired = fired_by(rule_of(groups, name), case)
    assert promtool("test", groups, alert_test(name, case, (pod_info(f"{owner}-x", owner),), [fired])) == ""


def test_a_sticky_xid_stops_firing_after_its_hold_time(promtool: t.Callable[..., str]) -> None:
    case = Case((), (), 45, {})
    series = (*CASES["GpuXidBusLost"].fires, (gpu("DCGM_FI_DEV_XID_ERRORS", 'err_code="79"'), "79x60"))
    assert promtool("test", rendered(), alert_test("GpuXidBusLost", case, series, [])) == ""


def test_prometheus_accepts_the_rules(promtool: t.Callable[..., str]) -> None:
    assert promtool("check", rendered()) == ""


OTHER = {
    "xid_hold": "2h",
    "kernel_change_window": "3d",
    **{name: 7 for name, one in thresholds.THRESHOLDS.items() if not isinstance(one.default, str)},
}


@pytest.mark.parametrize("name", thresholds.THRESHOLDS)
def test_a_configured_threshold_changes_its_alerts(name: str) -> None:
    usual, changed = rendered(), rendered(limits={name: OTHER[name]})
    assert usual != changed
    assert all(one.source for one in thresholds.THRESHOLDS.values())


def test_severity_wait_and_activation_can_be_changed() -> None:
    groups = rendered(changed={"GpuHot": {"severity": "info", "for": "20m"}, "GpuPowerCapped": {"enabled": False}})
    assert rule_of(groups, "GpuHot")["labels"] == {"severity": "info"}
    assert rule_of(groups, "GpuHot")["for"] == "20m"
    assert "GpuPowerCapped" not in {rule.get("alert") for group in groups for rule in group["rules"]}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"limits": {"temprature": 5}}, "threshold 'temprature' is unknown"),
        ({"limits": {"xid_hold": "long"}}, "threshold xid_hold is not a duration"),
        ({"limits": {"nvlink_crc_rate": "many"}}, "threshold nvlink_crc_rate is not a number"),
        ({"changed": {"GpuCold": {}}}, "alert 'GpuCold' is unknown"),
        ({"changed": {"GpuHot": {"level": "info"}}}, "'level' of alert GpuHot is unknown"),
        ({"changed": {"GpuHot": {"for": "x"}}}, "for of alert GpuHot is not a duration"),
    ],
)
def test_an_invalid_setting_is_a_fault(given: dict[str, t.Any], what: str) -> None:
    _groups, faults = rules.groups({}, **given)
    assert [fault.what for fault in faults] == [what]


def test_every_alert_has_a_severity_a_node_and_a_runbook() -> None:
    groups = rendered()
    for name, one in alerts.ALERTS.items():
        rule = rule_of(groups, name)
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["runbook_url"] == f"{RUNBOOKS}#{name.lower()}"
        assert "node" in one.summary or name == "GpuMetricsAbsent"
    assert "runbook_url" not in rule_of(rules.groups({})[0], "GpuHot")["annotations"]
