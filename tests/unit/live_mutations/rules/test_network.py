# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports, probes, Services, and what Prometheus and Grafana read."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import network
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules import sets
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules.sets import container, put, without

EXPORTER = "nvidia-dcgm-exporter"
ROWS: list[sets.Row] = [
    (
        network.probes,
        "Deployment",
        "nfd-master",
        container(put("startupProbe", "httpGet", "path", "/x")),
        "startupProbe.httpGet.path",
    ),
    (network.probes, "Deployment", "nfd-master", container(without("startupProbe")), "a slow start is ended"),
    (
        network.counted,
        "ConfigMap",
        f"{EXPORTER}-counters",
        put("data", "counters.csv", ""),
        "counters.csv does not have",
    ),
    (network.probed, "Deployment", "nfd-gc", container(put("livenessProbe", "httpGet", "port", "x")), "x is no port"),
    (network.probed, "Deployment", "nfd-gc", container(put("ports", 0, "containerPort", 1)), "the program serves 8080"),
    (network.probed, "Deployment", "nfd-gc", container(put("args", [])), "do not tell the program"),
    (network.probed, "DaemonSet", "nvidia-dcgm-exporter", container(without("ports", 0, "name")), "has no name"),
    (network.probes, "Deployment", "nfd-gc", container(without("livenessProbe")), "livenessProbe is missing"),
    (
        network.probes,
        "Deployment",
        "nfd-gc",
        container(put("livenessProbe", "httpGet", "path", "/x")),
        "is not that of readinessProbe",
    ),
    (network.services, "Service", EXPORTER, put("spec", "selector", {"app": "x"}), "selects no pod"),
    (network.services, "Service", EXPORTER, without("metadata", "labels", "app"), "metadata.labels: app"),
    (network.services, "Service", EXPORTER, put("metadata", "name", "x"), "metadata.name"),
    (network.services, "Service", EXPORTER, put("spec", "ports", 0, "targetPort", "x"), "targetPort 'x'"),
    (network.services, "Service", EXPORTER, put("spec", "ports", 0, "port", 9401), "pods serve 9400"),
    (network.services, "Service", EXPORTER, without("spec", "ports", 0, "name"), "not metrics"),
    (network.services, "Service", EXPORTER, put("metadata", "annotations", {}), "prometheus.io/scrape"),
    (
        network.dashboards,
        "ConfigMap",
        "hwaccel-gpu-dashboard-job",
        without("metadata", "labels", "grafana_dashboard"),
        "sidecar",
    ),
    (
        network.dashboards,
        "ConfigMap",
        "hwaccel-gpu-dashboard-job",
        put("metadata", "annotations", {}),
        "grafana_folder",
    ),
    (network.dashboards, "ConfigMap", "hwaccel-gpu-dashboard-job", put("data", {}), "has no dashboard"),
    (
        network.dashboards,
        "ConfigMap",
        "hwaccel-gpu-dashboard-job",
        put("data", "hwaccel-gpu-job.json", "{x"),
        "not a dashboard in JSON",
    ),
    (
        network.dashboards,
        "ConfigMap",
        "hwaccel-gpu-dashboard-job",
        put("data", "hwaccel-gpu-job.json", '{"panels": [1], "uid": "x"}'),
        "another uid",
    ),
    (
        network.prometheus,
        "ConfigMap",
        "hwaccel-gpu-prometheus",
        put("data", "scrape_configs.yml", "scrape_configs:x"),
        "no scrape_configs",
    ),
    (network.prometheus, "ConfigMap", "hwaccel-gpu-prometheus", put("data", "rules.yml", ""), "no groups of rules"),
    (network.prometheus, "DaemonSet", f"{EXPORTER}", put("metadata", "name", "x"), "no metadata.name of a DaemonSet"),
]


test_what_is_wrong_is_said = sets.checked(ROWS)
