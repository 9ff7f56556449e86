# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for a DaemonSet without pods."""

from __future__ import annotations

import types
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.wait import Judge
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster


@pytest.mark.parametrize(("selector", "ready"), [({"gpu": "yes"}, False), ({"gpu": "no"}, True)])
def test_a_daemon_set_without_pods_is_only_waited_for_if_a_node_matches_its_template(
    selector: dict[str, str], ready: bool
) -> None:
    node = {
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"gpu": "yes"}},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    status = {"desiredNumberScheduled": 0, "observedGeneration": 1}
    live = {
        "metadata": {"name": "d", "generation": 1},
        "spec": {"template": {"spec": {"nodeSelector": selector}}},
        "status": status,
    }
    judge = Judge(Cluster(node), t.cast(t.Any, types.SimpleNamespace(ready_when={})))
    assert judge.verdict(ObjectKey("apps", "DaemonSet", "n", "d"), live).ready is ready
