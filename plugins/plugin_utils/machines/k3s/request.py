# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role cluster_k3s observes of a machine."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import prerequisites, surroundings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import CommandRequest, Request
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import (
    adoption,
    configuration,
    engine,
    hardening,
    kernel,
    places,
)

#: Files that K3s reads (pkg/configfilearg of K3s).
_READ = (places.FOREIGN_CONFIGURATION, f"{places.SETTINGS}/config.yaml.d/*.yaml")


def _keys(names: c.Iterable[str]) -> str:
    return rf"^\s*[\"']?({'|'.join(sorted(names))})\+?[\"']?\s*:"


_FACTS: dict[str, tuple[str, ...]] = {
    **prerequisites.FACTS,
    # Tokens and keys are not read, only whether they are there.
    "present": (
        "exists",
        places.ADMIN,
        places.AGENT_TOKEN,
        places.ETCD,
        places.FOREIGN_CONFIGURATION,
        places.NODE_CERTIFICATE,
        places.AUTHORITY,
        places.SERVER_AUTHORITY,
        places.SQLITE,
        places.TOKEN,
        *places.SCRIPTS,
        *(adoption.environments(role)[-1] for role in places.UNITS),
    ),
    "architecture": ("output", "uname", "-m"),
    # Which files have any: their values may be secrets.
    "foreign_options": ("having", _keys(configuration.RESERVED), *_READ),
    "foreign_critical": ("lines_in", _keys(configuration.CRITICAL), *_READ),
    "links": ("output", "find", *places.LINKS, "-maxdepth", "0", "-lname", "k3s"),
    "archives": ("paths", f"{places.IMAGES}/*"),
    "drop_ins": ("paths", f"{places.SETTINGS}/config.yaml.d/*"),
    "interfaces": ("paths", "/sys/class/net/*"),
    "kubelet_files": ("paths", f"{places.KUBELET}/*"),
    # The time of a program's contents may be that of its build.
    "program_changed": ("changed_at", places.PROGRAM),
    "entered": ("changed_at", places.ENTRY),
    "tegra": ("lines", "/etc/nv_tegra_release", "^# R"),
    "model": ("lines", "/proc/device-tree/model", "."),
    "read_only": ("read_only", "/etc", "/usr/local/bin", places.DATA),
    "medium": ("medium", places.DATA),
    "mounted": ("mounted", places.DATA),
    "size_bytes": ("size", places.DATA),
    "kernel_options": ("kernel_options", *kernel.OPTIONS),
    "sysctls": ("output", "sysctl", *hardening.SYSCTLS),
    "rotating": ("exists", places.ROTATION),
    "snapshots": ("paths", f"{places.DATA}/server/db/snapshots/*"),
}


def request(settings: c.Mapping[str, t.Any]) -> Request:
    return Request(
        files=(
            places.RECORD,
            places.TURN,
            places.TEARDOWN,
            places.MIGRATION,
            places.CONFIGURATION,
            places.ENTRY,
            places.REGISTRIES,
            places.SYSCTL,
            places.HARDENED,
            *hardening.FILES,
            *map(places.unit, places.UNITS),
            places.AUTHORITY,
            places.SERVER_AUTHORITY,
            *places.CERTIFICATES,
            *places.NODE_CERTIFICATES,
            *adoption.files(settings),
        ),
        patterns=(f"{places.COPIED}/*", *([f"{places.SETTINGS}/config.yaml.d/*"] if settings["adopt"] else [])),
        checksums=(places.PROGRAM, places.STAGED),
        units=("kubelet", engine.DOCKER, *places.UNITS.values(), *places.FOREIGN),
        commands=(CommandRequest("k3s", (places.PROGRAM, "--version")),),
        facts={**_FACTS, **surroundings.facts(settings["endpoint"])},
        network=True,
    )
