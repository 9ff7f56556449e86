# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of nodes on which pods of a DaemonSet are replaced at once, for every role."""

from __future__ import annotations

import math
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.quarantine import limit_of
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.scheduling import TRAINING, run
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack


def strategies(role: str) -> dict[str, dict[str, t.Any]]:
    """Update strategies by the name of the DaemonSet."""
    plan = run(role, stack.fleet(stack.node_class()), pools=[TRAINING])
    return {
        one["metadata"]["name"]: one["spec"]["updateStrategy"] for one in plan["objects"] if one["kind"] == "DaemonSet"
    }


@pytest.mark.parametrize("role", stack.ROLES)
def test_allowed_failed_nodes_do_not_block_a_rollout(role: str) -> None:
    """Kubernetes rounds a percentage up (util.UnavailableCount), and failed nodes count as unavailable."""
    rolling = [
        strategy["rollingUpdate"]["maxUnavailable"]
        for strategy in strategies(role).values()
        if strategy["type"] == "RollingUpdate"
    ]
    assert rolling
    for share in rolling:
        for nodes in range(2, 500):
            assert math.ceil(nodes * int(share.removesuffix("%")) / 100) > limit_of(
                stack.defaults(role)[f"{role}_max_failed"], nodes
            ), (share, nodes)


@pytest.mark.parametrize("role", ["driver", "device_plugin"])
def test_a_failed_rollout_leaves_schedulable_gpus(role: str) -> None:
    rolling = {
        name: strategy["rollingUpdate"]
        for name, strategy in strategies(role).items()
        if strategy["type"] == "RollingUpdate"
    }
    shares = {
        name: int(one["maxUnavailable"].removesuffix("%"))
        for name, one in rolling.items()
        if name != "gpu-feature-discovery"
    }
    assert shares
    assert all(math.ceil(nodes * share / 100) < nodes for share in shares.values() for nodes in range(3, 500)), shares


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("feature_discovery", "nfd-worker"),
        ("device_plugin", "gpu-feature-discovery"),
        ("monitoring", "nvidia-dcgm-exporter"),
    ],
)
def test_agents_that_only_observe_are_replaced_on_all_nodes_at_once(role: str, name: str) -> None:
    shares = [
        strategy["rollingUpdate"]["maxUnavailable"]
        for daemon_set, strategy in strategies(role).items()
        if daemon_set.startswith(name)
    ]
    assert set(shares) == {"100%"}


def test_a_driver_is_only_replaced_when_its_pod_is_deleted() -> None:
    found = [strategy for name, strategy in strategies("driver").items() if name.startswith("nvidia-driver")]
    assert found
    assert all(strategy == {"type": "OnDelete"} for strategy in found)
