# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container toolkit's installer (nvidia-container-toolkit 1.18-1.20, cmd/nvidia-ctk-installer): binaries on the host, a runtime handler."""

from __future__ import annotations

import posixpath
from typing import Any

from fleet_agent.loop import Park, Process, Sleep, Terminated

DEFAULTS = {
    "containerd": ("/etc/containerd/config.toml", "/run/containerd/containerd.sock"),
    "crio": ("/etc/crio/config.toml", "/var/run/crio/crio.sock"),
    "docker": ("/etc/docker/daemon.json", "/var/run/docker.sock"),
}


def _say(proc: Any, level: str, text: str) -> None:
    proc.say(f'level={level} msg="{text}"')


def toolkit(proc: Any) -> Process:
    runtime = proc.option("runtime", "RUNTIME", "docker")
    root = (
        next((w for w in proc.argv[1:] if w.startswith("/")), "")
        or proc.option("toolkit-install-dir", "TOOLKIT_INSTALL_DIR")
        or proc.env.get("ROOT", "/usr/local/nvidia")
    )
    if runtime not in DEFAULTS:
        _say(proc, "error", f"unsupported runtime '{runtime}'")
        return 1
    _say(proc, "info", f"Starting nvidia-toolkit; installing toolkit to '{root}/toolkit'")
    yield Sleep(proc.clock.delay("toolkit_install"))
    try:
        binary = f"{root}/toolkit/nvidia-container-runtime"
        proc.view.make_folder(f"{root}/toolkit", True)
        proc.view.write(binary, "")
    except OSError as error:
        _say(proc, "error", f"unable to install toolkit: {error.filename}: {error.strerror}")
        return 1
    configures = proc.env.get("NO_RUNTIME_CONFIG", "").lower() != "true"
    fault = _management_spec(proc) or (_configure(proc, runtime, binary) if configures else "")
    if fault:
        _say(proc, "error", fault)
        return 1
    _say(proc, "info", "Waiting for signal")
    while True:
        try:
            yield Park()
        except Terminated:
            _say(proc, "info", "Cleaning up Runtime")
            if configures:
                _clean(proc)
            return 0


def _management_spec(proc: Any) -> str:
    """CDI specification for management containers: needs the driver's files."""
    if proc.env.get("CDI_ENABLED", "").lower() != "true":
        return ""
    root = proc.env.get("DRIVER_ROOT_CTR_PATH") or proc.env.get("NVIDIA_DRIVER_ROOT") or "/driver-root"
    if not proc.view.is_file(f"{root.rstrip('/')}/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"):
        return f"failed to generate CDI spec for management containers: failed to locate libcuda.so: pattern libcuda.so.*.* not found in {root}"
    return ""


def _configure(proc: Any, runtime: str, binary: str) -> str:
    """Writes the runtime's configuration and reloads it. Returns the error, empty if it succeeds."""
    config, socket = DEFAULTS[runtime]
    prefix = {"crio": "CRIO"}.get(runtime, runtime.upper())
    config = (
        proc.env.get("RUNTIME_DROP_IN_CONFIG")
        or proc.env.get("RUNTIME_CONFIG")
        or proc.env.get(f"{prefix}_CONFIG")
        or config
    )
    socket = proc.env.get("RUNTIME_SOCKET") or proc.env.get(f"{prefix}_SOCKET") or socket
    name = proc.env.get("NVIDIA_RUNTIME_NAME") or proc.env.get("CONTAINERD_RUNTIME_CLASS") or "nvidia"
    try:
        proc.view.make_folder(posixpath.dirname(config), True)
        proc.view.write(config, f"# runtime {name}: {binary}\n")
    except OSError as error:
        return f"unable to configure {runtime}: unable to flush config: {error.filename}: {error.strerror}"
    mode = (
        proc.env.get("RUNTIME_RESTART_MODE")
        or proc.env.get(f"{prefix}_RESTART_MODE")
        or ("systemd" if runtime == "crio" else "signal")
    )
    fault = _restart(proc, runtime, mode, socket)
    if fault:
        return f"unable to restart {runtime}: {fault}"
    place = proc.view.locate(config)
    host = proc.host
    if place.host:  # A configuration inside the container has no effect.
        binary_place = proc.view.locate(binary)
        host_binary = binary_place.path if binary_place.host else "/nonexistent" + binary
        for handler in (name, f"{name}-cdi", f"{name}-legacy"):
            host.handlers[handler] = host_binary
        default = proc.env.get("NVIDIA_RUNTIME_SET_AS_DEFAULT") or proc.env.get(f"{prefix}_SET_AS_DEFAULT") or "false"
        # It only unsets the default if that has its own name (AddRuntimeWithOptions).
        if default.lower() == "true":
            host.default_handler = name
        elif host.default_handler == name:
            host.default_handler = ""
        host.changed()
    _say(proc, "info", f"Completed setup for runtime '{runtime}' as {name}")
    return ""


def _restart(proc: Any, runtime: str, mode: str, socket: str) -> str:
    actual = proc.host.spec.container_runtime.split(":", maxsplit=1)[0].replace("cri-o", "crio")
    if mode == "none":
        return ""
    if mode == "systemd":
        if not proc.view.is_folder(proc.env.get("HOST_ROOT_MOUNT", "/host") + "/etc"):
            return f"error running [chroot /host systemctl restart {runtime}]: exit status 125"
        return "" if actual == runtime else f"Failed to restart {runtime}.service: Unit {runtime}.service not found."
    if not proc.view.is_file(socket) or actual != runtime:
        return f"unable to dial: dial unix {socket}: connect: no such file or directory"
    return ""


def _clean(proc: Any) -> None:
    proc.host.handlers = {name: path for name, path in proc.host.handlers.items() if not name.startswith("nvidia")}
    if proc.host.default_handler not in proc.host.handlers:
        proc.host.default_handler = ""
    proc.host.changed()
