# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All GPUs of a node in use by one pod: its requests, the devices that it must see, and other pods that hold GPUs. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import device_query, resources, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.proofs import COMPUTED

#: Lines of `nvidia-smi -L`: "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)", and below a partitioned one "  MIG 1g.10gb     Device  0: (UUID: MIG-…)".
_LISTED = re.compile(r"^(?P<kind>GPU \d+:|\s+MIG ).*\(UUID: (?P<uuid>[^)\s]+)\)\s*$")
#: What the pod prints before it computes on a device, and after the last one.
_QUERIED = re.compile(r"^device (?P<uuid>\S+)\s*$")
ALL_QUERIED = "all devices were queried"
_NAMED = 3


@dataclasses.dataclass(frozen=True)
class Ask:
    """request: {resource: count}, all that a node offers. devices: number of distinct devices that a pod with all of them must see.

    integrated: its GPU is part of the processor, so that deviceQuery reports it and nvidia-smi does not.
    """

    request: dict[str, int]
    devices: int
    integrated: bool = False

    @property
    def one_more(self) -> dict[str, int]:
        """{resource: 1}: what no other pod can get while this one holds the GPUs."""
        return dict.fromkeys(list(self.request)[:1], 1)


def request(node: NodeFacts) -> dict[str, int]:
    """{resource: count}: all that the node offers."""
    return {resource: count for resource, count in sorted(schedulable.observed(node).items()) if count}


def insufficient(requested: c.Mapping[str, int]) -> tuple[str, ...]:
    """The scheduler's message for a node that has too few of them (kubernetes, pkg/scheduler/framework/plugins/noderesources/fit.go)."""
    return tuple(f"Insufficient {resource}" for resource in requested)


def devices(node: NodeFacts, pool: Pool | None) -> int:
    """Number of distinct devices that a pod must see if it holds all GPUs of the node."""
    return resources.total(schedulable.expected(node, pool)) or resources.total(request(node))


def listed(log: str) -> list[str]:
    """UUIDs of the devices that the pod sees, in order; for a partitioned GPU its slices, because nothing runs on the GPU itself."""
    found: list[str] = []
    whole = ""
    for line in log.splitlines():
        match = _LISTED.match(line)
        if match is None:
            continue
        if match["kind"].startswith("GPU"):
            whole = match["uuid"]
        elif whole in found:
            found.remove(whole)
        found.append(match["uuid"])
    return list(dict.fromkeys(found))


def deviations(log: str, expected: int, *, integrated: bool = False) -> list[str]:
    """Why the pod has not computed on the expected number of distinct devices, or on the integrated one; empty if it has."""
    if integrated:
        # The product is compared with the pool's declaration by the validation, not here.
        return device_query.deviations(log, Pool("")) + ([] if COMPUTED.search(log) else ["no CUDA kernel ran on it"])
    uuids = listed(log)
    if not uuids:
        return ["nvidia-smi -L listed no GPU in the pod"]
    found = [] if len(uuids) == expected else [f"the pod sees {len(uuids)} distinct GPUs, {expected} are expected"]
    if idle := [uuid for uuid in uuids if uuid not in computed(log)]:
        more = f" and {len(idle) - _NAMED} more" if len(idle) > _NAMED else ""
        found.append(f"no CUDA kernel ran on {', '.join(idle[:_NAMED])}{more}")
    return found


def computed(log: str) -> set[str]:
    """UUIDs of the devices on which the sample passed."""
    parts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in log.splitlines():
        if match := _QUERIED.match(line):
            current = parts.setdefault(match["uuid"], [])
        else:
            current.append(line)
    return {uuid for uuid, lines in parts.items() if COMPUTED.search("\n".join(lines))}


def holds(pod: c.Mapping[str, t.Any], node: NodeFacts) -> bool:
    """Whether a pod that has not ended requests GPUs of its node."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if spec.get("nodeName") != node.name or status.get("phase") in ("Succeeded", "Failed"):
        return False
    offered = schedulable.observed(node)
    return any(
        resource in offered
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
        for resource in (container.get("resources") or {}).get("limits") or {}
    )
