# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports, Services and what Prometheus and Grafana read: each end of a connection names the other."""

from __future__ import annotations

import collections.abc as c
import json
import re
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import (
    Finding,
    Manifests,
    Workload,
    once,
    where,
)
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

_PORT_FLAG = re.compile(r"^-?-port=(\d+)$")
_LISTEN = re.compile(r"LISTEN$")
#: What the sidecar of Grafana's chart looks for, as docs/monitoring.md tells.
_DASHBOARD, _FOLDER = ("grafana_dashboard", "1"), "grafana_folder"
_METRIC = re.compile(r"\bDCGM_FI_[A-Z0-9_]+")
_DAEMON_SETS = re.compile(r'created_by_name=~?\\?"([^"\\]+)')


def probed(found: Manifests) -> c.Iterator[Finding]:
    """A probe asks a port of its own container by its name, and that port is the one that the program is told to serve."""
    for one in found.workloads:
        for at, container in one.containers():
            ports = {port.get("name"): port.get("containerPort") for port in container.get("ports") or ()}
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                asked = ((container.get(kind) or {}).get("httpGet") or {}).get("port")
                if asked is not None and asked not in ports:
                    yield f"{at}.{kind}.httpGet.port: {asked} is no port of the container"
            for told in _told(container):
                if told not in ports.values():
                    yield f"{at}.ports: the program serves {told}, and containerPort is {sorted(ports.values(), key=str)}"
            if ports and not _told(container):
                yield f"{at}.args or env do not tell the program which of its ports to serve"
            for port in container.get("ports") or ():
                if not port.get("name"):
                    yield f"{at}.ports: {port.get('containerPort')} has no name, by which a probe or a Service finds it"


def _told(container: Obj) -> list[int]:
    words = [found[1] for word in container.get("args") or () if (found := _PORT_FLAG.match(word))]
    words += [one["value"].rpartition(":")[2] for one in container.get("env") or () if _LISTEN.search(one["name"])]
    return [int(word) for word in words if word.isdigit()]


def probes(found: Manifests) -> c.Iterator[Finding]:
    """What serves its health is asked by all its probes at the same path, and is not ended before it has had the time to start."""
    for one in found.workloads:
        for at, container in one.containers():
            ready, alive = container.get("readinessProbe") or {}, container.get("livenessProbe") or {}
            if container.get("ports") and not (ready and alive):
                yield f"{at}: {'livenessProbe' if ready else 'readinessProbe'} is missing, and the program serves its health"
            for kind in ("startupProbe", "livenessProbe"):
                asked = (container.get(kind) or {}).get("httpGet")
                if asked and ready and asked.get("path") != (ready.get("httpGet") or {}).get("path"):
                    yield f"{at}.{kind}.httpGet.path is not that of readinessProbe"
            if alive and not alive.get("initialDelaySeconds") and not container.get("startupProbe"):
                yield f"{at}.livenessProbe has no initialDelaySeconds, and there is no startupProbe: a slow start is ended"


def services(found: Manifests) -> c.Iterator[Finding]:
    """A Service selects pods of its namespace by the label that it has itself, and leads to a port that they have."""
    for item in found.of("Service"):
        selector = item["spec"].get("selector") or {}
        namespace = str(item["metadata"].get("namespace") or "")
        pods = [
            one
            for one in found.workloads
            if one.namespace == namespace and selector and selector.items() <= one.labels.items()
        ]
        if not pods:
            yield f"{where(item)} spec.selector {selector} selects no pod of the namespace"
            continue
        for key, value in selector.items():
            if (item["metadata"].get("labels") or {}).get(key) != value:
                yield f"{where(item)} metadata.labels: {key} is not what the Service selects, and what scrapes finds it by that"
        if item["metadata"]["name"] != pods[0].name:
            yield f"{where(item)} metadata.name is not that of the pods, {pods[0].name}"
        for index, port in enumerate(item["spec"]["ports"]):
            yield from _port(item, f"{where(item)} spec.ports[{index}]", port, pods)


