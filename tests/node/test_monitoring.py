# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus with the scrape configuration, rules and dashboards that the role monitoring has deployed. Alerts fire on faults of a node.

Prometheus is real. The exporter of the real node is a stand-in with DCGM's names, and those of simulated nodes serve nothing. Alerts that wait for
minutes by default wait for a second here, by variables of the role.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import time
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring import alerts, rules
from ansible_collections.hwaccel.gpu.tests.node.conftest import NAMESPACE, POOLS, REAL, Enabled, Taken
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import PRODUCT, KubernetesNode
from ansible_collections.hwaccel.gpu.tests.node.rig.monitoring import Discovery, States, granted
from ansible_collections.hwaccel.gpu.tests.node.test_device_plugin import APP, running
from ansible_collections.hwaccel.gpu.tests.node.test_gates import ready
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring import server
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring.panels import without_data

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
USER = "prometheus"
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "monitoring.md"
EXPORTER, VALIDATOR = "nvidia-dcgm-exporter", "nvidia-operator-validator"
EXPORTER_SWITCH = "nvidia.com/gpu.deploy.dcgm-exporter"
#: Panels without data on a healthy fleet, and why.
EMPTY = {
    ("GPUs: fleet", "Xids"): "no XID has occurred",
    ("GPUs: job", "Xids"): "no XID has occurred",
}


@dataclasses.dataclass(frozen=True)
class Watch:
    """A running Prometheus, and the folder with its configuration."""

    prometheus: server.Prometheus
    folder: pathlib.Path

    def firing(self, node: str = REAL) -> set[str]:
        """Firing alerts of a node."""
        return {alert["labels"]["alertname"] for alert in self.alerts() if alert["labels"].get("node") == node}

    def targets(self) -> list[dict[str, t.Any]]:
        """Targets that are exporters."""
        return [one for one in self.prometheus.get("targets")["activeTargets"] if one["scrapePool"] == EXPORTER]

    def alerts(self) -> list[dict[str, t.Any]]:
        return [alert for alert in self.prometheus.get("alerts")["alerts"] if alert["state"] == "firing"]

    def values(self, expression: str, label: str) -> dict[str, float]:
        return {row["metric"].get(label, ""): float(row["value"][1]) for row in self.prometheus.query(expression)}

    def await_values(self, expression: str, label: str, expected: dict[str, float]) -> None:
        """Waits until the values include these. Fails with the values that are observed last."""
        observed = server.observed(
            lambda: self.values(expression, label), lambda values: values.items() >= expected.items()
        )
        assert observed.items() >= expected.items()


def rights() -> list[dict[str, t.Any]]:
    """Rights that the page requires."""
    match = re.search(r"^rules:\n(?:  - .+\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert match, f"{PAGE} contains no rights"
    return list(yaml.safe_load(match[0])["rules"])


@pytest.fixture(scope="module")
def watch(cluster: Cluster, enabled: Enabled, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Watch]:
    """Prometheus has scraped the real node often enough for a rate, and has evaluated all rules afterwards."""
    program = shutil.which("prometheus")
    if not program or not shutil.which("promtool"):
        pytest.skip("prometheus is not on PATH: Debian's package prometheus contains it")
    folder = tmp_path_factory.mktemp("prometheus")
    data = cluster.client.get(CONFIG_MAP, "hwaccel-gpu-prometheus", NAMESPACE)["data"]
    (job,) = yaml.safe_load(data["scrape_configs.yml"])["scrape_configs"]
    (discovery,) = job.pop("kubernetes_sd_configs")
    job["file_sd_configs"] = [{"files": ["targets.json"]}]
    with contextlib.ExitStack() as stack:
        states = stack.enter_context(server.pages(stack.enter_context(States(cluster.client)).pages))
        stack.enter_context(granted(cluster.client, USER, rights(), NAMESPACE))
        stack.enter_context(Discovery(str(cluster.sandbox.kubeconfig), USER, discovery, folder / "targets.json"))
        of_states = {
            "job_name": "kube-state-metrics",
            "honor_labels": True,
            "metrics_path": "/states",
            "static_configs": [{"targets": [states]}],
        }
        config = {
            "global": {"scrape_interval": "2s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [job, of_states],
        }
        watch = Watch(stack.enter_context(server.prometheus(program, folder, config, data["rules.yml"])), folder)
        server.until(
            "scrapes of the real node",
            lambda: bool(watch.prometheus.query(f'count_over_time((up{{node="{REAL}"}} == 1)[1m:1s]) >= 3')),
        )
        scraped = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 1))
        server.until(
            "an evaluation of all rules",
            lambda: all(rule["lastEvaluation"] > scraped for rule in watch.prometheus.rules()),
        )
        yield watch


