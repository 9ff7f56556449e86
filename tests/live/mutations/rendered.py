# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of every role as site renders them for one pool of GPU nodes."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.filter.stage_objects import stage_objects
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Mutant, Obj, mutants
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

AGENTS, CONTROLLERS = "gpu-nodes", "gpu-controllers"
POOL, KERNEL = "lanes", "6.8.0-45-generic"
GPU = {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559}
#: Boards with an integrated GPU.
BOARDS: dict[str, t.Any] = {
    "architecture": "arm64",
    "kernel": "5.15.148-tegra",
    "host_driver": "540.4.0",
    "gpu": {"product": "Orin", "count": 1, "memory_mib": 15388},
}
POOLS: list[dict[str, t.Any]] = [
    {"name": POOL, "selector": f"pool={POOL}", "gpu": {"product": GPU["product"], "count": 8}}
]
#: Taints of the pool's nodes, one for each toleration of the roles, and of the node for controllers.
TAINTS = (
    {"key": "team", "value": "a", "effect": "NoSchedule"},
    {"key": "nvidia.com/gpu", "value": "present", "effect": "NoExecute"},
)
CONTROL_PLANE = ({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},)
#: Roles in the order of site.
ROLES = ("feature_discovery", "driver", "device_plugin", "monitoring", "gpu_validation")
#: Set of objects of each role.
SETS = {role: role.replace("_", "-") for role in ROLES}
#: What the collection adds to the name of a DaemonSet for the nodes of the pool that run the known kernel.
_OF_POOL = re.compile(rf"-{POOL}(-{re.escape(KERNEL)}-[0-9a-f]+)?$")
_NAMESPACES = {
    "feature_discovery_namespace": AGENTS,
    "feature_discovery_system_namespace": CONTROLLERS,
    "driver_namespace": AGENTS,
    "device_plugin_namespace": AGENTS,
    "monitoring_namespace": AGENTS,
    "monitoring_driver_namespace": AGENTS,
    "gpu_validation_namespace": AGENTS,
}


def objects(role: str) -> list[Obj]:
    """The objects of a role. Of gpu_validation, its pod."""
    texts = stack.texts(role, **_NAMESPACES)
    settings = stack.settings(role, pools=POOLS, namespaces_before=[] if role == ROLES[0] else [AGENTS])
    settings |= {name.removeprefix(f"{role}_"): value for name, value in _NAMESPACES.items() if name.startswith(role)}
    if role == "gpu_validation":
        plan = stage_objects(texts, role, settings | {"pods": {"gpu-validation": {}}}, _fleet())
        return [plan["pods"]["gpu-validation"] | {"apiVersion": "v1", "kind": "Pod"}]
    plan = stage_objects(texts, role, settings, _fleet())
    assert not plan["faults"], plan["faults"]
    return list(plan["objects"])


def everything() -> dict[str, list[Obj]]:
    return {role: objects(role) for role in ROLES}


def all_mutants(found: dict[str, list[Obj]]) -> list[Mutant]:
    """Of DaemonSets that the collection makes of one manifest, those of the one that serves the pool."""
    left_out = {(role, index) for role in ROLES for index in twins(found[role])}
    made = [mutant for role in ROLES for mutant in mutants(role, found[role], called)]
    return [mutant for mutant in made if (mutant.role, mutant.index) not in left_out]


def called(item: Obj) -> str:
    """Its name, but for what the collection derives from pool, kernel and version."""
    return _OF_POOL.sub("", item["metadata"]["name"])


def component(item: Obj) -> str:
    """The name of a workload's manifest."""
    return re.sub(rf"-{POOL}.*", "", item["metadata"]["name"])


def twins(objects: list[Obj]) -> set[int]:
    """Places of DaemonSets for other nodes, of the same manifest as one of the pool."""
    sets = {index: item for index, item in enumerate(objects) if item["kind"] == "DaemonSet"}
    serving = {called(item) for item in sets.values() if _OF_POOL.search(item["metadata"]["name"])}
    return {
        index
        for index, item in sets.items()
        if component(item) in serving and not _OF_POOL.search(item["metadata"]["name"])
    }


def _fleet() -> Obj:
    return stack.fleet(stack.node_class(POOL, KERNEL, os_image="Ubuntu 24.04.1 LTS", runtime_version="2.0.0"))
