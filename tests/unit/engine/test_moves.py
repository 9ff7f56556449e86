# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A set that comes to hold a Secret: its record moves into one, and a run that is killed meanwhile loses nothing."""

from __future__ import annotations

import contextlib
import types
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.engine.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.engine.test_engine import actions, call, config_map


class Killed(Exception):
    """SIGKILL, as far as a test in one process can have it."""


def killed_after(cluster: Cluster, writes: int) -> None:
    """The next run ends after so many writes."""
    store, left = Cluster._store, [writes]

    def counted(self: Cluster, verb: str, place: tuple[str, str, str], obj: dict[str, t.Any]) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        store(self, verb, place, obj)

    cluster._store = types.MethodType(counted, cluster)  # type: ignore[method-assign]


@pytest.mark.parametrize("then", ["again", "without the secret", "absent"])
@pytest.mark.parametrize("writes", range(6))
def test_a_record_that_moves_into_a_secret_may_be_cut_short(writes: int, then: str) -> None:
    """Writes: the mark on the ConfigMap, the Secret, two members, the Secret; then the ConfigMap goes."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "n"}, "data": {"p": "cGxhbnRlZA=="}}
    cluster = Cluster()
    call(cluster, [config_map("a")])
    killed_after(cluster, writes)
    with contextlib.suppress(Killed):
        call(cluster, [config_map("a"), config_map("b"), secret])
    del cluster._store
    if then == "absent":
        actions(call(cluster, state="absent"))
        assert set(cluster.objects) == {("namespaces", "", "n")}
        return
    asked = [config_map("a"), config_map("b"), *([secret] if then == "again" else [])]
    told = actions(call(cluster, asked, max_prune="50%"))
    assert told.get("x", "deleted") in ("created", "unchanged", "deleted", "configured")
    records = [place for place in cluster.objects if place[1] == "hwaccel-gpu-records"]
    assert len(records) == 1, records
    cluster.writes.clear()
    assert (call(cluster, asked).changed, cluster.writes) == (False, [])
    assert (("secrets", "n", "x") in cluster.objects) is (then == "again")
