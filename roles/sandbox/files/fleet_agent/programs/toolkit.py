# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container toolkit's installer (nvidia-container-toolkit v1.20.0, cmd/nvidia-ctk-installer): binaries on the host, their settings, a runtime handler."""

from __future__ import annotations

import json
import posixpath
from typing import Any

from fleet_agent.loop import Park, Process, Sleep, Terminated
from fleet_agent.machine import cdi, hostfs

#: Main file, drop-in and socket of each runtime, and how it is restarted (DefaultConfig and its neighbors in container/runtime).
DEFAULTS = {
    "containerd": (
        "/etc/containerd/config.toml",
        "/etc/containerd/conf.d/99-nvidia.toml",
        "/run/containerd/containerd.sock",
        "signal",
    ),
    "crio": ("/etc/crio/crio.conf", "/etc/crio/crio.conf.d/99-nvidia.toml", "/var/run/crio/crio.sock", "systemd"),
    "docker": ("/etc/docker/daemon.json", "", "/var/run/docker.sock", "signal"),
}
#: The value of a flag that each runtime has its own default for.
_SPECIFIC = "RUNTIME_SPECIFIC_DEFAULT"
#: Of those that it installs, the ones that others run. The runtime for one mode has this in its name (container/operator/operator.go).
RUNTIME = "nvidia-container-runtime"
PROGRAMS = (RUNTIME, f"{RUNTIME}.cdi", f"{RUNTIME}.legacy", f"{RUNTIME}-hook", "nvidia-ctk", "nvidia-cdi-hook")


class Failed(Exception):
    """The installer ends with this error."""


def _say(proc: Any, level: str, text: str) -> None:
    proc.say(f'level={level} msg="{text}"')


def toolkit(proc: Any) -> Process:
    settings = proc.settings
    _say(proc, "info", "Starting nvidia-ctk-installer")
    try:
        _validate(settings)
        _initialize(proc)
        root = f"{settings['toolkit-install-dir']}/toolkit"
        _say(proc, "info", f"Installing NVIDIA container toolkit to '{root}'")
        yield Sleep(proc.clock.delay("toolkit_install"))
        _install(proc, root)
        configures = not settings["no-runtime-config"]
        if configures:
            _configure(proc, root)
    except Failed as error:
        proc.say(settings.table.error.format(message=error))
        return settings.table.code
    if settings["no-daemon"]:
        return 0
    _say(proc, "info", "Waiting for signal")
    while True:
        try:
            yield Park()
        except Terminated:
            _say(proc, "info", "Cleaning up Runtime")
            if configures:
                _clean(proc)
            return 0


def _validate(settings: Any) -> None:
    """Before and validateFlags of main.go, in their order."""
    checks = ["toolkit-package-type"] if not settings["toolkit-source-root"] else []
    _refuse(settings, *checks)
    if not settings["toolkit-install-dir"]:
        raise Failed("the install root must be specified")
    if posixpath.basename(settings["pid-file"]) != "toolkit.pid":
        raise Failed(f"invalid toolkit.pid path {settings['pid-file']}")
    if settings["enable-nri-plugin"]:
        # No simulated runtime serves NRI.
        raise Failed("the sandbox does not simulate the NRI plugin")
    vendor, slash, kind = settings["cdi-kind"].partition("/")
    if not slash or not vendor or not kind:
        raise Failed(f"invalid CDI {'class name: empty class' if vendor and slash else 'vendor name: empty vendor'}")
    _refuse(settings, "create-device-nodes", "runtime", *(["config-mode"] if settings["runtime"] == "crio" else []))


def _refuse(settings: Any, *names: str) -> None:
    for name in names:
        if refusal := settings.refusal(name, settings[name]):
            raise Failed(refusal)


def _initialize(proc: Any) -> None:
    path = proc.settings["pid-file"]
    try:
        proc.view.make_folder(posixpath.dirname(path), True)
        proc.view.write(path, "1\n")
    except OSError as error:
        raise Failed(
            f"unable to initialize: unable to create pidfile: open {path}: {str(error.strerror).lower()}"
        ) from error
    proc.container.at_exit.append(lambda: proc.view.remove(path))


def _install(proc: Any, root: str) -> None:
    try:
        proc.view.remove(root)
        proc.view.make_folder(root, True)
        for program in PROGRAMS:
            proc.view.write(f"{root}/{program}", "")
        file = cdi.config_file(root)
        proc.view.make_folder(posixpath.dirname(file), True)
        proc.view.write(file, _config(proc))
        _management_spec(proc, root)
    except OSError as error:
        raise Failed(f"unable to install toolkit: {error.filename}: {error.strerror}") from error


def _config(proc: Any) -> str:
    """installToolkitConfig: what is set, over the defaults of the runtime."""
    settings = proc.settings
    lines = ["[nvidia-container-cli]", f"root = {json.dumps(settings['driver-root'])}", "[nvidia-container-runtime]"]
    mode = settings["nvidia-container-runtime.mode"]
    if not mode and proc.container.image.tag.startswith("v1.17."):
        mode = "legacy"  # Where nothing is set, it detects this one (internal/info/auto.go of v1.17).
    lines += [f"mode = {json.dumps(mode)}"] if mode else []
    lines.append("[nvidia-container-runtime.modes.cdi]")
    kind = settings["nvidia-container-runtime.modes.cdi.default-kind"]
    lines += [f"default-kind = {json.dumps(kind)}"] if kind else []
    prefixes = settings["nvidia-container-runtime.modes.cdi.annotation-prefixes"]
    lines += [f"annotation-prefixes = {json.dumps(prefixes)}"] if prefixes else []
    return "\n".join(lines) + "\n"


