# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a Secret is added to a set, its record moves into a Secret. A run that is killed during the move loses nothing."""

from __future__ import annotations

import contextlib

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError, Conflict
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.manifest_set.test_ensure import actions, call, config_map


class Killed(Exception):
    """Simulates SIGKILL within one process."""


def killed_after(cluster: Cluster, writes: int) -> None:
    """The next run is killed after this number of writes."""
    cluster.fail(Killed(), "write", at=writes + 1)


@pytest.mark.parametrize("then", ["again", "without the secret", "absent"])
@pytest.mark.parametrize("writes", range(6))
def test_a_record_that_moves_into_a_secret_can_be_interrupted(writes: int, then: str) -> None:
    """Order of writes: the mark on the ConfigMap, the Secret, two members, the Secret; then the ConfigMap is deleted."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "x", "namespace": "n"},
        "data": {"p": "cGxhbnRlZA=="},
    }
    cluster = Cluster()
    call(cluster, [config_map("a")])
    killed_after(cluster, writes)
    with contextlib.suppress(Killed):
        call(cluster, [config_map("a"), config_map("b"), secret])
    cluster.mend()
    if then == "absent":
        actions(call(cluster, state="absent"))
        assert set(cluster.objects) == {("namespaces", "", "n")}
        return
    desired = [config_map("a"), config_map("b"), *([secret] if then == "again" else [])]
    result = actions(call(cluster, desired, max_prune="50%"))
    assert result.get("x", "deleted") in ("created", "unchanged", "deleted", "configured")
    records = [place for place in cluster.objects if place[1] == "hwaccel-gpu-records"]
    assert len(records) == 1, records
    cluster.writes.clear()
    assert (call(cluster, desired).changed, cluster.writes) == (False, [])
    assert (("secrets", "n", "x") in cluster.objects) is (then == "again")


SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "x", "namespace": "n"},
    "data": {"p": "cGxhbnRlZA=="},
}


def holders(cluster: Cluster) -> set[str]:
    records = [obj for place, obj in cluster.objects.items() if place[1] == "hwaccel-gpu-records"]
    return {obj["metadata"]["annotations"].get("hwaccel.gpu/held-by", "") for obj in records}


def test_a_move_that_fails_leaves_no_hold_on_either_record() -> None:
    cluster = Cluster()
    call(cluster, [config_map("a")])
    cluster.fail(ApiError("applying Secret n/x", why="the disk is full"), "apply", kind="Secret")
    assert "the disk is full" in str(call(cluster, [config_map("a"), SECRET]).failure)
    assert holders(cluster) == {""}


def test_a_conflict_during_the_move_is_planned_again() -> None:
    """The previous holder has just released the record, and this run has not held it yet, so it has lost nothing."""
    cluster = Cluster()
    call(cluster, [config_map("a")])
    killed_after(cluster, 2)
    with contextlib.suppress(Killed):
        call(cluster, [config_map("a"), SECRET])
    cluster.mend()
    for place in (("configmaps", "hwaccel-gpu-records", "s"), ("secrets", "hwaccel-gpu-records", "s")):
        annotations = cluster.objects[place]["metadata"]["annotations"]
        del annotations["hwaccel.gpu/held-by"]
    cluster.fail(Conflict("the object has been modified"), "replace", kind="Secret", times=1)
    assert call(cluster, [config_map("a"), SECRET]).failure is None
    assert holders(cluster) == {""}
