# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The provider of the runtime, the container engines of a machine, and whether these run with the files on disk."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import Record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import (
    containerd,
    docker,
    drop_ins,
    originals,
    programs,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.prerequisites import is_tegra
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.rendering import Rendered, RuntimeSettings

#: hwaccel: this role. container: the toolkit's container of the role driver. existing: an existing installation. none: there is no GPU.
HWACCEL, CONTAINER, EXISTING, NONE = "hwaccel", "container", "existing", "none"
Settings = c.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Engine:
    """units: the first existing one is its service. health: a command that succeeds when it is ready."""

    name: str
    units: tuple[str, ...]
    health: tuple[str, ...] = ()


ENGINES = (
    Engine("containerd", ("containerd",), ("ctr", "version")),
    Engine("docker", ("docker",), ("docker", "version")),
    Engine("crio", ("crio",)),
    Engine("k3s", ("k3s", "k3s-agent")),
    Engine("rke2", ("rke2-server", "rke2-agent")),
)


def service(host: Host, engine: Engine) -> str:
    return next((unit for unit in engine.units if host.unit(unit).loaded), "")


def coming(host: Host, settings: Settings) -> Engine | None:
    """The engine that the cluster's installer brings, and that looks for the runtime when it starts, if it is not there yet."""
    brings = (engine for engine in ENGINES if engine.name == settings.get("follows"))
    return next((engine for engine in brings if not service(host, engine)), None)


def engines(host: Host, settings: Settings) -> tuple[list[Engine], list[str], list[Fault]]:
    """Engines that get the runtime, messages about the others, and problems of names in the settings."""
    requested = list(settings["engines"])
    later = coming(host, settings)
    here = [engine for engine in ENGINES if service(host, engine) or engine == later]
    told = [f"{later.name} comes with the cluster, and finds the runtime when it starts first"] if later else []
    if requested:
        missing = sorted(set(requested) - {engine.name for engine in here})
        why = f"the machine has {', '.join(engine.name for engine in here) or 'none'}"
        faults = [
            Fault(
                f"{name} is not installed on the machine",
                "node_runtime_engines",
                why,
                "remove it from the list, or install it first",
            )
            for name in missing
        ]
        return [engine for engine in here if engine.name in requested], told, faults
    config = settings["containerd_config"]
    idle = [engine for engine in here if engine.name == "containerd" and not containerd.serves_pods(host, config)]
    messages = [f"containerd serves no pods ({config} disables its plugin cri): it is not changed" for _engine in idle]
    messages += told
    found = [engine for engine in here if engine not in idle]
    if not found and settings.get("follows"):
        return [], [*messages, "the container engine comes with the cluster, and is configured then"], []
    faults = (
        []
        if found
        else [
            Fault(
                "no container engine is installed",
                "systemd",
                "none of its units exists",
                "install containerd, Docker, CRI-O, K3s or RKE2 first",
            )
        ]
    )
    return found, messages, faults


def provider(host: Host, settings: Settings, kept: Record) -> tuple[str, str, list[Fault]]:
    """The provider, why, and problems of the requested provider."""
    requested, immutable, config = settings["provider"], _immutable(host, settings), settings["containerd_config"]
    if requested:
        faults = []
        if requested == HWACCEL and immutable:
            next_step = (
                "leave node_runtime_provider empty, so that the toolkit's container of the role driver provides it"
            )
            faults.append(
                Fault("nothing can be installed on this machine", "node_runtime_provider", immutable, next_step)
            )
        if requested == HWACCEL and containerd.OF_TOOLKIT_CONTAINER in host.files:
            why = "two providers would write the same configuration"
            next_step = "label the node nvidia.com/gpu.deploy.container-toolkit=false and remove that file, or leave node_runtime_provider empty"
            faults.append(
                Fault(
                    "the toolkit's container has configured containerd", containerd.OF_TOOLKIT_CONTAINER, why, next_step
                )
            )
        return requested, "node_runtime_provider says so", faults
    if not (host.fact("gpus") or is_tegra(host) or settings["without_gpu"]):
        return NONE, "the machine has no NVIDIA GPU (set node_runtime_without_gpu to true to continue)", []
    if immutable:
        return CONTAINER, immutable, []
    if containerd.OF_TOOLKIT_CONTAINER in host.files:
        return CONTAINER, f"it has configured containerd already ({containerd.OF_TOOLKIT_CONTAINER})", []
    if not kept.files and (path := containerd.handler_of_others(host, config, settings["handler"])):
        return EXISTING, f"{path} has the runtime {settings['handler']}", []
    if not kept.files and _docker_has(host, settings["handler"]):
        return EXISTING, f"{docker.CONFIG} has the runtime {settings['handler']}", []
    if settings.get("optional") and not (host.fact("runtime_binary") or settings["toolkit_source"] or kept.files):
        return CONTAINER, "the machine has no toolkit, and node_runtime_toolkit_source is not set", []
    return HWACCEL, "there is no other provider", []


def render(host: Host, engine: Engine, settings: Settings, desired: RuntimeSettings) -> Rendered:
    """Configuration of one engine. Raises HwaccelError if existing files cannot be parsed."""
    if engine.name == "containerd":
        return containerd.render(host, settings["containerd_config"], desired)
    if engine.name == "docker":
        return docker.render(host, desired, host.text(originals.original(docker.CONFIG)))
    return (
        drop_ins.render_crio(desired) if engine.name == "crio" else drop_ins.render_rancher(host, engine.name, desired)
    )


def stale(host: Host, engine: Engine, made: Rendered) -> str:
    """Why its service has to be restarted, empty if it runs with the files on disk. A stopped service reads them at its start."""
    unit = host.unit(service(host, engine))
    if not unit.active:
        return ""
    paths = [one.path for one in made.contents]
    if changed := [one.path for one in made.contents if host.text(one.path) != one.text] + [
        path for path in made.absent if path in host.files
    ]:
        return f"{changed[0]} changes"
    if newer := [
        path
        for path in dict.fromkeys((*paths, *made.loaded))
        if path in host.files and host.files[path].changed_at > unit.started_at
    ]:
        return f"{newer[0]} is newer than the running service"
    # A service that was started since then has not detected the runtime, so another restart would not help.
    since = float(host.fact("runtime_since") or "inf")
    return made.stale if since > unit.started_at else ""


def ends_pods(host: Host, engine: Engine) -> bool:
    """Whether its containers end with its service. Shims and conmon survive, because the units of containerd, K3s and RKE2 have KillMode=process."""
    return engine.name == "docker" and not docker.keeps_containers(host)


def _immutable(host: Host, settings: Settings) -> str:
    """Why nothing can be installed, empty if it can be."""
    if programs.used(settings) and host.fact("etc_writable"):
        return "" if host.fact("local_writable") else f"{programs.FOLDER} is read-only"
    if host.fact("ostree"):
        return "its system is an image (ostree)"
    return "" if host.fact("usr_writable") and host.fact("etc_writable") else "its system is read-only"


def _docker_has(host: Host, handler: str) -> bool:
    try:
        return docker.has_runtime(host, handler)
    except HwaccelError:
        return False
