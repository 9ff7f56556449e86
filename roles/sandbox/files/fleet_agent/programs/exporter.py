# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exporter of DCGM's metrics (NVIDIA/dcgm-exporter d5e5f51): it needs NVML, and serves which GPU has which metrics and which pod, without values."""

from __future__ import annotations

import csv
import functools
import re
from typing import Any

from fleet_agent.cluster.api import ApiError
from fleet_agent.loop import Park, Process, Sleep
from fleet_agent.machine import nvml
from fleet_agent.machine.hostfs import gpu_uuid, pci_address

#: Types of metrics (promMetricType in internal/pkg/counters/variables.go), and the one that makes a label of a field.
TYPES = ("gauge", "counter", "histogram", "summary", "label")
#: Of the kubelet, on the machine.
POD_RESOURCES = "/var/lib/kubelet/pod-resources/kubelet.sock"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"

Counter = tuple[str, str, str]

#: Counters in its image (docker/Dockerfile copies etc).
OF_IMAGE = tuple(
    f"/etc/dcgm-exporter/{name}.csv"
    for name in ("default-counters", "1.x-compatibility-metrics", "dcp-metrics-included")
)


class Failed(Exception):
    """The exporter ends with this error."""


def exporter(proc: Any) -> Process:
    settings = proc.settings
    proc.say('level=INFO msg="Starting dcgm-exporter"')
    proc.container.healthy = False
    try:
        _validate(settings)
        host, port = _address(settings["address"])
        yield Sleep(proc.clock.jitter(2))
        error = nvml.error(proc)
        if error:
            raise Failed(f"Failed to initialize NVML: {error}")
        counters = _counters((yield from _records(proc)))
        if settings["web-config-file"] and not proc.view.is_file(settings["web-config-file"]):
            path = settings["web-config-file"]
            raise Failed(f"Failed to Listen and Server HTTP server. error=open {path}: no such file or directory")
    except Failed as failed:
        proc.say(settings.table.error.format(message=failed))
        return 1
    if settings["kubernetes"]:
        _inform(proc)
    nvml.hold(proc)
    proc.container.healthy = True
    proc.say('level=INFO msg="Starting webserver"')
    # Kubelet and Prometheus come by the pod's address.
    if host not in ("127.0.0.1", "localhost", "[::1]"):
        proc.container.page = functools.partial(page, proc, counters)
        proc.container.serve(port, "/", "/health", "/metrics", *(["/debug/pprof/"] if settings["enable-pprof"] else []))
    yield Park()
    return 0


def _validate(settings: Any) -> None:
    """contextToConfig in pkg/cmd/app.go."""
    for name in ("devices", "switch-devices", "cpu-devices"):
        _chosen(settings[name], 0)
    if refusal := settings.refusal("dcgm-log-level", settings["dcgm-log-level"]):
        raise Failed(refusal)
    if settings.given("remote-hostengine-info"):
        # No simulated node has an nv-hostengine.
        raise Failed(f"Failed to connect to remote hostengine address={settings['remote-hostengine-info']}")


def _chosen(option: str, count: int) -> list[int]:
    """Indices of GPUs (parseDeviceOptions)."""
    letter, colon, text = option.partition(":")
    if letter not in ("f", "g", "i") or ":" in text:
        raise Failed(f"the only valid options preceding ':<range>' are 'g' or 'i', but found '{letter}'")
    if not colon:
        return list(range(count))
    if letter == "f":
        raise Failed("no range can be specified with the flex option 'f'")
    found: list[int] = []
    for word in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        if not match:
            raise Failed(f'strconv.Atoi: parsing "{word}": invalid syntax')
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return [index for index in found if index < count]


def _address(text: str) -> tuple[str, int]:
    host, _colon, port = text.rpartition(":")
    if not port.isdigit():
        raise Failed(f"Failed to Listen and Server HTTP server. error=listen tcp: address {host}{port}: invalid port")
    return host, int(port)


def _records(proc: Any) -> Process:
    """Lines of the counters: from a ConfigMap through the API if there is one by name, else from the file (GetCounterSet)."""
    settings = proc.settings
    reference, path = settings["configmap-data"], settings["collectors"]
    if reference != "none":
        namespace, colon, name = reference.partition(":")
        if not colon:
            raise Failed(f"malformed configmap-data '{reference}'")
        try:
            item = yield from proc.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        except ApiError as error:
            raise Failed(f"could not retrieve ConfigMap '{reference}'; err: {error}") from error
        if "metrics" not in (item.get("data") or {}):
            raise Failed(f"malformed ConfigMap '{reference}'; no 'metrics' key")
        return item["data"]["metrics"].splitlines()
    proc.say(f"level=INFO msg=\"Falling back to metric file '{path}'\"")
    if path in OF_IMAGE and not proc.view.is_file(path):
        return [
            "DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).",
            "DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).",
        ]
    try:
        return proc.view.read(path).splitlines()
    except OSError as error:
        why = f"open {path}: {str(error.strerror).lower()}"
        raise Failed(f"Could not read metrics file '{path}'; err: {why}") from error


