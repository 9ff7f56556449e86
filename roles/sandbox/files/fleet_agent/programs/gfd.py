# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU feature discovery (NVIDIA/k8s-device-plugin v0.20.0, cmd/gpu-feature-discovery and internal/lm): labels into a NodeFeature or a file."""

from __future__ import annotations

import re
import time
from typing import Any

from fleet_agent.cluster.api import ApiError, Unreachable
from fleet_agent.loop import Process, Sleep
from fleet_agent.machine import nvml, products
from fleet_agent.programs import flags
from fleet_agent.programs.decoding import resource_name
from fleet_agent.programs.device_plugin import ConfigError, load_config, setting, shared_resources
from fleet_agent.programs.kept import Kept

_DISCOVERY = "device-discovery-strategy"


def labels(proc: Any, config: dict[str, Any], now: str) -> dict[str, str]:
    gpu, version = proc.host.spec.gpu, proc.host.modules.get("nvidia", "")
    count = len(nvml.gpus(proc))
    product = products.find(gpu.product)
    driver, cuda = (version + "..").split("."), nvml.cuda_version(version).split(".")
    method, shared = shared_resources(config)
    named = [r for r in shared.get("resources") or [] if resource_name(r["name"]) == "nvidia.com/gpu"]
    resource = named[0] if named else None
    strategy = setting(proc, config, "mig-strategy")
    suffix = "-SHARED" if resource and not shared.get("renameByDefault") else ""
    found = {
        "cuda.driver-version.full": version,
        "cuda.driver-version.major": driver[0],
        "cuda.driver-version.minor": driver[1],
        "cuda.driver-version.revision": driver[2],
        "cuda.runtime-version.full": ".".join(cuda),
        "cuda.runtime-version.major": cuda[0],
        "cuda.runtime-version.minor": cuda[1],
        "gpu.count": str(count),
        "gpu.product": gpu.product + suffix,
        "gpu.memory": str(gpu.memory_mib),
        "gpu.family": product.family,
        "gpu.machine": "simulated",
        "gpu.compute.major": str(product.compute[0]),
        "gpu.compute.minor": str(product.compute[1]),
        "gpu.replicas": str(resource.get("replicas", 1)) if resource else "1",
        "gpu.mode": "compute",
        "gpu.sharing-strategy": ("mps" if method == "mps" else "time-slicing") if resource else "none",
        "mig.capable": str(gpu.mig_capable).lower(),
        "mps.capable": str(method == "mps").lower(),
        "vgpu.present": "false",
        # Deprecated names (newVersionLabeler in internal/lm/nvml.go).
        "cuda.driver.major": driver[0],
        "cuda.driver.minor": driver[1],
        "cuda.driver.rev": driver[2],
        "cuda.runtime.major": cuda[0],
        "cuda.runtime.minor": cuda[1],
    }
    if strategy != "none":
        found["mig.strategy"] = strategy
    if not setting(proc, config, "no-timestamp"):
        found["gfd.timestamp"] = now
    return {"nvidia.com/" + key: re.sub(r"[^A-Za-z0-9_.-]", "-", value) for key, value in found.items()}


def _uses_api(proc: Any, config: dict[str, Any]) -> bool:
    """NodeFeature objects, or a file: that was the default before v0.19 of the image."""
    match = re.match(r"v0\.(\d+)", proc.container.image.tag)
    if match and int(match[1]) < 19 and not proc.settings.given("use-node-feature-api"):
        return bool((config.get("flags") or {}).get("useNodeFeatureAPI"))
    return bool(setting(proc, config, "use-node-feature-api"))


def gfd(proc: Any) -> Process:
    proc.say("I main.go] Starting OS watcher.")
    started = str(int(time.time()))
    starts = None
    kept = Kept(proc)
    while True:
        try:
            if starts != proc.container.hangups:  # SIGHUP restarts everything.
                starts = proc.container.hangups
                config = load_config(proc)
                if refusal := proc.settings.refusal(_DISCOVERY, setting(proc, config, _DISCOVERY)):
                    raise ConfigError(f"unable to load config: unable to validate flags: {refusal}")
                owners = (yield from _owners(proc)) if _uses_api(proc, config) else []
                interval = _interval(proc, config)
            if (strategy := setting(proc, config, "mig-strategy")) not in ("none", "single", "mixed"):
                raise ConfigError(
                    "error creating labeler: error creating resource labeler: failed to construct MIG resource labeler: unknown strategy: "
                    + strategy
                )
            found = {} if nvml.is_tegra(proc) else _found(proc, config, started)
            if _uses_api(proc, config):
                yield from _publish(proc, kept, found, owners)
            else:
                path = setting(proc, config, "output-file")
                proc.say(f"I output.go] Writing labels to output file {path}")
                proc.view.write(path, "".join(f"{k}={v}\n" for k, v in found.items()))
        except OSError as error_:
            proc.say(
                f"E main.go] error atomically writing file '{error_.filename}': open {error_.filename}: {str(error_.strerror).lower()}"
            )
            return 1
        except (ConfigError, ApiError, Unreachable) as error_:
            proc.say(f"E main.go] {error_}")
            return 1
        if setting(proc, config, "oneshot"):
            return 0
        yield Sleep(max(interval, proc.kubelet.agent.polite(proc)))


