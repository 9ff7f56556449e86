# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All GPUs of a node in use by one pod: what it asks for, what it has to see, and who else holds some. Pure."""

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
    """request: {resource: count}, all that a node offers. devices: how many distinct ones a pod that gets them has to see.

    integrated: its GPU is part of the processor, which deviceQuery tells and not nvidia-smi.
    """

    request: dict[str, int]
    devices: int
    integrated: bool = False

    @property
    def one_more(self) -> dict[str, int]:
        """{resource: 1}: what nobody else can get while the request is held."""
        return dict.fromkeys(list(self.request)[:1], 1)


def request(node: NodeFacts) -> dict[str, int]:
    """{resource: count}: all that the node offers."""
    return {resource: count for resource, count in sorted(schedulable.observed(node).items()) if count}


def insufficient(requested: c.Mapping[str, int]) -> tuple[str, ...]:
    """What the scheduler says of a node that has too few of them (kubernetes, pkg/scheduler/framework/plugins/noderesources/fit.go)."""
    return tuple(f"Insufficient {resource}" for resource in requested)


def devices(node: NodeFacts, pool: Pool | None) -> int:
    """How many distinct devices a pod that takes all of the node has to see."""
    return resources.total(schedulable.expected(node, pool)) or resources.total(request(node))


def listed(log: str) -> list[str]:
    """UUIDs of the devices that the pod sees, in order; of a partitioned GPU its slices, because the GPU itself computes nothing."""
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
    """Why the pod has not computed on `wanted` distinct devices, or on the integrated one; nothing where it has."""
    if integrated:
        # Which GPU it is, a validation compares with what the pool declares.
        return device_query.deviations(log, Pool("")) + (
            [] if COMPUTED.search(log) else ["no kernel has computed on it"]
        )
    uuids = listed(log)
    if not uuids:
        return ["nvidia-smi -L has named no GPU in the pod"]
    found = [] if len(uuids) == expected else [f"the pod sees {len(uuids)} distinct GPUs, {expected} are expected"]
    if idle := [uuid for uuid in uuids if uuid not in computed(log)]:
        more = f" and {len(idle) - _NAMED} more" if len(idle) > _NAMED else ""
        found.append(f"no kernel has computed on {', '.join(idle[:_NAMED])}{more}")
    return found


def computed(log: str) -> set[str]:
    """UUIDs of the devices on which the sample says that it has."""
    parts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in log.splitlines():
        if match := _QUERIED.match(line):
            current = parts.setdefault(match["uuid"], [])
        else:
            current.append(line)
    return {uuid for uuid, lines in parts.items() if COMPUTED.search("\n".join(lines))}


def holds(pod: c.Mapping[str, t.Any], node: NodeFacts) -> bool:
    """Whether a pod that has not ended asks for GPUs of the node that it is on."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if spec.get("nodeName") != node.name or status.get("phase") in ("Succeeded", "Failed"):
        return False
    offered = schedulable.observed(node)
    return any(
        resource in offered
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
        for resource in (container.get("resources") or {}).get("limits") or {}
    )
