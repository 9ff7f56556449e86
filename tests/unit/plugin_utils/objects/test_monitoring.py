# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's objects: which exporter a node gets, how Prometheus learns of it, and what another's exporter changes."""

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


def kinds(made: dict[str, t.Any]) -> list[str]:
    """Dashboards left out, which are there in every case."""
    found = [one for one in made["objects"] if "dashboard" not in one["metadata"]["name"]]
    return sorted(one["kind"] for one in found if one["kind"] not in ("Namespace", "ServiceAccount"))


def one(made: dict[str, t.Any], kind: str, name: str = "") -> dict[str, t.Any]:
    return next(found for found in made["objects"] if found["kind"] == kind and name in found["metadata"]["name"])


def takers(made: dict[str, t.Any], labels: dict[str, str]) -> list[str]:
    return [found["metadata"]["name"] for found in daemon_sets(made) if takes(found, labels)]


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
    assert takers(plan(pools=[TRAINING, INFERENCE, free]), labels) == name


def test_the_driver_manager_makes_an_exporter_leave_and_waits_for_it() -> None:
    """Its node has the switch by which that is done, and its pods the label that is waited for (k8s-driver-manager bd62ca7d, waitForPodsToTerminate)."""
    assert SWITCH in names.CLIENT_SWITCHES
    assert {
        found["spec"]["template"]["metadata"]["labels"]["app"] for found in daemon_sets(plan(pools=[TRAINING]))
    } == {"nvidia-dcgm-exporter"}


def test_exporters_of_pools_have_pods_of_their_own() -> None:
    selectors = [found["spec"]["selector"]["matchLabels"] for found in daemon_sets(plan(pools=[TRAINING, INFERENCE]))]
    assert len({selector["hwaccel.gpu/pool"] for selector in selectors}) == 3
    assert {selector["app"] for selector in selectors} == {"nvidia-dcgm-exporter"}


def test_what_a_pool_should_have_is_asked_of_its_exporter() -> None:
    made = plan(SERVED, pools=[TRAINING, INFERENCE])
    rules = [
        rule
        for group in one(made, "PrometheusRule")["spec"]["groups"]
        for rule in group["rules"]
        if rule.get("record") == alerts.NODE_GPUS_EXPECTED
    ]
    assert [(rule["labels"]["pool"], rule["expr"].rpartition(" ")[2]) for rule in rules] == [
        ("inference", "2"),
        ("training", "8"),
    ]
    asked = [re.search(r'created_by_name=~"([^"]+)"', rule["expr"]) for rule in rules]
    there = {found["metadata"]["name"] for found in daemon_sets(made)}
    assert all(found and found[1] in there for found in asked)
    assert all(re.fullmatch(alerts.EXPORTERS, name) for name in there)


def test_profiling_takes_one_right_and_restarts_the_exporters() -> None:
    plain, profiling = plan(), plan(profiling=True)
    containers = [
        daemon_sets(made)[0]["spec"]["template"]["spec"]["containers"][0]["securityContext"]["capabilities"]
        for made in (plain, profiling)
    ]
    assert containers == [{"drop": ["ALL"]}, {"drop": ["ALL"], "add": ["SYS_ADMIN"]}]
    assert "PROF" not in one(plain, "ConfigMap", "counters")["data"]["counters.csv"]
    assert "DCGM_FI_PROF_SM_ACTIVE" in one(profiling, "ConfigMap", "counters")["data"]["counters.csv"]
    hashes = [
        daemon_sets(made)[0]["spec"]["template"]["metadata"]["annotations"]["hwaccel.gpu/config-hash"]
        for made in (plain, profiling)
    ]
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize(
    ("existing", "told", "found"),
    [({}, "", "plain"), (SERVED, "", "operator"), (SERVED, "plain", "plain")],
)
def test_prometheus_learns_of_it_as_it_can(existing: dict[str, t.Any], told: str, found: str) -> None:
    made = plan(existing, prometheus=told, prometheus_labels={"release": "kps"})
    assert made["faults"] == []
    service = one(made, "Service", "nvidia-dcgm-exporter")
    if found == "operator":
        assert kinds(made) == ["ConfigMap", "DaemonSet", "PrometheusRule", "Service", "ServiceMonitor"]
        assert (
            one(made, "ServiceMonitor")["metadata"]["labels"]["release"]
            == one(made, "PrometheusRule")["metadata"]["labels"]["release"]
            == "kps"
        )
        assert "annotations" not in service["metadata"]
    else:
        assert kinds(made) == ["ConfigMap", "ConfigMap", "DaemonSet", "Service"]
        assert service["metadata"]["annotations"]["prometheus.io/scrape"] == "true"