def _interval(proc: Any, config: dict[str, Any]) -> float:
    """Seconds. A number in the file is one of nanoseconds (UnmarshalJSON in api/config/v1/duration.go)."""
    value = setting(proc, config, "sleep-interval")
    if isinstance(value, float):
        return value
    try:
        return float(flags.KINDS["interval"](value) if isinstance(value, str) else value / 1e9)  # type: ignore[arg-type]
    except flags.Invalid as error:
        raise ConfigError(
            f"unable to load config: unable to finalize config: unable to parse config file: {error}"
        ) from error


def _found(proc: Any, config: dict[str, Any], started: str) -> dict[str, str]:
    """Labels; without NVML an error, or only that there is no virtual GPU. The library is that of the container (nvml.New in main.go)."""
    error = nvml.error(proc, "/")
    if not error:
        return labels(proc, config, started)
    absent = error == nvml.NO_LIBRARY
    if setting(proc, config, "fail-on-init-error"):
        raise ConfigError(
            "failed to create resource manager: unsupported strategy auto"
            if absent
            else f"error creating labeler: failed to initialize resource manager: {nvml.text(error)}"
        )
    proc.say(
        'E factory.go] "using empty manager" err="unsupported strategy auto"'
        if absent
        else f"W fallback.go] Failed to initialize resource manager: {nvml.text(error)}"
    )
    proc.say("W main.go] No labels generated from any source")
    return {"nvidia.com/vgpu.present": "false"}


def _owners(proc: Any) -> Process:
    """DaemonSet and pod, if POD_NAME is set and the pod may be read; otherwise none, with a warning."""
    for flag in ("node-name", "namespace"):
        if not proc.settings[flag]:
            raise ConfigError(f"failed to create label outputer: required flag {flag} not set")
    name, namespace = proc.settings["pod-name"], proc.settings["namespace"]
    if not name:
        return []
    try:
        yield from proc.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
    except ApiError as error:
        proc.say(f"W output.go] Failed to resolve owner references: failed to get pod {namespace}/{name}: {error}")
        return []
    owner = next((o for o in proc.pod.owners if o["kind"] == "DaemonSet"), None)
    if owner is None:
        return []
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": "DaemonSet",
            "name": owner["name"],
            "uid": owner["uid"],
            "controller": True,
        },
        {"apiVersion": "v1", "kind": "Pod", "name": proc.pod.name, "uid": proc.pod.uid},
    ]


def _publish(proc: Any, kept: Kept, found: dict[str, str], owners: list[dict[str, Any]]) -> Process:
    node, namespace = proc.settings["node-name"], proc.settings["namespace"]
    content = (found, owners)
    if kept.holds(content):
        return
    name = f"nvidia-features-for-{node}"
    base = f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{namespace}/nodefeatures"
    spec = {"features": {"flags": {}, "attributes": {}, "instances": {}}, "labels": found}
    metadata = {"name": name, "labels": {"nfd.node.kubernetes.io/node-name": node}, "ownerReferences": owners}
    try:
        old = yield from proc.request("GET", f"{base}/{name}")
    except ApiError as error:
        if error.code != 404:
            raise ConfigError(f"failed to get NodeFeature object: {error}") from error
        old = None
    body = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", "metadata": metadata, "spec": spec}
    try:
        if old is None:
            proc.say(f"I output.go] creating NodeFeature object {name}")
            yield from proc.request("POST", base, body)
        elif old.get("spec", {}).get("labels") != found or old["metadata"].get("ownerReferences", []) != owners:
            proc.say(f"I output.go] Updating NodeFeature object {name}")
            metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
            yield from proc.request("PUT", f"{base}/{name}", body)
    except ApiError as error:
        raise ConfigError(f'failed to {"update" if old else "create"} NodeFeature object "{name}": {error}') from error
    kept.observed(content)
