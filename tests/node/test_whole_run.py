# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""site on a cluster of one real node and nineteen simulated ones."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of
from ansible_collections.hwaccel.gpu.tests.node.conftest import REAL, Enabled
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, Cluster


def test_every_gpu_is_schedulable(cluster: Cluster, enabled: Enabled) -> None:
    assert enabled.first.rc == 0, enabled.first.stdout[-8000:]
    counts = {name: gpus_of(cluster.client.get(NODE, name)) for name in (REAL, "twin-0", "sim-0", "sim-14")}
    assert counts == {REAL: 2, "twin-0": 2, "sim-0": 8, "sim-14": 8}


def test_the_second_run_changes_nothing(enabled: Enabled) -> None:
    assert (enabled.second.rc, enabled.second.changed()) == (0, 0), enabled.second.stdout[-6000:]
