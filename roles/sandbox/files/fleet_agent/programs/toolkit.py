# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container toolkit's installer (nvidia-container-toolkit 1.18-1.20, cmd/nvidia-ctk-installer): binaries on the host, a runtime handler."""

from __future__ import annotations

import posixpath
from typing import Any

from fleet_agent.loop import Park, Process, Sleep, Terminated
from fleet_agent.machine import hostfs

DEFAULTS = {
    "containerd": ("/etc/containerd/config.toml", "/run/containerd/containerd.sock"),
    "crio": ("/etc/crio/config.toml", "/var/run/crio/crio.sock"),
    "docker": ("/etc/docker/daemon.json", "/var/run/docker.sock"),
}


#: Of those that it installs, the ones that others run.
PROGRAMS = ("nvidia-container-runtime", "nvidia-container-runtime-hook", "nvidia-ctk", "nvidia-cdi-hook")


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
        binary = f"{root}/toolkit/{PROGRAMS[0]}"
        proc.view.make_folder(f"{root}/toolkit", True)
        for program in PROGRAMS:
            proc.view.write(f"{root}/toolkit/{program}", "")
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
                _clean(proc, runtime)
            return 0


def _management_spec(proc: Any) -> str:
    """CDI specification for management containers: needs the driver's files."""
    if proc.env.get("CDI_ENABLED", "").lower() != "true":
        return ""
    root = proc.env.get("DRIVER_ROOT_CTR_PATH") or proc.env.get("NVIDIA_DRIVER_ROOT") or "/driver-root"
    if not proc.view.is_file(f"{root.rstrip('/')}/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"):
        return f"failed to generate CDI spec for management containers: failed to locate libcuda.so: pattern libcuda.so.*.* not found in {root}"
    return ""


def _prefix(runtime: str) -> str:
    return {"crio": "CRIO"}.get(runtime, runtime.upper())


def _files(proc: Any, runtime: str) -> tuple[str, str]:
    """The runtime's file and its drop-in, "" for none, as the container has them."""
    config = proc.env.get("RUNTIME_CONFIG") or proc.env.get(f"{_prefix(runtime)}_CONFIG") or DEFAULTS[runtime][0]
    drop_in = proc.env.get("RUNTIME_DROP_IN_CONFIG", "")
    return (config, drop_in) if runtime == "containerd" else (drop_in or config, "")


def _configure(proc: Any, runtime: str, binary: str) -> str:
    """Writes the runtime's configuration and reloads it. Returns the error, empty if it succeeds."""
    prefix, (config, drop_in) = _prefix(runtime), _files(proc, runtime)
    socket = proc.env.get("RUNTIME_SOCKET") or proc.env.get(f"{prefix}_SOCKET") or DEFAULTS[runtime][1]
    name = proc.env.get("NVIDIA_RUNTIME_NAME") or proc.env.get("CONTAINERD_RUNTIME_CLASS") or "nvidia"
    handlers = (name, f"{name}-cdi", f"{name}-legacy")
    try:
        _append(proc, drop_in or config, [hostfs.runtime_line(handler, binary) for handler in handlers])
        if drop_in:
            # importPattern in pkg/config/engine/containerd/config_drop_in.go: the folder as the host has it.
            on_host = proc.env.get("RUNTIME_DROP_IN_CONFIG_HOST_PATH") or drop_in
            _append(proc, config, [hostfs.import_line(posixpath.dirname(on_host))])
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
    host = proc.host
    if runtime == "containerd":
        host.reload_containerd()
    elif proc.view.locate(config).host:  # A configuration inside the container has no effect.
        host.handlers |= dict.fromkeys(handlers, binary)
    if host.handlers.get(name) == binary:
        default = proc.env.get("NVIDIA_RUNTIME_SET_AS_DEFAULT") or proc.env.get(f"{prefix}_SET_AS_DEFAULT") or "false"
        # It only unsets the default if that has its own name (AddRuntimeWithOptions).
        if default.lower() == "true":
            host.default_handler = name
        elif host.default_handler == name:
            host.default_handler = ""
        host.changed()
    _say(proc, "info", f"Completed setup for runtime '{runtime}' as {name}")
    return ""


def _append(proc: Any, path: str, lines: list[str]) -> None:
    """Lines that the file lacks. Raises OSError."""
    proc.view.make_folder(posixpath.dirname(path), True)
    text = proc.view.read(path) if proc.view.is_file(path) else ""
    known = text.splitlines()
    proc.view.write(path, text + "".join(f"{line}\n" for line in lines if line not in known))


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


def _clean(proc: Any, runtime: str) -> None:
    """Its lines go from the files, and its handlers from the runtime."""
    for path in filter(None, _files(proc, runtime)):
        if proc.view.is_file(path):
            kept = [line for line in proc.view.read(path).splitlines() if not line.startswith('runtime "nvidia')]
            proc.view.write(path, "".join(f"{line}\n" for line in kept))
    host = proc.host
    if runtime == "containerd":
        host.reload_containerd()
    host.handlers = {name: path for name, path in host.handlers.items() if not name.startswith("nvidia")}
    if host.default_handler not in host.handlers:
        host.default_handler = ""
    host.changed()
