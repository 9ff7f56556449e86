# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CDI devices and NVIDIA's container runtime as files of the machine describe them: a device that no file has does not exist.

NVIDIA/nvidia-container-toolkit v1.20.0, api/config/v1/config.go, internal/info/auto.go, internal/modifier.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import posixpath
import tomllib
from typing import Any

import yaml

from fleet_agent.machine.hostfs import Host

#: CDI's own (tags.cncf.io/container-device-interface, pkg/cdi/default-cache.go and annotations.go).
FOLDERS = ("/etc/cdi", "/var/run/cdi")
ANNOTATION_PREFIX = "cdi.k8s.io/"
#: Of the machine, where the packages of the toolkit have installed it.
SYSTEM_CONFIG = "/etc/nvidia-container-runtime/config.toml"
MODES = ("legacy", "csv", "jit-cdi", "cdi")
LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"


@dataclasses.dataclass(frozen=True)
class Device:
    """gpus: indices of the device files that it adds. hooks: programs on the machine that the runtime starts."""

    gpus: tuple[int, ...]
    hooks: tuple[str, ...]


def specification(kind: str, devices: dict[str, list[int]], hook: str) -> str:
    """The content of a CDI file. JSON is YAML too, and is read faster."""
    rows = [
        {"name": name, "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{index}"} for index in gpus]}}
        for name, gpus in devices.items()
    ]
    edits = {"hooks": [{"hookName": "createContainer", "path": hook}]}
    return json.dumps({"cdiVersion": "0.5.0", "kind": kind, "devices": rows, "containerEdits": edits}) + "\n"


def devices(host: Host) -> dict[str, Device]:
    """All devices of the machine by their qualified names."""
    found: dict[str, Device] = {}
    for folder in FOLDERS:
        for name in host.names(folder):
            if name.endswith((".json", ".yaml")):
                found |= _read(host.read(f"{folder}/{name}") or "")
    return found


@functools.lru_cache(maxsize=4096)
def _read(text: str) -> dict[str, Device]:
    """Devices of one file, none of a damaged one."""
    try:
        data = json.loads(text)
    except ValueError:
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError:
            return {}
    if not isinstance(data, dict) or not data.get("kind"):
        return {}
    common = _hooks(data.get("containerEdits"))
    return {
        f"{data['kind']}={row['name']}": Device(
            _gpus(row.get("containerEdits")), common + _hooks(row.get("containerEdits"))
        )
        for row in data.get("devices") or ()
    }


def _hooks(edits: dict[str, Any] | None) -> tuple[str, ...]:
    return tuple(hook["path"] for hook in (edits or {}).get("hooks") or ())


def _gpus(edits: dict[str, Any] | None) -> tuple[int, ...]:
    names = [posixpath.basename(node["path"]) for node in (edits or {}).get("deviceNodes") or ()]
    return tuple(int(name.removeprefix("nvidia")) for name in names if name.removeprefix("nvidia").isdigit())


@dataclasses.dataclass(frozen=True)
class Runtime:
    """Settings of NVIDIA's container runtime. root: where the driver is on the machine."""

    mode: str = "auto"
    default_kind: str = "nvidia.com/gpu"
    root: str = "/"
    prefixes: tuple[str, ...] = (ANNOTATION_PREFIX,)


def config_file(toolkit: str) -> str:
    """Of an installed toolkit: its programs find it next to them (installer/executables.go)."""
    return f"{toolkit}/.config/nvidia-container-runtime/config.toml"


def runtime(host: Host, binary: str) -> Runtime:
    """Settings of the runtime with this binary, the defaults where it has no file. Those for one mode have it in their name."""
    text = host.read(config_file(posixpath.dirname(binary))) if binary else None
    settings = _settings(text if text is not None else host.read(SYSTEM_CONFIG) or "")
    mode = posixpath.basename(binary).removeprefix("nvidia-container-runtime").removeprefix(".")
    return dataclasses.replace(settings, mode=mode) if mode else settings


@functools.lru_cache(maxsize=256)
def _settings(text: str) -> Runtime:
    data = tomllib.loads(text)
    own, plain = data.get("nvidia-container-runtime") or {}, Runtime()
    cdi = (own.get("modes") or {}).get("cdi") or {}
    return Runtime(
        own.get("mode", plain.mode),
        cdi.get("default-kind", plain.default_kind),
        (data.get("nvidia-container-cli") or {}).get("root", plain.root),
        tuple(cdi.get("annotation-prefixes", plain.prefixes)),
    )