def test_promtool_accepts_the_configuration(watch: Watch) -> None:
    done = subprocess.run(
        ["promtool", "check", "config", "prometheus.yml"],
        cwd=watch.folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rules found" in done.stdout


def test_each_exporter_of_the_service_is_a_target_and_the_real_one_is_up(cluster: Cluster, watch: Watch) -> None:
    server.until("each target is scraped", lambda: all(one["health"] != "unknown" for one in watch.targets()))
    targets = {one["labels"]["node"]: one for one in watch.targets()}
    pods = {
        pod["spec"]["nodeName"]: pod
        for pod in cluster.client.list(POD, NAMESPACE, label_selector=f"app={EXPORTER}").items
    }
    assert targets.keys() == pods.keys()
    assert targets[REAL]["labels"] | {"job": EXPORTER} == {
        "job": EXPORTER,
        "namespace": NAMESPACE,
        "pod": pods[REAL]["metadata"]["name"],
        "container": EXPORTER,
        "node": REAL,
        "instance": f"{pods[REAL]['status']['podIP']}:9400",
    }
    health = {name: one["health"] for name, one in targets.items()}
    assert (health[REAL], health["sim-0"]) == ("up", "down"), targets


def test_every_rule_is_loaded_and_healthy(watch: Watch) -> None:
    loaded = watch.prometheus.rules()
    names = [rule["name"] for rule in loaded]
    assert sorted(names) == sorted([*alerts.ALERTS, *rules.RECORDED, *(alerts.NODE_GPUS_EXPECTED for _pool in POOLS)])
    assert {rule["name"]: rule.get("lastError") for rule in loaded if rule["health"] != "ok"} == {}


def test_nodes_have_as_many_gpus_as_the_inventory_expects(watch: Watch) -> None:
    watch.await_values(alerts.NODE_GPUS_EXPECTED, "node", {REAL: 2, "twin-0": 2, "sim-0": 8})
    watch.await_values(alerts.NODE_GPUS_SEEN, "node", {REAL: 2})


def test_an_alert_fires_for_exporters_that_serve_nothing_and_none_on_a_healthy_node(watch: Watch) -> None:
    server.until(
        "GpuExporterDown alone fires for simulated nodes",
        lambda: watch.firing("sim-0") == watch.firing("twin-0") == {"GpuExporterDown"},
    )
    server.until("nothing fires for the real node", lambda: watch.firing() == set())


def test_a_gpu_in_use_has_the_labels_and_values_that_dashboards_query(
    cluster: Cluster, watch: Watch, take: Taken
) -> None:
    take("user")
    cluster.wait("the pod runs", lambda: running(cluster, "user"))
    watch.await_values("namespace:hwaccel_gpus:count", "exported_namespace", {"default": 1})
    (row,) = server.observed(lambda: watch.prometheus.query('DCGM_FI_DEV_GPU_TEMP{exported_pod="user"}'), bool)
    labels = {
        "hostname": REAL,
        "node": REAL,
        "exported_namespace": "default",
        "exported_container": "main",
        "namespace": NAMESPACE,
        "modelName": PRODUCT,
    }
    assert row["metric"].items() >= labels.items(), row
    server.until("every recording rule has values", lambda: all(watch.values(name, "") for name in rules.RECORDED))
    dashboards = cluster.client.list(CONFIG_MAP, NAMESPACE, label_selector="grafana_dashboard=1").items

    def empty() -> set[tuple[str, str]]:
        return {
            panel[:2]
            for one in dashboards
            for text in one["data"].values()
            for panel in without_data(watch.prometheus, json.loads(text))
        }

    assert server.observed(empty, lambda panels: panels == set(EMPTY)) == set(EMPTY)


def test_memory_errors_fire_alerts_and_the_node_offers_fewer_gpus(
    cluster: Cluster, node: KubernetesNode, watch: Watch
) -> None:
    expected = {"GpuXidMemoryUncorrectable", "GpuEccUncorrectable", "GpuNotAllocatable"}
    node.set_gpus(2, {"xid": {"1": 48}, "ecc": {"1": 1}})
    try:
        server.until(f"{expected} fire, and no other", lambda: watch.firing() == expected)
        firing = {
            alert["labels"]["alertname"]: alert for alert in watch.alerts() if alert["labels"].get("node") == REAL
        }
    finally:
        node.set_gpus(2)
        cluster.replace_pod(REAL, APP)
        cluster.wait("both GPUs are allocatable", lambda: cluster.gpus(REAL) == ("2", "2"))
    assert firing.keys() == expected
    xid = firing["GpuXidMemoryUncorrectable"]
    assert (xid["labels"]["gpu"], xid["labels"]["xid"], xid["labels"]["severity"]) == ("1", "48", "critical")
    assert xid["annotations"]["summary"] == f"GPU 1 of {REAL} had a memory error that was not contained"
    assert (
        firing["GpuNotAllocatable"]["annotations"]["description"]
        == f"1 of nvidia_com_gpu on {REAL} are unhealthy according to its device plugin."
    )


def switch(cluster: Cluster, value: str | None) -> None:
    # The field manager is that of the gate, which has set this label, because teardown does not remove labels of other field managers.
    labels = {"metadata": {"labels": {EXPORTER_SWITCH: value}}}
    cluster.client.patch(NODE, REAL, "", labels, field_manager=quarantine.FIELD_MANAGER)


@pytest.mark.slow
def test_an_alert_fires_when_the_last_exporter_is_removed(cluster: Cluster, watch: Watch) -> None:
    before = cluster.client.get(NODE, REAL)["metadata"]["labels"].get(EXPORTER_SWITCH)
    switch(cluster, "false")
    try:
        server.until("its target is removed", lambda: not watch.values(f'up{{node="{REAL}"}}', "node"))
        server.until(
            "GpuMetricsAbsent fires",
            lambda: "GpuMetricsAbsent" in {alert["labels"]["alertname"] for alert in watch.alerts()},
        )
    finally:
        switch(cluster, before)
    watch.await_values(alerts.NODE_GPUS_SEEN, "node", {REAL: 2})


@pytest.mark.slow
def test_a_gpu_that_fell_off_the_bus_is_reported_and_the_validator_is_not_ready(
    cluster: Cluster, node: KubernetesNode, watch: Watch
) -> None:
    node.set_gpus(2, {"xid": {"1": 79}})
    try:
        server.until("its alerts fire", lambda: watch.firing() >= {"GpuXidBusLost", "GpuMissing", "GpuNotAllocatable"})
        (missing,) = (
            alert
            for alert in watch.alerts()
            if alert["labels"]["alertname"] == "GpuMissing" and alert["labels"]["node"] == REAL
        )
        assert (
            missing["annotations"]["description"]
            == f"{REAL} of pool real reports 1 GPUs fewer than the inventory declares."
        )
        cluster.wait("the validator is not ready", lambda: not ready(cluster, VALIDATOR))
    finally:
        node.set_gpus(2)
        cluster.wait("both GPUs are validated again", lambda: ready(cluster, VALIDATOR), 240)
        cluster.replace_pod(REAL, APP)
        cluster.wait("both are allocatable", lambda: cluster.gpus(REAL) == ("2", "2"))
    watch.await_values(alerts.NODE_GPUS_SEEN, "node", {REAL: 2})
