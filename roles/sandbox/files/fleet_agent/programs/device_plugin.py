# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device plugin, GPU feature discovery's neighbor config-manager, and their configuration (NVIDIA/k8s-device-plugin v0.20.0)."""

from __future__ import annotations

import functools
from typing import Any

import yaml

from fleet_agent.cluster.api import ApiError, Unreachable
from fleet_agent.loop import Park, Poll, Process, Sleep, Terminated
from fleet_agent.machine import nvml
from fleet_agent.machine.devices import Endpoint
from fleet_agent.machine.hostfs import gpu_uuid
from fleet_agent.programs import yamltext

CDI_SPEC = "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.yaml"
#: DefaultNvidiaCTKPath in api/config/v1/consts.go.
HOOK = "/usr/bin/nvidia-ctk"
SOCKETS = "/var/lib/kubelet/device-plugins"
#: api/config/v1/consts.go.
LIST_STRATEGIES = ("envvar", "volume-mounts", "cdi-annotations", "cdi-cri")
#: validateFlags in cmd/nvidia-device-plugin/main.go.
ONLY_WITH_NVML = "CDI --device-list-strategy options are only supported on NVML-based systems"


#: DisableResourceNamingInConfig in api/config/v1/config.go, and what it calls in replicas.go.
NO_NAMES = "W config.go] Customizing the 'resources' field is not yet supported in the config. Ignoring..."
NO_RENAME = (
    "W replicas.go] Setting the 'rename' field in sharing.{0}.resources is not yet supported in the config. Ignoring..."
)
NO_SELECTION = "W replicas.go] Customizing the 'devices' field in sharing.{0}.resources is not yet supported in the config. Ignoring..."
NAMED = "error parsing config file: unmarshal error: error unmarshaling JSON: while decoding JSON: "


class ConfigError(Exception):
    """The plugin's own message about its configuration."""


def load_config(proc: Any) -> dict[str, Any]:
    """File, then flags and environment on top."""
    path = proc.option("config-file", "CONFIG_FILE")
    if not path:
        return {}
    try:
        config = yamltext.load(proc.view.read(path)) or {}
    except OSError as error:
        raise ConfigError(
            f"unable to load config: unable to finalize config: unable to parse config file: error opening config file: open {path}: "
            f"{str(error.strerror).lower()}"
        ) from error
    except yaml.YAMLError as error:
        raise ConfigError(
            "unable to load config: unable to finalize config: unable to parse config file: error parsing config file: "
            f"unmarshal error: {error}"
        ) from error
    if not isinstance(config, dict) or (config.get("version") or "v1") != "v1":
        raise ConfigError(
            "unable to load config: unable to finalize config: unable to parse config file: error parsing config file: "
            f"unknown version: {config.get('version') if isinstance(config, dict) else config}"
        )
    fault = _sharing_fault(config.get("sharing") or {})
    if fault:
        raise ConfigError(
            f"unable to load config: unable to finalize config: unable to parse config file: {NAMED}{fault}"
        )
    return config


def _sharing_fault(sharing: dict[str, Any]) -> str:
    """UnmarshalJSON of ReplicatedResources and ReplicatedResource in api/config/v1/replicas.go."""
    for method in sharing.values():
        if method is None:
            continue
        if not method.get("resources"):
            return "no resources specified"
        for resource in method["resources"]:
            if "name" not in resource:
                return "no resource name specified"
            if "replicas" not in resource:
                return "no replicas specified"
            if int(resource["replicas"]) < 2:
                return "number of replicas must be >= 2"
    return ""


