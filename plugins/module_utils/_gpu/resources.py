# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPU resources a node should have, and which it has. The only module with resource names.

Gates, validation and messages take the names from here, so that MIG, shared GPUs and DRA are handled in one place.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

#: Whole GPUs (and, with MIG strategy `single`, their slices).
WHOLE = "nvidia.com/gpu"
#: MIG slices by profile, strategy `mixed`.
MIG_PREFIX = "nvidia.com/mig-"
SHARED_SUFFIX = ".shared"
#: DRA driver whose ResourceSlices are GPUs. They are counted under its device class.
DRA_DRIVER = "gpu.nvidia.com"


@dataclasses.dataclass(frozen=True)
class Sharing:
    """How the device plugin multiplies one resource. renamed: its name with replicas, the same if it is not renamed."""

    resource: str
    replicas: int
    renamed: str


@dataclasses.dataclass(frozen=True)
class PluginConfig:
    """The parts of a device plugin configuration file (version v1) that change what a node offers."""

    mig_strategy: str = "none"
    sharing: tuple[Sharing, ...] = ()


def parse_plugin_config(config: c.Mapping[str, t.Any] | None) -> PluginConfig:
    """From the parsed configuration file. Unknown parts are ignored, because the plugin validates them.

    As k8s-device-plugin v0.20.0 reads it: MPS takes precedence over time-slicing (api/config/v1/sharing.go, ReplicatedResources), and no name
    is taken from the file, but for the suffix of renameByDefault (api/config/v1/replicas.go, disableResoureRenaming).
    """
    config = config or {}
    flags = config.get("flags") or {}
    shared = config.get("sharing") or {}
    method = shared.get("mps") or shared.get("timeSlicing") or {}
    suffix = SHARED_SUFFIX if method.get("renameByDefault") else ""
    found = []
    for entry in method.get("resources") or ():
        resource, replicas = str(entry.get("name") or ""), int(entry.get("replicas") or 0)
        if resource and replicas > 1:
            found.append(Sharing(resource, replicas, resource + suffix))
    return PluginConfig(str(flags.get("migStrategy") or "none"), tuple(found))


def is_gpu_resource(name: str) -> bool:
    base = name.removesuffix(SHARED_SUFFIX)
    return base == WHOLE or base.startswith(MIG_PREFIX)


def gpu_resources(quantities: c.Mapping[str, t.Any], renamed: c.Collection[str] = ()) -> tuple[tuple[str, int], ...]:
    """The GPU entries of a node's allocatable, sorted; renamed: additional names from a plugin configuration."""
    return tuple(
        sorted((name, _count(value)) for name, value in quantities.items() if is_gpu_resource(name) or name in renamed)
    )


def missing(expected: c.Mapping[str, int], observed: c.Mapping[str, int]) -> dict[str, int]:
    """{resource: how many fewer than expected}."""
    return {name: count - observed.get(name, 0) for name, count in expected.items() if observed.get(name, 0) < count}


def surplus(expected: c.Mapping[str, int], observed: c.Mapping[str, int]) -> dict[str, int]:
    """{resource: how many more than expected}: the declaration or the plugin's configuration does not match the node."""
    return {name: count - expected.get(name, 0) for name, count in observed.items() if count > expected.get(name, 0)}


def describe(counts: c.Mapping[str, int]) -> str:
    """ "8 nvidia.com/gpu", "none"."""
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def total(counts: c.Mapping[str, int]) -> int:
    return sum(counts.values())


def _count(value: t.Any) -> int:
    """Extended resources are whole numbers, but a quantity may have the form "1k"."""
    text = str(value)
    factor = {"k": 1000, "M": 1000_000}.get(text[-1:], 1)
    try:
        return int(text[:-1] if factor > 1 else text) * factor
    except ValueError:
        return 0
