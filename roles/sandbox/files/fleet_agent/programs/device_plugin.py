# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device plugin, GPU feature discovery's neighbor config-manager, and their configuration (NVIDIA/k8s-device-plugin v0.20.0)."""

from __future__ import annotations

import functools
import posixpath
from typing import Any

import yaml

from fleet_agent.cluster.api import Unreachable
from fleet_agent.loop import Park, Poll, Process, Sleep, Terminated
from fleet_agent.machine import cdi, nvml
from fleet_agent.machine.devices import PLUGIN_KIND, Endpoint, device_name
from fleet_agent.machine.hostfs import gpu_uuid
from fleet_agent.programs import decoding, yamltext

CDI_SPEC = f"/var/run/cdi/{PLUGIN_KIND.replace('/', '-')}.json"
SOCKETS = "/var/lib/kubelet/device-plugins"
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
    path = proc.settings["config-file"]
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
            f"unmarshal error: {decoding.of_yaml(error)}"
        ) from error
    if not isinstance(config, dict):
        fault = decoding.of_kind(config, "value", "v1.Config")
        raise ConfigError(
            f"unable to load config: unable to finalize config: unable to parse config file: {NAMED}{fault}"
        )
    if (config.get("version") or "v1") != "v1":
        raise ConfigError(
            "unable to load config: unable to finalize config: unable to parse config file: error parsing config file: "
            f"unknown version: {config['version']}"
        )
    fault = _sharing_fault(config.get("sharing") or {})
    if fault:
        raise ConfigError(
            f"unable to load config: unable to finalize config: unable to parse config file: {NAMED}{fault}"
        )
    return config


def _sharing_fault(sharing: dict[str, Any]) -> str:
    """UnmarshalJSON of ReplicatedResources and ReplicatedResource in api/config/v1/replicas.go."""
    for name, method in sharing.items():
        if method is None:
            continue
        if not method.get("resources"):
            return "no resources specified"
        for resource in method["resources"]:
            fault = _replica_fault(resource, f"struct field Sharing.sharing.{name}")
            if fault:
                return fault
    return ""


def _replica_fault(resource: dict[str, Any], place: str) -> str:
    """UnmarshalJSON of one resource, in its order."""
    if "name" not in resource:
        return "no resource name specified"
    if fault := decoding.of_resource_name(resource["name"]):
        return fault
    if "replicas" not in resource:
        return "no replicas specified"
    if not isinstance(resource["replicas"], int):
        return decoding.of_kind(resource["replicas"], place, "int")
    if resource["replicas"] < 2:
        return "number of replicas must be >= 2"
    return decoding.of_resource_name(resource["rename"]) if resource.get("rename") else ""


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


def setting(proc: Any, config: dict[str, Any], name: str) -> Any:
    """Command line, environment, then file: in the plugin's order of precedence (NewConfig in api/config/v1/config.go)."""
    settings = proc.settings
    field = settings.table.by_name[name].field
    value: Any = config.get("flags") or {}
    for part in field.split("."):
        value = (value or {}).get(part) if field else None
    if value is None or settings.given(name):
        return settings[name]
    if settings.table.by_name[name].kind == "strings":
        return (value,) if isinstance(value, str) else tuple(map(str, value))
    return value


def device_plugin(proc: Any) -> Process:
    proc.say(f'I main.go] "Starting NVIDIA Device Plugin" version="{proc.container.image.tag}"')
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
        socket = setting(proc, config, "kubelet-socket")
        if not proc.view.is_file(socket) or not proc.view.locate(posixpath.dirname(socket)).host:
            # The message has the folder's default, whatever the setting (main.go).
            proc.say(f"E main.go] failed to create FS watcher for {SOCKETS}/: no such file or directory")
            return 1
        fault = _discovery_fault(proc, config)
        if fault:
            proc.say(fault)
            if setting(proc, config, "fail-on-init-error"):
                proc.say(f"E main.go] error starting plugins: {_NO_PLUGINS}: {_init_failed(proc)}")
                return 1
            proc.say(f"W factory.go] {_init_failed(proc)}\nI main.go] No devices found. Waiting indefinitely.")
            yield Park()
            return 0
        nvml.hold(proc)
        again = yield from _serve(proc, config)
        if not again:
            return 0