def shared_resources(config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Method and resources, by ReplicatedResources in api/config/v1/sharing.go: MPS where the file has it, else time-slicing."""
    sharing = config.get("sharing") or {}
    method = "mps" if sharing.get("mps") is not None else "timeSlicing"
    return method, sharing.get(method) or {}


def ignored(config: dict[str, Any]) -> list[str]:
    """Warnings about fields that the plugin reads and does not follow."""
    named = config.get("resources") or {}
    found = [NO_NAMES] if named.get("gpus") or named.get("migs") else []
    for method in ("timeSlicing", "mps"):
        shared = (config.get("sharing") or {}).get(method) or {}
        suffix = ".shared" if shared.get("renameByDefault") else None
        resources = shared.get("resources") or []
        if any((row.get("rename") or "") not in ("", suffix and row["name"] + suffix) for row in resources):
            found.append(NO_RENAME.format(method))
        if any(row.get("devices", "all") != "all" for row in resources):
            found.append(NO_SELECTION.format(method))
    return found


def setting(proc: Any, config: dict[str, Any], flag: str, env: str, key: str, default: str, part: str = "") -> str:
    """Command line, environment, then file: in the plugin's order of precedence."""
    given = proc.option(flag, env)
    if given:
        return str(given)
    flags = config.get("flags") or {}
    value = (flags.get(part) or {}).get(key) if part else flags.get(key)
    if value is None:
        return default
    return (
        ",".join(map(str, value))
        if isinstance(value, list)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def device_plugin(proc: Any) -> Process:
    proc.say("Starting NVIDIA Device Plugin")
    while True:
        try:
            config = load_config(proc)
        except ConfigError as error:
            proc.say(f"E main.go] error starting plugins: {error}")
            return 1
        for warning in ignored(config):
            proc.say(warning)
        fault = _flag_fault(proc, config)
        if fault:
            proc.say(f"E main.go] error starting plugins: unable to validate flags: {fault}")
            return 1
        if not proc.view.is_file(f"{SOCKETS}/kubelet.sock") or not proc.view.locate(SOCKETS).host:
            proc.say(f"E main.go] failed to create FS watcher for {SOCKETS}/: no such file or directory")
            return 1
        fault = _discovery_fault(proc, config)
        if fault:
            proc.say(fault)
            if (
                setting(proc, config, "fail-on-init-error", "FAIL_ON_INIT_ERROR", "failOnInitError", "true").lower()
                == "true"
            ):
                proc.say(
                    "E main.go] error starting plugins: error creating plugin manager: unable to create plugin manager: invalid device discovery strategy"
                )
                return 1
            proc.say("No devices found. Waiting indefinitely.")
            yield Park()
            return 0
        nvml.hold(proc)
        again = yield from _serve(proc, config)
        if not again:
            return 0


def _flag_fault(proc: Any, config: dict[str, Any]) -> str:
    """validateFlags in cmd/nvidia-device-plugin/main.go, in its order."""
    for strategy in _strategies(proc, config):
        if strategy not in LIST_STRATEGIES:
            return f"invalid --device-list-strategy option: invalid strategy: {strategy}"
    if any(strategy.startswith("cdi") for strategy in _strategies(proc, config)) and not _has_nvml(proc):
        return ONLY_WITH_NVML
    identity = setting(proc, config, "device-id-strategy", "DEVICE_ID_STRATEGY", "deviceIDStrategy", "uuid", "plugin")
    if identity not in ("uuid", "index"):
        return f"invalid --device-id-strategy option: {identity}"
    policy = setting(
        proc,
        config,
        "shared-devices-allocation-policy",
        "SHARED_DEVICES_ALLOCATION_POLICY",
        "sharedDevicesAllocationPolicy",
        "distributed",
        "plugin",
    )
    if policy not in ("distributed", "packed"):
        return f"invalid --shared-devices-allocation-policy option: {policy}"
    discovery = setting(
        proc, config, "device-discovery-strategy", "DEVICE_DISCOVERY_STRATEGY", "deviceDiscoveryStrategy", "auto"
    )
    if discovery not in ("auto", "nvml", "tegra"):
        return f"invalid --device-discovery-strategy option {discovery}"
    mig = setting(proc, config, "mig-strategy", "MIG_STRATEGY", "migStrategy", "none")
    return "" if mig in ("none", "single", "mixed") else f"unknown MIG strategy: {mig}"


def _root(proc: Any) -> str:
    return (
        proc.option("container-driver-root", "CONTAINER_DRIVER_ROOT")
        or proc.env.get("DRIVER_ROOT_CTR_PATH")
        or "/driver-root"
    )


def _has_nvml(proc: Any) -> bool:
    """Whether the library can be loaded. Boards have it since JetPack 6. Simulated boards have an earlier version."""
    return not nvml.is_tegra(proc) and nvml.error(proc, _root(proc)) != "ERROR_LIBRARY_NOT_FOUND"


def _discovery_fault(proc: Any, config: dict[str, Any]) -> str:
    if nvml.is_tegra(proc):
        return ""
    error = nvml.error(proc, _root(proc))
    if not error:
        return ""
    return (
        f"E factory.go] Incompatible strategy detected auto\nE factory.go] NVML initialization failed: {error}\n"
        "E factory.go] If this is a GPU node, did you configure the NVIDIA Container Toolkit?\n"
        "E factory.go] You can check the prerequisites at: https://github.com/NVIDIA/k8s-device-plugin#prerequisites\n"
        "E factory.go] If this is not a GPU node, you should set up a toleration or nodeSelector to only deploy this plugin on GPU nodes"
    )


def endpoint(proc: Any, config: dict[str, Any]) -> Endpoint:
    """The resource of the GPUs according to the configuration."""
    name, replicas = "nvidia.com/gpu", 1
    _method, shared = shared_resources(config)
    for resource in shared.get("resources") or []:
        if resource["name"] == name:
            replicas = int(resource["replicas"])
            name += ".shared" if shared.get("renameByDefault") else ""
            break
    gpus = ["tegra#0"] if nvml.is_tegra(proc) else [f"gpu#{i}" for i in nvml.gpus(proc)]
    gpus = gpus[: proc.kubelet.agent.faults.plugin_gpus(proc.host.spec, len(gpus))]
    ids = {gpu if replicas == 1 else f"{gpu}::{n}": True for n in range(replicas) for gpu in gpus}
    identity = setting(proc, config, "device-id-strategy", "DEVICE_ID_STRATEGY", "deviceIDStrategy", "uuid", "plugin")
    return Endpoint(name, ids, proc.container.container_id, _strategies(proc, config), identity)


def _strategies(proc: Any, config: dict[str, Any]) -> tuple[str, ...]:
    """How devices are passed to containers."""
    return tuple(
        setting(
            proc, config, "device-list-strategy", "DEVICE_LIST_STRATEGY", "deviceListStrategy", "envvar", "plugin"
        ).split(",")
    )


def _serve(proc: Any, config: dict[str, Any]) -> Process:
    """Registered until the process ends; True requests a restart (changed configuration or GPUs)."""
    kubelet, container = proc.kubelet, proc.container
    yield Sleep(proc.clock.delay("plugin_register"))
    offered = endpoint(proc, config)
    if any(s.startswith("cdi") for s in offered.strategies):
        proc.view.make_folder("/var/run/cdi", True)
        hook = proc.option("nvidia-cdi-hook-path", "NVIDIA_CDI_HOOK_PATH") or proc.env.get("NVIDIA_CTK_PATH") or HOOK
        proc.view.write(CDI_SPEC, f"cdiVersion: 0.5.0\nkind: k8s.device-plugin.nvidia.com/gpu\nhook: {hook}\n")
    proc.say(
        f"I server.go] Starting GRPC server for '{offered.resource}'\nI server.go] Starting to serve '{offered.resource}' on {SOCKETS}/nvidia-gpu.sock"
    )
    starts = kubelet.kubelet_starts
    kubelet.devices.register(offered)
    proc.say(f"I server.go] Registered device plugin for '{offered.resource}' with Kubelet")
    owner = container.container_id
    gone = functools.partial(kubelet.devices.unregister, owner)
    container.at_exit.append(gone)
    reloads = container.hangups
    try:
        while True:
            yield Poll(1, proc.host)
            if container.hangups != reloads:
                proc.say("I main.go] Received SIGHUP, restarting.")
                break
            now = endpoint(proc, config)
            if kubelet.kubelet_starts != starts:
                proc.say(f"I main.go] inotify: {SOCKETS}/kubelet.sock created, restarting.")
                yield Sleep(4)
                break
            if now.devices.keys() != offered.devices.keys():
                break
            _check_health(proc, offered)
    except Terminated:
        proc.say('I main.go] Received signal "terminated", shutting down.')
        return False
    container.at_exit.remove(gone)
    if endpoint(proc, config).resource != offered.resource:
        kubelet.devices.unregister(owner)
    return True


def _check_health(proc: Any, offered: Endpoint) -> None:
    """checkHealth (internal/rm/health.go): a GPU whose driver reports a critical Xid is unhealthy until the plugin restarts."""
    host = proc.host
    striking = proc.kubelet.agent.faults.xid(host.spec, host.spec.gpu.count)
    if striking is None or striking[0] in host.struck:
        return
    index, xid = striking
    host.struck[index] = xid
    host.changed()
    uuid = gpu_uuid(host.spec.name, index)
    proc.say(
        f"I health.go] XidCriticalError: Xid={xid} on Device={uuid}; marking device as unhealthy.\n"
        f"I server.go] '{offered.resource}' device marked unhealthy: {uuid}"
    )
    proc.kubelet.devices.unhealthy(
        offered.owner, {identity for identity in offered.devices if identity.split("::")[0] == f"gpu#{index}"}
    )


def config_manager(proc: Any) -> Process:
    """Selects the configuration in the node's label, and signals the plugin when it changes."""
    source, target = (
        proc.option("config-file-srcdir", "CONFIG_FILE_SRCDIR"),
        proc.option("config-file-dst", "CONFIG_FILE_DST"),
    )
    label = proc.option("node-label", "NODE_LABEL") or "nvidia.com/device-plugin.config"
    node = proc.option("node-name", "NODE_NAME")
    oneshot = proc.option("oneshot", "ONESHOT", "false").lower() == "true"
    current = None
    while True:
        try:
            item = yield from proc.request("GET", f"/api/v1/nodes/{node}")
        except (ApiError, Unreachable) as error:
            proc.say(f'level=error msg="Error: unable to get node \\"{node}\\": {error}"')
            return 1
        desired = (item["metadata"].get("labels") or {}).get(label, "")
        if desired != current:
            fault = _switch(proc, source, target, desired)
            if fault:
                proc.say(f'level=error msg="Error: {fault}"')
                return 1
            if current is not None:
                _signal_plugin(proc)
            current = desired
        if oneshot:
            return 0
        yield Poll(1, proc.host)


def _switch(proc: Any, source: str, target: str, desired: str) -> str:
    names = [n for n in proc.view.names(source) if not n.startswith(".")] if proc.view.is_folder(source) else []
    name = desired or proc.option("default-config", "DEFAULT_CONFIG")
    if not name:
        strategies = (proc.env.get("FALLBACK_STRATEGIES") or "empty").split(",")
        name = (
            next(iter(names), "")
            if "single" in strategies and len(names) == 1
            else "default"
            if "named" in strategies and "default" in names
            else ""
        )
    if name and name not in names:
        return f"specified config {name} does not exist"
    text = proc.view.read(f"{source}/{name}") if name else "version: v1\n"
    try:
        proc.view.write(target, text)
    except OSError as error:
        return f"error updating config: {error.filename}: {error.strerror}"
    proc.say(f'level=info msg="Successfully updated to config: {name or "<none>"}"')
    return ""


def _signal_plugin(proc: Any) -> None:
    """SIGHUP reaches other containers only in a shared process namespace."""
    if proc.option("send-signal", "SEND_SIGNAL", "true").lower() == "true" and proc.pod.spec.get(
        "shareProcessNamespace"
    ):
        for container in proc.pod.main:
            if container is not proc.container:
                container.hangups += 1
        proc.host.changed()
