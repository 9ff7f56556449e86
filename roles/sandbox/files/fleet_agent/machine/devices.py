# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubelet's device manager: plugins register resources, pods get devices, and the node's status shows them."""

from __future__ import annotations

import dataclasses
from typing import Any

from fleet_agent.machine.cdi import ANNOTATION_PREFIX
from fleet_agent.machine.hostfs import gpu_uuid

#: The kind of devices of NVIDIA's plugin (vendor and class in k8s-device-plugin v0.20.0, cmd/nvidia-device-plugin/plugin-manager.go).
PLUGIN_KIND = "k8s.device-plugin.nvidia.com/gpu"


@dataclasses.dataclass
class Endpoint:
    """A registered device plugin's resource: device ids with health, and how devices are handed to containers."""

    resource: str
    devices: dict[str, bool]
    owner: str
    strategies: tuple[str, ...] = ("envvar",)
    id_strategy: str = "uuid"
    annotation_prefix: str = ANNOTATION_PREFIX


class DeviceManager:
    """Devices of one node. capacity remains for some time after a plugin is gone, allocatable does not (kubelet's endpoint grace period)."""

    def __init__(self, kubelet: Any) -> None:
        self.kubelet = kubelet
        self.endpoints: dict[str, Endpoint] = {}
        self.capacity: dict[str, int] = {}
        self.allocatable: dict[str, int] = {}
        self.allocated: dict[str, dict[str, list[str]]] = {}  # pod uid -> resource -> ids
        self._generation: dict[str, int] = {}

    def _publish(self, after: str) -> None:
        self.kubelet.loop.later(self.kubelet.clock.real(self.kubelet.clock.delay(after)), self.kubelet.write_devices)

    def register(self, endpoint: Endpoint) -> None:
        self._generation[endpoint.resource] = self._generation.get(endpoint.resource, 0) + 1
        self.endpoints[endpoint.resource] = endpoint
        self.capacity[endpoint.resource] = len(endpoint.devices)
        self.allocatable[endpoint.resource] = sum(endpoint.devices.values())
        self._publish("node_status")

    def unhealthy(self, owner: str, ids: set[str]) -> None:
        """A plugin reports unhealthy devices: they count for capacity, and are not allocated."""
        for resource, endpoint in self.endpoints.items():
            if endpoint.owner == owner:
                endpoint.devices.update({identity: False for identity in endpoint.devices if identity in ids})
                self.allocatable[resource] = sum(endpoint.devices.values())
                self._publish("node_status")

    def unregister(self, owner: str) -> None:
        """The plugin's socket is gone: allocatable follows in seconds, capacity in minutes."""
        for resource in [r for r, e in self.endpoints.items() if e.owner == owner]:
            del self.endpoints[resource]
            generation = self._generation[resource]
            clock, loop = self.kubelet.clock, self.kubelet.loop
            loop.later(clock.real(clock.delay("plugin_lost")), self._lost, resource, generation, self.allocatable)
            loop.later(clock.real(clock.delay("plugin_forgotten")), self._lost, resource, generation, self.capacity)

    def _lost(self, resource: str, generation: int, figures: dict[str, int]) -> None:
        if self._generation[resource] == generation and resource not in self.endpoints:
            figures[resource] = 0
            self.kubelet.write_devices()

    def kubelet_restarted(self) -> None:
        """Checkpointed resource names remain with value 0 until the plugin registers again."""
        for resource in self.capacity:
            self._generation[resource] += 1
            self.capacity[resource] = self.allocatable[resource] = 0
        self.endpoints.clear()

    def _free_ids(self, resource: str) -> list[str]:
        taken = {i for held in self.allocated.values() for i in held.get(resource, ())}
        endpoint = self.endpoints.get(resource)
        return [i for i, healthy in endpoint.devices.items() if healthy and i not in taken] if endpoint else []

    def allocate(self, pod: Any) -> str:
        """Why the pod cannot be admitted, empty if it can. A pod that is admitted again after a restart keeps its devices."""
        wants = {r: n for r, n in pod.wants().items() if r in self.capacity or r in self.endpoints}
        held = self.allocated.get(pod.uid)
        if held is None:
            held = {}
            for resource, count in wants.items():
                free = self._free_ids(resource)
                if len(free) < count:
                    return (
                        f"Allocate failed due to requested number of devices unavailable for {resource}. Requested: {count}, "
                        f"Available: {len(free)}, which is unexpected"
                    )
                held[resource] = free[:count]
            if held:
                self.allocated[pod.uid] = held
        self._hand_out(pod, held)
        return ""

    @staticmethod
    def _hand_out(pod: Any, held: dict[str, list[str]]) -> None:
        rest = {resource: list(ids) for resource, ids in held.items()}
        for container in pod.main:
            limits = (container.spec.get("resources") or {}).get("limits") or {}
            container.devices = {r: [rest[r].pop(0) for _n in range(int(limits[r]))] for r in rest if r in limits}
        for container in pod.init:
            limits = (container.spec.get("resources") or {}).get("limits") or {}
            container.devices = {r: held[r][: int(limits[r])] for r in held if r in limits}

    def free(self, pod: Any) -> None:
        self.allocated.pop(pod.uid, None)

    # -- answers of a plugin's Allocate

    def environment(self, devices: dict[str, list[str]]) -> dict[str, str]:
        names = self._names(devices, "envvar")
        return {"NVIDIA_VISIBLE_DEVICES": ",".join(names)} if names else {}

    def cdi_requests(self, devices: dict[str, list[str]]) -> list[str]:
        """Qualified names in the CRI's own field."""
        return [f"{PLUGIN_KIND}={name}" for name in self._names(devices, "cdi-cri")]

    def cdi_annotations(self, devices: dict[str, list[str]], prefix: str) -> list[str]:
        """Qualified names in annotations of the container that begin with prefix."""
        return [f"{PLUGIN_KIND}={name}" for name in self._names(devices, "cdi-annotations", prefix)]

    def _names(self, devices: dict[str, list[str]], strategy: str, prefix: str = "") -> list[str]:
        found: list[str] = []
        for resource, ids in devices.items():
            endpoint = self.endpoints.get(resource)
            if endpoint and strategy in endpoint.strategies and endpoint.annotation_prefix.startswith(prefix):
                whole = {i.split("::")[0] for i in ids}
                indices = sorted({int(i.rsplit("#", 1)[-1]) for i in whole})
                # A board's one device has a name in place of a UUID (internal/rm/tegra_devices.go).
                board = endpoint.id_strategy == "uuid" and any(i.startswith("tegra") for i in whole)
                found += (
                    ["tegra"] if board else [device_name(self.kubelet.name, i, endpoint.id_strategy) for i in indices]
                )
        return found


def device_name(node: str, index: int, id_strategy: str) -> str:
    return str(index) if id_strategy == "index" else gpu_uuid(node, index)
