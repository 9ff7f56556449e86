# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's objects: the exporter of a node, the configuration of Prometheus, and changes beside an existing exporter."""

from __future__ import annotations

import re
import shutil
import subprocess
import typing as t
from pathlib import Path

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring import alerts
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring.thresholds import THRESHOLDS
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.scheduling import (
    INFERENCE,
    TRAINING,
    daemon_sets,
    node,
    run,
    takes,
)
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

SWITCH = "nvidia.com/gpu.deploy.dcgm-exporter"
SERVED = {
    "prometheus_operator": [
        {
            "kind": "CustomResourceDefinition",
            "namespace": "",
            "name": "servicemonitors.monitoring.coreos.com",
            "image": "",
        }
    ]
}
FOUND = {
    "dcgm_exporter": [
        {"kind": "DaemonSet", "namespace": "theirs", "name": "dcgm-exporter", "image": "x/dcgm-exporter:1"}
    ]
}


def plan(existing: dict[str, t.Any] | None = None, **settings: t.Any) -> dict[str, t.Any]:
    return run("monitoring", stack.fleet(stack.node_class(), existing=existing or {}), **settings)


def kinds(result: dict[str, t.Any]) -> list[str]:
    """Kinds without dashboards, which always exist."""
    found = [one for one in result["objects"] if "dashboard" not in one["metadata"]["name"]]
    return sorted(one["kind"] for one in found if one["kind"] not in ("Namespace", "ServiceAccount"))


def one(result: dict[str, t.Any], kind: str, name: str = "") -> dict[str, t.Any]:
    return next(found for found in result["objects"] if found["kind"] == kind and name in found["metadata"]["name"])


def exporters_on(result: dict[str, t.Any], labels: dict[str, str]) -> list[str]:
    return [found["metadata"]["name"] for found in daemon_sets(result) if takes(found, labels)]


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (node("training"), ["nvidia-dcgm-exporter-training"]),
        (node("inference"), ["nvidia-dcgm-exporter-inference"]),
        (node(), ["nvidia-dcgm-exporter"]),
        (node("free"), []),
        (node("training", **{"nvidia.com/gpu.deploy.operands": "false"}), []),
        ({"hwaccel.gpu/integrated": "true", "feature.node.kubernetes.io/cpu-model.vendor_id": "NVIDIA"}, []),
        ({}, []),
        *(
            (node("training", **{SWITCH: value}), [])
            for value in ("false", "paused-for-driver-upgrade", "paused-for-mig-change")
        ),
        (node("training", **{SWITCH: "true"}), ["nvidia-dcgm-exporter-training"]),
    ],
)
def test_a_node_has_the_exporter_of_its_pool(labels: dict[str, str], name: list[str]) -> None:
    free = {"name": "free", "selector": "pool=free", "gpu": {"count": 4}, "driver": {"provider": "none"}}
    assert exporters_on(plan(pools=[TRAINING, INFERENCE, free]), labels) == name


def test_the_driver_manager_evicts_an_exporter_and_waits_for_it() -> None:
    """The node has the switch for eviction, and pods have the label that is waited for (k8s-driver-manager bd62ca7d, waitForPodsToTerminate)."""
    assert SWITCH in names.CLIENT_SWITCHES
    assert {
        found["spec"]["template"]["metadata"]["labels"]["app"] for found in daemon_sets(plan(pools=[TRAINING]))
    } == {"nvidia-dcgm-exporter"}


def test_exporters_of_pools_have_their_own_pods() -> None:
    selectors = [found["spec"]["selector"]["matchLabels"] for found in daemon_sets(plan(pools=[TRAINING, INFERENCE]))]
    assert len({selector["hwaccel.gpu/pool"] for selector in selectors}) == 3
    assert {selector["app"] for selector in selectors} == {"nvidia-dcgm-exporter"}