def _flag_fault(proc: Any, config: dict[str, Any]) -> str:
    """validateFlags in cmd/nvidia-device-plugin/main.go, in its order."""
    refusals = [
        proc.settings.refusal("device-list-strategy", _strategies(proc, config)),
        ONLY_WITH_NVML if _uses_cdi(proc, config) and not _has_nvml(proc) else "",
        *(_refusal(proc, config, name) for name in ("device-id-strategy", "shared-devices-allocation-policy")),
    ]
    if shared_resources(config)[0] == "mps":
        if setting(proc, config, "mig-strategy") == "mixed":
            refusals.append("using --mig-strategy=mixed is not supported with MPS")
        if not setting(proc, config, "mps-root"):
            refusals.append("using MPS requires --mps-root to be specified")
    refusals += [_refusal(proc, config, name) for name in ("device-discovery-strategy", "mig-strategy")]
    return next(filter(None, refusals), "")


def _refusal(proc: Any, config: dict[str, Any], name: str) -> str:
    return str(proc.settings.refusal(name, setting(proc, config, name)))


def _root(proc: Any) -> str:
    return str(proc.settings["driver-root-ctr-path"])


def _has_nvml(proc: Any) -> bool:
    """Whether the library can be loaded. Boards have it since JetPack 6. Simulated boards have an earlier version."""
    return not nvml.is_tegra(proc) and nvml.error(proc, _root(proc)) != nvml.NO_LIBRARY


def _discovery_fault(proc: Any, config: dict[str, Any]) -> str:
    if nvml.is_tegra(proc):
        return ""
    error = nvml.error(proc, _root(proc))
    if not error:
        return ""
    # resolveStrategy in cmd/nvidia-device-plugin/plugin-manager.go, then getResourceManagers in internal/plugin/factory.go.
    unknown = "W plugin-manager.go] Unsupported platform detected; defaulting to nvml\n" * (not _has_nvml(proc))
    return (
        f"{unknown}E factory.go] Failed to initialize NVML: {nvml.text(error)}.\n"
        "E factory.go] If this is a GPU node, did you set the docker default runtime to `nvidia`?\n"
        "E factory.go] You can check the prerequisites at: https://github.com/NVIDIA/k8s-device-plugin#prerequisites\n"
        "E factory.go] You can learn how to set the runtime at: https://github.com/NVIDIA/k8s-device-plugin#quick-start\n"
        "E factory.go] If this is not a GPU node, you should set up a toleration or nodeSelector to only deploy this plugin on GPU nodes"
    )


#: GetPlugins in cmd/nvidia-device-plugin/plugin-manager.go.
_NO_PLUGINS = "error getting plugins: unable to create plugins: failed to construct resource managers"


def _init_failed(proc: Any) -> str:
    return f"nvml init failed: {nvml.text(nvml.error(proc, _root(proc)))}"


def endpoint(proc: Any, config: dict[str, Any]) -> Endpoint:
    """The resource of the GPUs according to the configuration."""
    name, replicas = "nvidia.com/gpu", 1
    _method, shared = shared_resources(config)
    for resource in shared.get("resources") or []:
        if decoding.resource_name(resource["name"]) == name:
            replicas = int(resource["replicas"])
            name += ".shared" if shared.get("renameByDefault") else ""
            break
    gpus = ["tegra#0"] if nvml.is_tegra(proc) else [f"gpu#{i}" for i in nvml.gpus(proc)]
    gpus = gpus[: proc.kubelet.agent.faults.plugin_gpus(proc.host.spec, len(gpus))]
    ids = {gpu if replicas == 1 else f"{gpu}::{n}": True for n in range(replicas) for gpu in gpus}
    identity = setting(proc, config, "device-id-strategy")
    prefix = setting(proc, config, "cdi-annotation-prefix")
    return Endpoint(name, ids, proc.container.container_id, _strategies(proc, config), identity, prefix)


def _strategies(proc: Any, config: dict[str, Any]) -> tuple[str, ...]:
    """How devices are passed to containers."""
    strategies: tuple[str, ...] = setting(proc, config, "device-list-strategy")
    return strategies


def _uses_cdi(proc: Any, config: dict[str, Any]) -> bool:
    return any(strategy.startswith("cdi") for strategy in _strategies(proc, config))


def _write_specification(proc: Any, config: dict[str, Any], identity: str) -> None:
    """CreateSpecFile in internal/cdi/cdi.go."""
    gpus = nvml.gpus(proc)
    names = {device_name(proc.host.spec.name, index, identity): [index] for index in gpus}
    proc.view.make_folder(posixpath.dirname(CDI_SPEC), True)
    hook = setting(proc, config, "nvidia-cdi-hook-path")
    proc.view.write(CDI_SPEC, cdi.specification(PLUGIN_KIND, {**names, "all": gpus}, hook))


