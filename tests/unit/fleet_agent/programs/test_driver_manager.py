# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of the driver manager, which runs before the driver of a node."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container, log

IMAGE = "nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.12.0"


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [(["uninstal_driver"], 3, "No help topic for 'uninstal_driver'"), ([], 0, "NAME:")],
)
def test_another_command_unloads_nothing(world, command, code, message):
    node = world.node()
    node.host.modules.update(dict.fromkeys(("nvidia", "nvidia_uvm", "nvidia_modeset"), "580.95.05"))
    made = container("c", IMAGE, ["driver-manager", *command], NODE_NAME="n0")
    pod = world.pod(node, {"restartPolicy": "Never", "containers": [made]})
    world.until(lambda: "terminated" in pod.main[0].state)
    assert pod.main[0].state["terminated"]["exitCode"] == code
    assert message in log(pod.main[0])
    assert "nvidia" in node.host.modules