def test_the_service_monitor_finds_the_service_and_its_port() -> None:
    made = plan(SERVED)
    monitor, service = one(made, "ServiceMonitor")["spec"], one(made, "Service", "nvidia-dcgm-exporter")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert service["spec"]["selector"].items() <= daemon_sets(made)[0]["spec"]["template"]["metadata"]["labels"].items()


def test_a_plain_prometheus_takes_both_files(tmp_path: Path) -> None:
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
    # Debian builds it without the discovery of Kubernetes.
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


def test_an_operator_that_is_not_there_is_a_fault() -> None:
    assert [fault["what"] for fault in plan(prometheus="operator")["faults"]] == [
        "the cluster serves no ServiceMonitor and PrometheusRule"
    ]
    assert [fault["what"] for fault in plan(prometheus="thanos")["faults"]] == [
        "monitoring_prometheus 'thanos' is unknown"
    ]
    assert run("monitoring", None, prometheus="operator", pools=[])["faults"] == []


def test_openshift_has_the_operator_and_is_told_what_must_be_on() -> None:
    made = run("monitoring", None, distribution="openshift")
    assert "ServiceMonitor" in kinds(made)
    assert any("monitoring of user projects must be on" in note for note in made["notes"])
    assert all(
        "openshift.io/cluster-monitoring" not in found["metadata"].get("labels", {}) for found in made["objects"]
    )


@pytest.mark.parametrize("component", ["dcgm_exporter", "cluster_policy"])
def test_beside_another_exporter_there_are_rules_alone(component: str) -> None:
    made = plan({component: FOUND["dcgm_exporter"], **SERVED}, pools=[TRAINING])
    assert (made["provider"], kinds(made)) == ("existing", ["PrometheusRule"])
    assert not [
        rule
        for rule in one(made, "PrometheusRule")["spec"]["groups"][0]["rules"]
        if rule.get("record") == alerts.NODE_GPUS_EXPECTED
    ]
    told = plan(FOUND, provider="hwaccel")["faults"]
    assert [fault["what"] for fault in told] == ["another DCGM exporter is in the cluster"]
    assert plan(FOUND, rules=False, dashboards=False)["objects"] == []


def test_dashboards_are_found_by_their_label_and_lie_in_a_folder() -> None:
    found = [one for one in plan()["objects"] if "dashboard" in one["metadata"]["name"]]
    assert [one["metadata"]["name"].rpartition("-")[2] for one in found] == ["fleet", "job", "node"]
    for one in found:
        assert one["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert one["metadata"]["annotations"] == {"grafana_folder": "GPUs"}
        assert [yaml.safe_load(body)["uid"] for body in one["data"].values()] == [
            one["metadata"]["name"].replace("-dashboard", "")
        ]


def test_what_is_wrong_in_limits_and_alerts_stops_before_anything_is_touched() -> None:
    faults = plan(thresholds={"x": 1}, alerts={"y": {}})["faults"]
    assert [fault["what"] for fault in faults] == ["threshold 'x' is unknown", "alert 'y' is unknown"]
    assert all(fault["next_step"] for fault in faults)


@pytest.mark.parametrize("entry", ["preflight", "render"])
def test_the_role_is_told_which_namespaces_the_stages_before_bring(entry: str) -> None:
    told = stack.load(stack.TOP / "roles" / "monitoring" / "vars" / "main.yml")["__monitoring_settings"][
        "namespaces_before"
    ]
    stages = re.findall(r"(\w+)_namespaces", told)
    assert stages == ["feature_discovery", "driver", "device_plugin"]
    for stage in stages:
        tasks = [
            inner
            for task in stack.load(stack.TOP / "roles" / stage / "tasks" / f"{entry}.yml")
            for inner in task.get("block", [task])
        ]
        assert any(f"{stage}_namespaces" in task.get("ansible.builtin.set_fact", {}) for task in tasks), stage


def test_options_of_the_role_are_the_limits() -> None:
    specs = stack.load(stack.TOP / "roles" / "monitoring" / "meta" / "argument_specs.yml")
    options = specs["argument_specs"]["main"]["options"]["monitoring_thresholds"]["options"]
    assert {name: (found["description"], found["default"]) for name, found in options.items()} == {
        name: (limit.meaning, limit.default) for name, limit in THRESHOLDS.items()
    }
