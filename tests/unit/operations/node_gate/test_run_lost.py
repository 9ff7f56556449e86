# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gate that loses the connection to the cluster has a next step, which differs for a lost network and a rejected token."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError, Unauthorized, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import fleet, settings

TOKEN_REJECTED = "check that the token has not expired"


@pytest.mark.parametrize(
    ("kind", "next_step"), [(Unauthorized, TOKEN_REJECTED), (Unreachable, "check that the API server can be reached")]
)
def test_a_gate_that_loses_the_connection_has_a_next_step(clock: Time, kind: type[ApiError], next_step: str) -> None:
    def lost(*_args: t.Any) -> t.NoReturn:
        raise kind("watching pods", "https://cluster:6443", "why", TOKEN_REJECTED)

    cluster = fleet(4, {3}, clock, [lost])
    cluster.on("list", lost, kind="DaemonSet", at=2)
    failure = str(run(settings(), cluster).failure)
    assert failure.startswith(
        "gate driver lost the connection to the cluster (https://cluster:6443): 3 of 4 nodes had passed, 1 are unknown: watching pods"
    )
    assert failure.endswith(f"Next: {next_step}, and run again")
    assert failure.count("Next: ") == 1
