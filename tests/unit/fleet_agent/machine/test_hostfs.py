# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that come with driver and container toolkit, as a DGX does."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import host, log, mount

GPU = "nvidia.com/gpu"
#: As in k8s-device-plugin v0.20.0, deployments/static/nvidia-device-plugin.yml.
STATIC_PLUGIN = {
    "containers": [
        {
            "name": "nvidia-device-plugin-ctr",
            "image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
            "env": [{"name": "FAIL_ON_INIT_ERROR", "value": "false"}],
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [mount("device-plugin", "/var/lib/kubelet/device-plugins")],
        }
    ],
    "volumes": [host("device-plugin", "/var/lib/kubelet/device-plugins")],
}


def test_the_static_plugin_offers_gpus_where_the_host_has_the_toolkit(world):
    node = world.node(host_driver="580.95.05", host_toolkit=True)
    world.pod(node, STATIC_PLUGIN)
    world.until(lambda: node.devices.allocatable == {GPU: 8})


@pytest.mark.parametrize("present", [{"host_driver": "580.95.05"}, {"host_toolkit": True}])
def test_it_offers_none_where_the_host_lacks_one_of_the_two(world, present):
    node = world.node(**present)
    container = world.pod(node, STATIC_PLUGIN).main[0]
    world.until(lambda: "No devices found. Waiting indefinitely." in log(container) or container.restarts)
    assert node.devices.allocatable == {}


def test_the_toolkit_of_the_host_outlives_a_reboot(world):
    node = world.node(host_toolkit=True)
    node.host.boot()
    assert (node.host.default_handler, node.host.read(node.host.handlers["nvidia"])) == ("nvidia", "")
