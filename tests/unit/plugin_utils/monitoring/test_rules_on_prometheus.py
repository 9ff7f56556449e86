# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Prometheus that scrapes exporters with the configuration of the role: rules are loaded and evaluated, and each panel has data."""

from __future__ import annotations

import collections.abc as c
import contextlib
import shutil
import time
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring import alerts, counters, rules
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring.dashboards import DASHBOARDS, Dashboard, model
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring import server
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring.cases import CASES
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring.panels import without_data
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring.server import Prometheus
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.scheduling import TRAINING
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.test_monitoring import one, plan

#: Spelling of the node label by node (NVIDIA/dcgm-exporter #655).
NODES = {"n1": "hostname", "n2": "Hostname"}
#: Labels of the Service's endpoints from Kubernetes, which the role's scrape configuration selects.
_ENDPOINT = {
    "__meta_kubernetes_service_name": "nvidia-dcgm-exporter",
    "__meta_kubernetes_endpointslice_port_name": "metrics",
}
_OF_METRIC = {
    "DCGM_EXP_XID_ERRORS_COUNT": ',window_size_in_ms="300000",xid="79"',
    "DCGM_EXP_CLOCK_EVENTS_COUNT": ',clock_event="power_cap"',
}
_JOB = ',container="main",namespace="red",pod="train-0"'


def exposition(node: str) -> str:
    """Two GPUs, the second with a job, in the format of NVIDIA/dcgm-exporter d5e5f51, internal/pkg/rendermetrics/render_metrics.go."""
    lines = []
    for counter in counters.exported(profiling=True):
        if counter.kind == "label":
            continue
        lines += [f"# HELP {counter.field} {counter.help}", f"# TYPE {counter.field} {counter.kind}"]
        for gpu in (0, 1):
            labels = f'gpu="{gpu}",UUID="GPU-{node}-{gpu}",pci_bus_id="00000000:0{gpu}:00.0",device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3"'
            labels += f',{NODES[node]}="{node}",DCGM_FI_DRIVER_VERSION="595.91.07"{_JOB if gpu else ""}{_OF_METRIC.get(counter.field, "")}'
            lines.append(f"{counter.field}{{{labels}}} 1")
    return "\n".join([*lines, ""])


def kube_state_metrics() -> str:
    """Series of kube-state-metrics from the cases of the alerts, with one value."""
    found = {metric for case in CASES.values() for metric, _values in case.fires if metric.startswith("kube_")}
    return "\n".join([*(f"{metric} 1" for metric in sorted(found)), ""])


def config(data: dict[str, str], address: str) -> dict[str, t.Any]:
    """The role's job with static targets, because Debian's Prometheus is built without the discovery of Kubernetes."""
    (job,) = yaml.safe_load(data["scrape_configs.yml"])["scrape_configs"]
    del job["kubernetes_sd_configs"]
    about = "__meta_kubernetes_"
    job |= {
        "scrape_interval": "1s",
        "static_configs": [
            {
                "targets": [address],
                "labels": _ENDPOINT
                | {
                    "__metrics_path__": f"/{node}",
                    f"{about}namespace": "hwaccel-gpu",
                    f"{about}pod_name": f"exporter-{node}",
                    f"{about}pod_node_name": node,
                    f"{about}pod_container_name": "nvidia-dcgm-exporter",
                },
            }
            for node in NODES
        ],
    }
    # honor_labels is set like in its charts, so that labels of objects do not become exported_*.
    states = {
        "job_name": "kube-state-metrics",
        "honor_labels": True,
        "metrics_path": "/states",
        "static_configs": [{"targets": [address]}],
    }
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [job, states],
    }


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Prometheus]:
    """A server that has scraped each target often enough for a rate, and has evaluated all rules after that."""
    program = shutil.which("prometheus")
    if not program:
        pytest.skip("prometheus is not on PATH: Debian's package prometheus has it")
    data = one(plan(pools=[TRAINING]), "ConfigMap", "prometheus")["data"]
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(
            server.pages({f"/{node}": exposition(node) for node in NODES} | {"/states": kube_state_metrics()})
        )
        started = stack.enter_context(
            server.prometheus(program, tmp_path_factory.mktemp("prometheus"), config(data, address), data["rules.yml"])
        )
        server.until(
            "scrapes of all targets",
            lambda: len(started.query("count_over_time((up == 1)[1m:1s]) >= 3")) == len(NODES) + 1,
        )
        scraped_at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 1))
        server.until(
            "an evaluation of all rules", lambda: all(rule["lastEvaluation"] > scraped_at for rule in started.rules())
        )
        yield started


def test_every_rule_is_loaded_and_evaluated(prometheus: Prometheus) -> None:
    found = prometheus.rules()
    assert {rule["name"] for rule in found} == {*alerts.ALERTS, *rules.RECORDED, alerts.NODE_GPUS_EXPECTED}
    assert {rule["name"]: rule.get("lastError") for rule in found if rule["health"] != "ok"} == {}


def test_the_summary_of_an_alert_names_its_gpu(prometheus: Prometheus) -> None:
    def fired() -> list[str]:
        alerts = prometheus.get("alerts")["alerts"]
        return sorted(
            alert["annotations"]["summary"] for alert in alerts if alert["labels"]["alertname"] == "GpuXidBusLost"
        )

    expected = [f"GPU {gpu} of {node} has fallen off the bus" for gpu in (0, 1) for node in NODES]
    assert server.observed(fired, lambda found: found == expected) == expected


def test_jobs_keep_their_namespace_in_addition_to_that_of_the_exporter(prometheus: Prometheus) -> None:
    (row,) = server.observed(
        lambda: prometheus.query("namespace:hwaccel_gpus:count"),
        lambda rows: [row["value"][1] for row in rows] == [str(len(NODES))],
    )
    assert (row["metric"]["exported_namespace"], row["value"][1]) == ("red", str(len(NODES)))
    (row,) = server.observed(lambda: prometheus.query('DCGM_FI_DEV_GPU_TEMP{node="n2", gpu="1"}'), bool)
    assert [row["metric"][label] for label in ("namespace", "pod", "container")] == [
        "hwaccel-gpu",
        "exporter-n2",
        "nvidia-dcgm-exporter",
    ]


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)
def test_every_panel_and_every_variable_has_data(dashboard: Dashboard, prometheus: Prometheus) -> None:
    assert without_data(prometheus, model(dashboard, profiling=True)) == []