def test_expected_gpus_of_a_pool_are_recorded_for_its_exporter() -> None:
    result = plan(SERVED, pools=[TRAINING, INFERENCE])
    rules = [
        rule
        for group in one(result, "PrometheusRule")["spec"]["groups"]
        for rule in group["rules"]
        if rule.get("record") == alerts.NODE_GPUS_EXPECTED
    ]
    assert [(rule["labels"]["pool"], rule["expr"].rpartition(" ")[2]) for rule in rules] == [
        ("inference", "2"),
        ("training", "8"),
    ]
    owners = [re.search(r'created_by_name=~"([^"]+)"', rule["expr"]) for rule in rules]
    names_of_exporters = {found["metadata"]["name"] for found in daemon_sets(result)}
    assert all(found and found[1] in names_of_exporters for found in owners)
    assert all(re.fullmatch(alerts.EXPORTERS, name) for name in names_of_exporters)


def test_profiling_needs_one_capability_and_restarts_the_exporters() -> None:
    plain, profiling = plan(), plan(profiling=True)
    containers = [
        daemon_sets(result)[0]["spec"]["template"]["spec"]["containers"][0]["securityContext"]["capabilities"]
        for result in (plain, profiling)
    ]
    assert containers == [{"drop": ["ALL"]}, {"drop": ["ALL"], "add": ["SYS_ADMIN"]}]
    assert "PROF" not in one(plain, "ConfigMap", "counters")["data"]["counters.csv"]
    assert "DCGM_FI_PROF_SM_ACTIVE" in one(profiling, "ConfigMap", "counters")["data"]["counters.csv"]
    hashes = [
        daemon_sets(result)[0]["spec"]["template"]["metadata"]["annotations"]["hwaccel.gpu/config-hash"]
        for result in (plain, profiling)
    ]
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize(
    ("existing", "declared", "detected"),
    [({}, "", "plain"), (SERVED, "", "operator"), (SERVED, "plain", "plain")],
)
def test_prometheus_is_configured_by_operator_or_annotations(
    existing: dict[str, t.Any], declared: str, detected: str
) -> None:
    result = plan(existing, prometheus=declared, prometheus_labels={"release": "kps"})
    assert result["faults"] == []
    service = one(result, "Service", "nvidia-dcgm-exporter")
    if detected == "operator":
        assert kinds(result) == ["ConfigMap", "DaemonSet", "PrometheusRule", "Service", "ServiceMonitor"]
        assert (
            one(result, "ServiceMonitor")["metadata"]["labels"]["release"]
            == one(result, "PrometheusRule")["metadata"]["labels"]["release"]
            == "kps"
        )
        assert "annotations" not in service["metadata"]
    else:
        assert kinds(result) == ["ConfigMap", "ConfigMap", "DaemonSet", "Service"]
        assert service["metadata"]["annotations"]["prometheus.io/scrape"] == "true"


def test_the_service_monitor_selects_the_service_and_its_port() -> None:
    result = plan(SERVED)
    monitor, service = one(result, "ServiceMonitor")["spec"], one(result, "Service", "nvidia-dcgm-exporter")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert (
        service["spec"]["selector"].items() <= daemon_sets(result)[0]["spec"]["template"]["metadata"]["labels"].items()
    )


