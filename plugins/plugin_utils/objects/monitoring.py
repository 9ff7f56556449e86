# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The monitoring role's objects: exporters, their scrape configuration, rules and dashboards."""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, placement
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.driver_matrix import object_name
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring import counters, dashboards, rules
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring.alerts import EXPORTER
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import namespaces, patched, platforms, references
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import (
    Manifest,
    Sources,
    StagePlan,
    finish,
    named,
    stamp,
    take,
    text,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import Fleet, read_fleet
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.provider import Component, provider_of

COUNTERS, RULES, PLAIN, DASHBOARD = (
    "nvidia-dcgm-exporter-counters",
    "hwaccel-gpu",
    "hwaccel-gpu-prometheus",
    "hwaccel-gpu-dashboard",
)
OPERATOR, PLAIN_PROMETHEUS = "operator", "plain"
#: A ClusterPolicy deploys its own exporter.
_COMPONENT = Component(
    "monitoring",
    "DCGM exporter",
    ("cluster_policy", "dcgm_exporter"),
    "both would monitor the same GPUs, and rules would count them twice",
)
_SWITCH = "dcgm-exporter"


def plan(
    manifests: c.Sequence[Manifest], settings: c.Mapping[str, t.Any], facts: c.Mapping[str, t.Any] | None
) -> dict[str, t.Any]:
    """Objects of the set `monitoring`, with assumed, unknown, notes and faults. settings: see the filter's documentation."""
    fleet, faults = read_fleet(settings.get("pools"), facts)
    fleet = platforms.as_declared(fleet, settings)
    made = StagePlan(faults=faults)
    made.faults += platforms.identity_faults(fleet, settings)
    provider = provider_of(_COMPONENT, fleet, settings, made)
    prometheus = _prometheus(fleet, settings, made)
    try:
        objects = _exporter(manifests, settings, fleet) if provider == "hwaccel" else []
    except placement.TooManyTerms as error:
        objects = []
        made.faults.append(
            Fault("the pools' selectors cannot be combined", "pools", str(error), "use one label that names the pool")
        )
    objects += _scraped(manifests, settings, prometheus) if objects else []
    objects += _rules(manifests, settings, fleet, made, provider, prometheus)
    objects += _dashboards(manifests, settings) if settings.get("dashboards", True) else []
    stamp(objects)
    objects += namespaces.needed(objects, "monitoring", settings, facts, made)
    made.objects = finish(objects, Sources.of(settings), "monitoring")
    made.faults += references.missing(made.objects, facts)
    made.faults += patched.faults(made.objects, settings, "monitoring_patches")
    return made.as_dict(provider, fleet.namespace_of("dcgm_exporter") if provider == "existing" else "", fleet.existing)


def _prometheus(fleet: Fleet, settings: c.Mapping[str, t.Any], made: StagePlan) -> str:
    """How Prometheus is configured: as declared, else by the kinds that the cluster serves, which OpenShift always does."""
    declared, served = text(settings.get("prometheus")), bool(fleet.found("prometheus_operator"))
    if declared and declared not in (OPERATOR, PLAIN_PROMETHEUS):
        next_step = f"choose one of {OPERATOR}, {PLAIN_PROMETHEUS}"
        made.faults.append(Fault(f"monitoring_prometheus {declared!r} is unknown", "", "", next_step))
        return PLAIN_PROMETHEUS
    if declared == OPERATOR and fleet.observed and not served:
        next_step = f"install the Prometheus Operator first, or set monitoring_prometheus: {PLAIN_PROMETHEUS}"
        made.faults.append(
            Fault("the cluster serves no ServiceMonitor and PrometheusRule", "monitoring_prometheus", "", next_step)
        )
    found = declared or (OPERATOR if served or fleet.distribution == "openshift" else PLAIN_PROMETHEUS)
    why = (
        "declared"
        if declared
        else "the cluster serves its kinds"
        if served
        else "the distribution includes it"
        if found == OPERATOR
        else "its operator is not installed"
    )
    made.notes.append(f"Prometheus by {found} ({why})")
    if fleet.distribution == "openshift":
        made.notes.append(
            "OpenShift: monitoring of user projects must be on, and exempt this namespace from label enforcement (docs/monitoring.md)"
        )
    return found


def _exporter(manifests: c.Sequence[Manifest], settings: c.Mapping[str, t.Any], fleet: Fleet) -> list[Manifest]:
    config, profiling = take(manifests, "ConfigMap", COUNTERS), bool(settings.get("profiling"))
    config["data"]["counters.csv"] = counters.csv(counters.exported(profiling=profiling))
    found = [take(manifests, "ServiceAccount", EXPORTER), config]
    # DCGM does not support integrated GPUs.
    gpu = placement.gpu_nodes(foreign_nfd=bool(fleet.found("nfd")), integrated=False)
    none, counted = [pool for pool in fleet.pools if pool.driver.provider == "none"], _counted(fleet)
    terms = {"": placement.outside([*none, *(pool for pool in counted if pool not in none)])}
    terms |= {pool.name: placement.of_pool(pool.name, fleet.pools) for pool in counted if pool not in none}
    for pool, nodes in terms.items():
        found.append(_daemon_set(take(manifests, "DaemonSet", EXPORTER), pool, placement.both(gpu, nodes), profiling))
    return found + platforms.extra_objects(platforms.of(fleet.distribution), found)


def _counted(fleet: Fleet) -> list[Pool]:
    """Pools whose nodes and number of GPUs are declared in the inventory."""
    return [pool for pool in fleet.pools if pool.gpu is not None and pool.gpu.count and (pool.selector or pool.nodes)]


def _daemon_set(made: Manifest, pool: str, terms: c.Sequence[placement.Term], profiling: bool) -> Manifest:
    template = made["spec"]["template"]
    made["metadata"]["name"] = named(EXPORTER, pool) if pool else EXPORTER
    for labels in (made["spec"]["selector"]["matchLabels"], template["metadata"]["labels"]):
        labels[names.OURS + "pool"] = object_name(pool) if pool else "other"
    if profiling:
        template["spec"]["containers"][0]["securityContext"]["capabilities"]["add"] = ["SYS_ADMIN"]
    placement.place(made, placement.both(terms, [(placement.switch(_SWITCH),)]))
    return made


def _scraped(manifests: c.Sequence[Manifest], settings: c.Mapping[str, t.Any], prometheus: str) -> list[Manifest]:
    service = take(manifests, "Service", EXPORTER)
    if prometheus == OPERATOR:
        return [service, _labeled(take(manifests, "ServiceMonitor", EXPORTER), settings)]
    # A Prometheus with the common configuration for Services discovers it by these annotations, without the scrape configuration of the ConfigMap.
    service["metadata"]["annotations"] = {"prometheus.io/scrape": "true", "prometheus.io/port": "9400"}
    return [service]


def _rules(
    manifests: c.Sequence[Manifest],
    settings: c.Mapping[str, t.Any],
    fleet: Fleet,
    made: StagePlan,
    provider: str,
    prometheus: str,
) -> list[Manifest]:
    ours = provider == "hwaccel"
    exporters = (
        {named(EXPORTER, pool.name): (pool.name, pool.gpu.count) for pool in _counted(fleet) if pool.gpu is not None}
        if ours
        else {}
    )
    groups, faults = rules.groups(
        exporters, settings.get("thresholds"), settings.get("alerts"), text(settings.get("runbook_url")).rstrip("/")
    )
    made.faults += faults
    rules_due = bool(settings.get("rules", True))
    if prometheus == OPERATOR:
        rule = _labeled(take(manifests, "PrometheusRule", RULES), settings)
        rule["spec"]["groups"] = groups
        return [rule] if rules_due else []
    plain = take(manifests, "ConfigMap", PLAIN)
    parts = {"scrape_configs.yml": ours, "rules.yml": rules_due}
    # JSON is valid YAML. A readable form is in docs/alerts.md.
    plain["data"]["rules.yml"] = json.dumps({"groups": groups}, indent=2) + "\n"
    plain["data"] = {name: body for name, body in plain["data"].items() if parts[name]}
    return [plain] if plain["data"] else []


def _dashboards(manifests: c.Sequence[Manifest], settings: c.Mapping[str, t.Any]) -> list[Manifest]:
    found = []
    for dashboard in dashboards.DASHBOARDS:
        made = _labeled(take(manifests, "ConfigMap", DASHBOARD), settings, "dashboard_labels")
        made["metadata"]["name"] = f"{DASHBOARD}-{dashboard.name}"
        model = dashboards.model(dashboard, profiling=bool(settings.get("profiling")))
        made["data"] = {f"hwaccel-gpu-{dashboard.name}.json": json.dumps(model, indent=2) + "\n"}
        found.append(made)
    return found


def _labeled(manifest: Manifest, settings: c.Mapping[str, t.Any], setting: str = "prometheus_labels") -> Manifest:
    manifest["metadata"].setdefault("labels", {}).update(
        {str(key): str(value) for key, value in (settings.get(setting) or {}).items()}
    )
    return manifest