def _serve(proc: Any, config: dict[str, Any]) -> Process:
    """Registered until the process ends; True requests a restart (changed configuration or GPUs)."""
    kubelet, container = proc.kubelet, proc.container
    yield Sleep(proc.clock.delay("plugin_register"))
    offered = endpoint(proc, config)
    if _uses_cdi(proc, config):
        _write_specification(proc, config, offered.id_strategy)
    socket = f"{SOCKETS}/nvidia-{offered.resource.rpartition('/')[2]}.sock"
    proc.say(
        f"I server.go] Starting GRPC server for '{offered.resource}'\nI server.go] Starting to serve '{offered.resource}' on {socket}"
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


#: validateFlags of cmd/config-manager/main.go, in its order.
_NOT_EMPTY = ("node-name", "node-label", "config-file-srcdir", "config-file-dst")


def config_manager(proc: Any) -> Process:
    """Selects the configuration in the node's label, and signals the plugin when it changes."""
    settings, node = proc.settings, proc.settings["node-name"]
    label = settings["node-label"]
    missing = next((name for name in _NOT_EMPTY if not settings[name]), "")
    if missing:
        proc.say(f"E main.go] invalid <{missing}>: must not be empty string")
        return 1
    labels: dict[str, str] = {}
    state = {"synced": False}

    def on_node(kind: str, item: dict[str, Any]) -> None:
        proc.kubelet.loop.post(take, kind, item)

    def take(kind: str, item: dict[str, Any]) -> None:
        if kind != "SYNCED":
            labels.clear()
            labels.update({} if kind == "DELETED" else item["metadata"].get("labels") or {})
            state["synced"] = True
            proc.host.changed()

    def on_error(error: Exception | None) -> None:
        if error:
            proc.out(f'E reflector.go] "Failed to watch" err="failed to list *v1.Node: {error}" type="*v1.Node"\n')

    try:
        proc.watch("/api/v1/nodes", on_node, query={"fieldSelector": f"metadata.name={node}"}, on_error=on_error)
    except Unreachable as error:
        proc.say(f"E main.go] error building kubernetes clientcmd config: {error}")
        return 1
    current = None
    while True:
        desired = labels.get(label, "")
        if state["synced"] and desired != current:
            proc.say(f"I main.go] Label change detected: {label}={desired}")
            fault = _switch(proc, desired)
            if fault:
                proc.say(f"E main.go] {fault}")
                return 1
            if current is not None:
                _signal_plugin(proc)
            current = desired
        if current is not None and settings["oneshot"]:
            return 0
        yield Poll(1, proc.host)


def _switch(proc: Any, desired: str) -> str:
    """updateConfig. Returns the error, empty if it succeeds."""
    source, target = proc.settings["config-file-srcdir"], proc.settings["config-file-dst"]
    if not proc.view.is_folder(source):
        return f"error getting list of configuration files: error reading directory: open {source}: no such file or directory"
    names = [n for n in proc.view.names(source) if not n.startswith(".")]
    name, fault = _selected(proc, desired, names)
    if fault:
        return fault
    try:
        proc.view.write(target, proc.view.read(f"{source}/{name}") if name else "version: v1\n")
    except OSError as error:
        return f"error creating symlink: symlink {source}/{name} {target}: {str(error.strerror).lower()}"
    proc.say(f"I main.go] Successfully updated to {f'config: {name}' if name else 'empty config'}")
    return ""


def _selected(proc: Any, desired: str, names: list[str]) -> tuple[str, str]:
    """updateConfigName: the file, "" for an empty configuration, and the error."""
    settings = proc.settings
    if not names:
        return "", "no configuration files available"
    chosen = desired or settings["default-config"]
    if chosen:
        return chosen, "" if chosen in names else f"specified config {desired} does not exist"
    for strategy in settings["fallback-strategies"]:
        if refusal := settings.refusal("fallback-strategies", strategy):
            return "", refusal
        if strategy == "empty":
            return "", ""
        if strategy == "named" and "default" in names:
            return "default", ""
        if strategy == "single" and len(names) == 1:
            return names[0], ""
    return "", "no config was set, no default was provided, and all fallbacks failed"


def _signal_plugin(proc: Any) -> None:
    """SIGHUP reaches other containers only in a shared process namespace."""
    if proc.settings["send-signal"] and proc.pod.spec.get("shareProcessNamespace"):
        for container in proc.pod.main:
            if container is not proc.container:
                container.hangups += 1
        proc.host.changed()