def _port(item: Obj, at: str, port: Obj, pods: list[Workload]) -> c.Iterator[Finding]:
    known = {
        one.get("name"): one.get("containerPort")
        for pod in pods
        for _at, container in pod.containers()
        for one in container.get("ports") or ()
    }
    target = port.get("targetPort")
    if target not in known:
        yield f"{at}.targetPort {target!r} is no name of a port of the pods, {sorted(map(str, known))}"
        return
    if port.get("port") != known[target]:
        yield f"{at}.port is {port.get('port')}, and pods serve {known[target]}"
    if port.get("name") != target:
        yield f"{at}.name is {port.get('name')!r}, and not {target} as on the pods: ServiceMonitors and EndpointSlices find ports by name"
    notes = item["metadata"].get("annotations") or {}
    if notes.get("prometheus.io/scrape") != "true" or notes.get("prometheus.io/port") != str(known[target]):
        yield f"{at}: metadata.annotations prometheus.io/scrape and prometheus.io/port are not true and {known[target]}, so others' Prometheus does not find it"


def dashboards(found: Manifests) -> c.Iterator[Finding]:
    """A dashboard is JSON with panels, and has the label and the annotation that Grafana's sidecar looks for."""
    for item in found.of("ConfigMap"):
        metadata, data = item["metadata"], item.get("data") or {}
        files = [name for name in data if name.endswith(".json")]
        if _DASHBOARD[0] not in (metadata.get("labels") or {}) and not files and "dashboard" not in metadata["name"]:
            continue
        if (metadata.get("labels") or {}).get(_DASHBOARD[0]) != _DASHBOARD[1]:
            yield f"{where(item)} metadata.labels: {_DASHBOARD[0]} is not {_DASHBOARD[1]!r}, which Grafana's sidecar looks for"
        folder = stack.defaults("monitoring")["monitoring_dashboard_folder"]
        if (metadata.get("annotations") or {}).get(_FOLDER) != folder:
            yield f"{where(item)} metadata.annotations: {_FOLDER} is not monitoring_dashboard_folder, {folder}"
        if not files:
            yield f"{where(item)} data has no dashboard"
        for name in files:
            if not (_parsed(json.loads, data[name]) or {}).get("panels"):
                yield f"{where(item)} data.{name} is not a dashboard in JSON"
            elif _parsed(json.loads, data[name])["uid"] != name.removesuffix(".json"):
                yield f"{where(item)} data.{name} has another uid"


def prometheus(found: Manifests) -> c.Iterator[Finding]:
    """The files for Prometheus are there and are such files, and name the namespace, the Service and the DaemonSets that exist."""
    for item in found.of("ConfigMap"):
        if not item["metadata"]["name"].endswith("-prometheus"):
            continue
        yield from _files(item)
        data = item.get("data") or {}
        called = {one.item["metadata"]["name"] for one in found.workloads}
        for name in {name for text in _DAEMON_SETS.findall(data.get("rules.yml") or "") for name in text.split("|")}:
            if re.fullmatch(r"[-a-z0-9]+", name) and name not in called:
                yield f"{where(item)} data.rules.yml names {name}, which is no metadata.name of a DaemonSet"


@once
def _files(item: Obj) -> list[Finding]:
    data, said = item.get("data") or {}, list[Finding]()
    jobs = (_parsed(yaml.safe_load, data.get("scrape_configs.yml")) or {}).get("scrape_configs")
    groups = (_parsed(yaml.safe_load, data.get("rules.yml")) or {}).get("groups")
    if not jobs or any(not job.get("job_name") for job in jobs):
        said.append(f"{where(item)} data.scrape_configs.yml has no scrape_configs")
    if not groups or any("expr" not in rule for group in groups for rule in group["rules"]):
        said.append(f"{where(item)} data.rules.yml has no groups of rules")
    return said


def counted(found: Manifests) -> c.Iterator[Finding]:
    """The exporter is told to collect every metric of the GPU that a rule or a dashboard asks for."""
    texts = [
        (item, name, str(text)) for item in found.of("ConfigMap") for name, text in (item.get("data") or {}).items()
    ]
    told = {line.split(",")[0] for _item, name, text in texts if name.endswith(".csv") for line in text.splitlines()}
    for item, name, text in texts:
        if not name.endswith(".csv") and (lacking := sorted({*_METRIC.findall(text)} - told)):
            yield f"{where(item)} data.{name} asks for {lacking}, which counters.csv does not have"


def _parsed(parse: c.Callable[[str], t.Any], text: t.Any) -> t.Any:
    """An object, None if the text is none."""
    try:
        made = parse(text)
    except (ValueError, TypeError, AttributeError, yaml.YAMLError):
        return None
    return made if isinstance(made, dict) else None
