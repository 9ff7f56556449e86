# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that becomes NotReady several times while a gate waits: a few times are a reboot or a restarted runtime, many are a failure."""

from __future__ import annotations

import functools
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import healthy, settings

FLAPPING, LOADING = "training-0", "training-1"


def flapping(clock: Time, absences: int) -> NodeCluster:
    """The node is Ready at the end. The driver of another node keeps loading, so that the gate waits."""
    loading = [s.driver(LOADING, s.running(ready=False, started=False)), s.validator(LOADING, s.running(ready=False))]
    states = [
        functools.partial(NodeCluster.put, obj=s.node(FLAPPING, ready=ready))
        for _number in range(absences)
        for ready in (False, True)
    ]
    return NodeCluster([s.node(FLAPPING), s.node(LOADING)], [*healthy(FLAPPING), *loading], states, clock.advance)


@pytest.mark.parametrize(("absences", "failed"), [(chain.FLAPS - 1, [LOADING]), (chain.FLAPS, [FLAPPING, LOADING])])
def test_a_flapping_node_has_failed(clock: Time, absences: int, failed: list[str]) -> None:
    values = run(settings(wait_timeout=120), flapping(clock, absences)).values
    assert values["failed_nodes"] == failed
    faults = {row["node"]: row for row in values["faults"]}
    assert absences < chain.FLAPS or "became NotReady 3 times" in faults[FLAPPING]["reason"]


def test_absences_count_over_slices(clock: Time) -> None:
    cluster, resume = flapping(clock, chain.FLAPS), t.cast("dict[str, t.Any]", {})
    for _slice in range(100):
        result = run(settings(wait_timeout=120), cluster, deadline=clock.monotonic() + 1, resume=resume)
        if result.pending is None:
            break
        resume = json.loads(json.dumps(result.pending))
    assert result.values["failed_nodes"] == [FLAPPING, LOADING]