def _management_spec(proc: Any, root: str) -> None:
    """generateCDISpec: one device with all GPUs, for management containers. Needs the driver's files. Raises OSError."""
    settings = proc.settings
    if not settings["cdi-enabled"]:
        return
    folder = settings["cdi-output-dir"]
    if not folder:
        _say(proc, "warning", "Skipping CDI spec generation (no output directory specified)")
        return
    driver = settings["driver-root-ctr-path"]
    if not proc.view.is_file(f"{driver.rstrip('/')}{cdi.LIBRARY}"):
        raise Failed(
            "unable to install toolkit: error generating CDI specification: failed to genereate CDI spec for management containers: "
            f"failed to create driver library discoverer: failed to locate libcuda.so: pattern libcuda.so.*.* not found in {driver}"
        )
    gpu, kind = proc.host.spec.gpu, settings["cdi-kind"]
    proc.view.make_folder(folder, True)
    text = cdi.specification(kind, {"all": list(range(gpu.count if gpu else 0))}, f"{root}/nvidia-cdi-hook")
    proc.view.write(f"{folder}/{kind.replace('/', '-')}.yaml", text)


def _files(proc: Any) -> tuple[str, str]:
    """The runtime's file and its drop-in, "" for none, as the container has them."""
    settings = proc.settings
    default, drop_in_default, _socket, _mode = DEFAULTS[settings["runtime"]]
    config = default if settings["config"] == _SPECIFIC else settings["config"]
    drop_in = settings["drop-in-config"]
    if drop_in == _SPECIFIC:
        drop_in = "" if proc.container.image.tag.startswith("v1.17.") else drop_in_default
    return (config, "" if settings["runtime"] == "docker" else drop_in)


def _configure(proc: Any, root: str) -> None:
    """Writes the runtime's configuration and restarts it."""
    settings, runtime, (config, drop_in) = proc.settings, proc.settings["runtime"], _files(proc)
    name, start = settings["runtime-name"], f"unable to setup runtime: unable to configure {runtime}: "
    handlers = {name: f"{root}/{RUNTIME}"} | {
        f"{name}-{mode}": f"{root}/{RUNTIME}.{mode}" for mode in ("cdi", "legacy")
    }
    enables = settings["enable-cdi-in-runtime"] if settings.given("enable-cdi-in-runtime") else settings["cdi-enabled"]
    lines = [hostfs.runtime_line(handler, binary) for handler, binary in handlers.items()]
    try:
        _append(proc, drop_in or config, lines + ([hostfs.CDI_LINE] if enables else []))
        if drop_in and runtime == "containerd":
            # importPattern in pkg/config/engine/containerd/config_drop_in.go: the folder as the host has it.
            on_host = settings["drop-in-config-host-path"] or drop_in
            _append(proc, config, [hostfs.import_line(posixpath.dirname(on_host))])
    except OSError as error:
        raise Failed(f"{start}unable to flush config: {error.filename}: {error.strerror}") from error
    fault = _restart(proc)
    if fault:
        raise Failed(f"unable to setup runtime: unable to restart {runtime}: {fault}")
    host = proc.host
    if runtime == "containerd":
        host.reload_containerd()
    elif proc.view.locate(drop_in or config).host:  # A configuration inside the container has no effect.
        host.handlers |= handlers
    if host.handlers.get(name) == handlers[name]:
        # It only unsets the default if that has its own name (AddRuntimeWithOptions).
        if settings["set-as-default"]:
            host.default_handler = name
        elif host.default_handler == name:
            host.default_handler = ""
        host.changed()
    _say(proc, "info", f"Completed setup for runtime '{runtime}' as {name}")


def _append(proc: Any, path: str, lines: list[str]) -> None:
    """Lines that the file lacks. Raises OSError."""
    proc.view.make_folder(posixpath.dirname(path), True)
    text = proc.view.read(path) if proc.view.is_file(path) else ""
    known = text.splitlines()
    proc.view.write(path, text + "".join(f"{line}\n" for line in lines if line not in known))


def _restart(proc: Any) -> str:
    settings, runtime = proc.settings, proc.settings["runtime"]
    _config, _drop_in, socket, mode = DEFAULTS[runtime]
    if settings["restart-mode"] != _SPECIFIC:
        mode = settings["restart-mode"]
    if settings["socket"] != _SPECIFIC:
        socket = settings["socket"]
    actual = proc.host.spec.container_runtime.split(":", maxsplit=1)[0].replace("cri-o", "crio")
    if mode == "none":
        return ""
    if mode == "systemd":
        if not proc.view.is_folder(settings["host-root"] + "/etc"):
            return f"error running [chroot {settings['host-root']} systemctl restart {runtime}]: exit status 125"
        return "" if actual == runtime else f"Failed to restart {runtime}.service: Unit {runtime}.service not found."
    if mode != "signal":
        return str(settings.refusal("restart-mode", mode))
    if not proc.view.is_file(socket) or actual != runtime:
        return f"unable to dial: dial unix {socket}: connect: no such file or directory"
    return ""


def _clean(proc: Any) -> None:
    """Its lines go from the files, and its handlers from the runtime."""
    name, runtime = proc.settings["runtime-name"], proc.settings["runtime"]
    for path in filter(None, _files(proc)):
        if proc.view.is_file(path):
            lines = proc.view.read(path).splitlines()
            kept = [line for line in lines if not line.startswith(f'runtime "{name}') and line != hostfs.CDI_LINE]
            proc.view.write(path, "".join(f"{line}\n" for line in kept))
    host = proc.host
    if runtime == "containerd":
        host.reload_containerd()
    host.handlers = {handler: path for handler, path in host.handlers.items() if not handler.startswith(name)}
    if host.default_handler not in host.handlers:
        host.default_handler = ""
    host.changed()