def _counters(lines: list[str]) -> list[Counter]:
    """ExtractCounters in internal/pkg/counters/counter_config.go. Which fields a release of DCGM has is not known here, but how they are called."""
    found = []
    for number, record in enumerate(csv.reader(line for line in lines if line.strip() and not line.startswith("#"))):
        fields = [word.strip() for word in record]
        if len(fields) != 3:
            raise Failed(
                f"malformed CSV record; err: failed to parse line {number} (`[{' '.join(fields)}]`), expected 3 fields"
            )
        if not re.fullmatch(r"(DCGM_(FI|EXP)|dcgm)_\w+", fields[0]):
            raise Failed(f"could not find DCGM field; err: unknown ExporterCounter field '{fields[0]}'")
        if fields[1] not in TYPES:
            raise Failed(f"could not find Prometheus metric type '{fields[1]}'")
        found.append((fields[0], fields[1], fields[2]))
    return found


def _inform(proc: Any) -> None:
    """NewPodMapper: an informer of pods, if there is a token; without one there are no labels of pods, but still their names."""
    if not proc.view.is_file(TOKEN):
        proc.say('level=WARN msg="Failed to get in-cluster config, pod labels will not be available"')
        return

    def on_error(error: Exception | None) -> None:
        if error:
            proc.out(f'E reflector.go] "Failed to watch" err="failed to list *v1.Pod: {error}" type="*v1.Pod"\n')

    node = proc.settings.variable("NODE_NAME")
    query = {"fieldSelector": f"spec.nodeName={node}"} if node else {}
    proc.watch("/api/v1/pods", lambda _kind, _item: None, query=query, on_error=on_error)


def page(proc: Any, counters: list[Counter]) -> str:
    """What it serves under /metrics. A value is 0, as no simulated GPU has any."""
    settings, spec = proc.settings, proc.host.spec
    gpus = _chosen(settings["devices"], len(nvml.gpus(proc)))
    socket = settings["pod-resources-kubelet-socket"]
    if settings["kubernetes"] and proc.view.is_file(socket) and proc.view.locate(socket).path != POD_RESOURCES:
        return "internal server error\n"  # Another server of the kubelet does not know the request (Metrics in internal/pkg/server/server.go).
    pods = _pods(proc) if settings["kubernetes"] else {}
    model = spec.gpu.product if settings["replace-blanks-in-model-name"] else spec.gpu.product.replace("-", " ")
    lines = []
    for name, kind, text in counters:
        if kind != "label":
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            for index in gpus:
                labels = {
                    "gpu": str(index),
                    "uuid" if settings["use-old-namespace"] else "UUID": gpu_uuid(spec.name, index),
                    "pci_bus_id": pci_address(index),
                    "device": f"nvidia{index}",
                    "modelName": model,
                    "hostname": "" if settings["no-hostname"] else settings.variable("NODE_NAME") or proc.pod.name,
                    **pods.get(index, {}),
                }
                row = ",".join(f'{key}="{value}"' for key, value in labels.items() if value)
                lines.append(f"{name}{{{row}}} 0")
    return "\n".join(lines) + "\n"


def _pods(proc: Any) -> dict[int, dict[str, str]]:
    """Which container has which GPU, from the kubelet's socket; nothing where that is not (getMappings in internal/pkg/transformation/kubernetes.go)."""
    settings, devices = proc.settings, proc.kubelet.devices
    if not proc.view.is_file(settings["pod-resources-kubelet-socket"]):
        return {}
    names = (
        ("pod_name", "pod_namespace", "container_name")
        if settings["use-old-namespace"]
        else ("pod", "namespace", "container")
    )
    found: dict[int, dict[str, str]] = {}
    for pod in proc.kubelet.pods.values():
        for container in pod.main if pod.uid in devices.allocated else ():
            for resource, ids in container.devices.items():
                if resource in ("nvidia.com/gpu", *settings["nvidia-resource-names"]) or resource.startswith(
                    "nvidia.com/mig-"
                ):
                    values = (pod.name, pod.namespace, container.name)
                    found |= {
                        int(one.split("::")[0].rpartition("#")[2]): dict(zip(names, values, strict=True)) for one in ids
                    }
    return found
