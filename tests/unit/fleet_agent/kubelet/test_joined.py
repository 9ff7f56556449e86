# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that joined by themselves: what the agent writes of their Node objects, and that it plays their pods."""

from __future__ import annotations

import copy
import typing as t

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container
from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.world import H100, World
from fleet_agent.kubelet.joined import JoinedKubelet
from fleet_agent.machine.devices import Endpoint
from fleet_agent.machine.fleet import parse_node

Obj = dict[str, t.Any]
NODES = "/api/v1/nodes"
#: As a kubelet of a real machine reports it.
NODE: Obj = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n0", "uid": "uid-of-n0", "labels": {"node-role.kubernetes.io/worker": ""}},
    "spec": {},
    "status": {
        "addresses": [{"type": "InternalIP", "address": "10.33.3.21"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "capacity": {"cpu": "4", "pods": "250"},
        "allocatable": {"cpu": "3", "pods": "250"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "nodeInfo": {"kernelVersion": "5.14.0", "osImage": "Red Hat Enterprise Linux CoreOS"},
    },
}


def joining(world: World) -> JoinedKubelet:
    kubelet = JoinedKubelet(world, parse_node("n0", {"kernel": "6.8.0-106-generic", "gpu": H100}), 1)
    world.nodes["n0"] = kubelet
    world.loop.spawn(kubelet.register())
    return kubelet


def test_it_waits_for_its_node_and_creates_none() -> None:
    world = World(0.01)
    kubelet = joining(world)
    world.pass_time(20)
    assert (kubelet.up, world.api.has(f"{NODES}/n0")) == (False, False)
    world.api.cluster.put(copy.deepcopy(NODE))
    world.until(lambda: kubelet.up)
    assert (kubelet.uid, kubelet.labels) == ("uid-of-n0", NODE["metadata"]["labels"])


def test_of_the_node_only_devices_are_written() -> None:
    world = World(0.01)
    world.api.cluster.put(copy.deepcopy(NODE))
    kubelet = joining(world)
    world.until(lambda: kubelet.up)
    kubelet.devices.register(Endpoint("nvidia.com/gpu", {f"gpu-{number}": True for number in range(8)}, "plugin"))
    world.until(lambda: gpus(world) == ("8", "8"), 60)
    # Its plugins register again.
    world.loop.spawn(kubelet.reboot())
    world.until(lambda: gpus(world) == ("0", "0"), 60)
    status = copy.deepcopy(world.api.at(f"{NODES}/n0")["status"])
    for kind in ("capacity", "allocatable"):
        del status[kind]["nvidia.com/gpu"]
    assert status == NODE["status"]


def gpus(world: World) -> tuple[str, str]:
    status = world.api.at(f"{NODES}/n0")["status"]
    return status["capacity"].get("nvidia.com/gpu", ""), status["allocatable"].get("nvidia.com/gpu", "")


def test_its_pods_run() -> None:
    world = World(0.01)
    world.api.cluster.put(copy.deepcopy(NODE))
    kubelet = joining(world)
    world.until(lambda: kubelet.up)
    pod = world.pod(kubelet, {"containers": [container("main", "busybox:1.36", ["sh", "-c", "sleep inf"])]})
    world.until(lambda: "running" in pod.containers[0].state)