def test_a_plain_prometheus_accepts_both_files(tmp_path: Path) -> None:
    data = one(plan(pools=[TRAINING]), "ConfigMap", "prometheus")["data"]
    scraped = yaml.safe_load(data["scrape_configs.yml"])
    assert [group["name"] for group in yaml.safe_load(data["rules.yml"])["groups"]] == [
        "hwaccel-gpu.rules",
        "hwaccel-gpu.hardware",
        "hwaccel-gpu.fleet",
    ]
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool is not on PATH: Debian's package prometheus has it")
    # Debian's Prometheus is built without the discovery of Kubernetes.
    assert scraped["scrape_configs"][0].pop("kubernetes_sd_configs")[0]["role"] == "endpointslice"
    (tmp_path / "rules.yml").write_text(data["rules.yml"], encoding="utf-8")
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], **scraped}), encoding="utf-8")
    done = subprocess.run(
        [promtool, "check", "config", "prometheus.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_declared_operator_that_is_missing_is_a_fault() -> None:
    assert [fault["what"] for fault in plan(prometheus="operator")["faults"]] == [
        "the cluster serves no ServiceMonitor and PrometheusRule"
    ]
    assert [fault["what"] for fault in plan(prometheus="thanos")["faults"]] == [
        "monitoring_prometheus 'thanos' is unknown"
    ]
    assert run("monitoring", None, prometheus="operator", pools=[])["faults"] == []


def test_openshift_uses_the_operator_and_has_a_note_about_user_projects() -> None:
    result = run("monitoring", None, distribution="openshift")
    assert "ServiceMonitor" in kinds(result)
    assert any("monitoring of user projects must be on" in note for note in result["notes"])
    assert all(
        "openshift.io/cluster-monitoring" not in found["metadata"].get("labels", {}) for found in result["objects"]
    )


@pytest.mark.parametrize("component", ["dcgm_exporter", "cluster_policy"])
def test_beside_an_existing_exporter_there_are_only_rules(component: str) -> None:
    result = plan({component: FOUND["dcgm_exporter"], **SERVED}, pools=[TRAINING])
    assert (result["provider"], kinds(result)) == ("existing", ["PrometheusRule"])
    assert not [
        rule
        for rule in one(result, "PrometheusRule")["spec"]["groups"][0]["rules"]
        if rule.get("record") == alerts.NODE_GPUS_EXPECTED
    ]
    faults = plan(FOUND, provider="hwaccel")["faults"]
    assert [fault["what"] for fault in faults] == ["another DCGM exporter is in the cluster"]
    assert plan(FOUND, rules=False, dashboards=False)["objects"] == []


def test_dashboards_have_a_label_and_a_folder() -> None:
    found = [one for one in plan()["objects"] if "dashboard" in one["metadata"]["name"]]
    assert [one["metadata"]["name"].rpartition("-")[2] for one in found] == ["fleet", "job", "node"]
    for one in found:
        assert one["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert one["metadata"]["annotations"] == {"grafana_folder": "GPUs"}
        assert [yaml.safe_load(body)["uid"] for body in one["data"].values()] == [
            one["metadata"]["name"].replace("-dashboard", "")
        ]


def test_invalid_thresholds_and_alerts_are_faults() -> None:
    faults = plan(thresholds={"x": 1}, alerts={"y": {}})["faults"]
    assert [fault["what"] for fault in faults] == ["threshold 'x' is unknown", "alert 'y' is unknown"]
    assert all(fault["next_step"] for fault in faults)


def test_the_role_receives_the_namespaces_of_earlier_stages() -> None:
    setting = stack.load(stack.TOP / "roles" / "monitoring" / "vars" / "main.yml")["__monitoring_settings"][
        "namespaces_before"
    ]
    stages = re.findall(r"\((\w+)_plan \| default\({}\)\)\.namespaces", setting)
    assert stages == ["feature_discovery", "driver", "device_plugin"]
    for stage in stages:
        for entry, module in (("main", "stage"), ("preflight", "stage_plan"), ("render", "stage_plan")):
            first = stack.load(stack.TOP / "roles" / stage / "tasks" / f"{entry}.yml")[0]
            registered = (
                module.removeprefix("stage_").replace("stage", f"{stage}_stage").replace("plan", f"{stage}_plan")
            )
            assert (first[f"hwaccel.gpu.{module}"]["role"], first["register"]) == (stage, registered)


def test_options_of_the_role_match_the_thresholds() -> None:
    specs = stack.load(stack.TOP / "roles" / "monitoring" / "meta" / "argument_specs.yml")
    options = specs["argument_specs"]["main"]["options"]["monitoring_thresholds"]["options"]
    assert {name: (found["description"], found["default"]) for name, found in options.items()} == {
        name: (limit.meaning, limit.default) for name, limit in THRESHOLDS.items()
    }
