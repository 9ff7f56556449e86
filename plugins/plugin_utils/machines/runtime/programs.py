# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA Container Toolkit as single programs, for systems without a package manager, such as those that Yocto builds. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import contents
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import FileBefore, Record

#: Value of node_runtime_toolkit_source.
SOURCE = "programs"
#: In the PATH of services (systemd.exec(5)), and writable where /usr is not (https://ostreedev.github.io/ostree/adapting-existing).
FOLDER = "/usr/local/bin"
RUNTIME = "nvidia-container-runtime"
#: Programs of the packages nvidia-container-toolkit-base and nvidia-container-toolkit 1.20.1; without the first three no container gets a GPU.
NEEDED = (RUNTIME, "nvidia-ctk", "nvidia-cdi-hook")
NAMES = (*NEEDED, "nvidia-container-runtime.cdi", "nvidia-container-runtime.legacy", "nvidia-container-runtime-hook")
Settings = c.Mapping[str, t.Any]


def used(settings: Settings) -> bool:
    return bool(settings["toolkit_source"] == SOURCE)


def path(name: str) -> str:
    return f"{FOLDER}/{name}"


def missing(host: Host, settings: Settings) -> list[dict[str, t.Any]]:
    """Programs for the machine's architecture that it has not got, each with name, source, checksum, remote and path."""
    given = contents.of_architecture(host, settings)["programs"] if used(settings) else []
    each = [{**one, "path": path(one["name"]), "remote": contents.remote(one)} for one in given]
    return [one for one in each if not contents.holds(host, one["path"], one)]


def faults(host: Host, settings: Settings) -> list[Fault]:
    """Programs that are not given or not known, and a mode that needs more than programs."""
    given, where = (
        {one["name"] for one in contents.of_architecture(host, settings)["programs"]},
        "node_runtime_programs",
    )
    lacking = [name for name in NEEDED if name not in given]
    next_step = f"give them for {host.fact('architecture') or 'its architecture'}, from the packages of a release"
    found = [Fault(f"the toolkit lacks {', '.join(lacking)}", where, "", next_step)] if lacking else []
    if unknown := sorted(given.difference(NAMES)):
        next_step = f"leave out what is not one of {', '.join(NAMES)}"
        found.append(Fault(f"{', '.join(unknown)} is no program of the toolkit", where, "", next_step))
    if settings["mode"] == "legacy":
        why = "the hook needs the library libnvidia-container, which only packages install"
        found.append(
            Fault("this machine cannot have the mode legacy", "node_runtime_mode", why, "set auto, cdi or csv")
        )
    return found


def recorded(kept: Record, host: Host, brought: c.Iterable[Settings]) -> dict[str, FileBefore]:
    """Files for the record, once these programs are there."""
    return {
        **kept.files,
        **{
            one["path"]: FileBefore(bool(host.checksums.get(one["path"])), "")
            for one in brought
            if one["path"] not in kept.files
        },
    }


def restored(kept: Record, host: Host) -> list[str]:
    """Paths of programs that the role has brought."""
    ours = (path(name) for name in NAMES)
    return [one for one in ours if one in kept.files and not kept.files[one].existed and host.checksums.get(one)]
