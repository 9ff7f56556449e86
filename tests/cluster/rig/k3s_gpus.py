# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters of K3s whose first agent has GPUs, their driver, and NVIDIA's container toolkit, the real one, from the role node_runtime."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig import gpus
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import K3sSite
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable, ensure_components
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say
from ansible_collections.hwaccel.gpu.tests.node.rig.runtime_site import toolkit_programs, toolkit_variables

GPUS = 2


def driven_site(
    rig: K3sRig,
    folder: pathlib.Path,
    servers: tuple[str, ...],
    agents: tuple[str, ...],
    *,
    manager: bool = True,
    board: bool = False,
    **options: t.Any,
) -> K3sSite:
    """folder: an empty one. manager: whether the agent can install packages. board: whether it is a Jetson board. options: of K3sSite.

    The agent is in the only pool, a. Skips tests if this machine cannot have the parts.
    """
    agent = agents[0]
    try:
        parts, components = gpus.ensure_gpus(say, gpus.DRIVERS), ensure_components(say)
        toolkit = toolkit_variables(components, folder) if manager else toolkit_programs(components)
    except Unavailable as missing:
        pytest.skip(str(missing))
    which: dict[str, t.Any] = {"boards": (agent,)} if board else {"with_gpus": {agent: GPUS}}
    site = K3sSite(rig, servers, agents, gpu_parts=parts, of_machines=toolkit, **which, **options)
    if not manager:
        site.machines[agent].sh("rm /usr/bin/apt-get /usr/bin/dpkg")
    # The machine has the runtime from the role node_runtime (docs/container-runtime.md).
    site.labels = {agent: {"pool": "a", "nvidia.com/gpu.deploy.container-toolkit": "false"}}
    pool = gpus.pool("a", "pool=a", GPUS)
    if board:
        pool["gpu"] = {"product": gpus.BOARD["product"].replace(" ", "-"), "count": 1}
    site.variables |= gpus.variables([{**pool, "driver": {"provider": "host"}}], gpus.DRIVERS)
    return site
