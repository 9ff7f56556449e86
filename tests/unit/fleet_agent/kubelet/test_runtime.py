# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images that no registry has, and those of users that the fleet file names."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import deploy

GPU = "nvidia.com/gpu"


def job(image):
    container = {"name": "c", "image": image, "command": ["train"], "resources": {"limits": {GPU: "8"}}}
    return {"runtimeClassName": "nvidia", "containers": [container]}


def offering(world):
    node = world.node()
    deploy(world, node)
    world.until(lambda: node.devices.allocatable.get(GPU) == 8)
    return node


def test_an_image_that_does_not_exist_is_not_pulled_and_uses_no_gpu(world):
    node = offering(world)
    pod = world.pod(node, job("example.com/unknown:1"))
    world.until(lambda: pod.main[0].state.get("waiting", {}).get("reason") == "ErrImagePull")
    message = pod.main[0].state["waiting"]["message"]
    assert 'failed to pull and unpack image "example.com/unknown:1"' in message
    assert "not found" in message
    assert node.host.computing == {}


def test_an_image_of_the_fleet_file_runs_and_uses_its_gpus(world):
    node = offering(world)
    pod = world.pod(node, job("example.com/job:1"))
    world.until(lambda: pod.main[0].ready)
    assert sorted(next(iter(node.host.computing.values()))) == list(range(8))
