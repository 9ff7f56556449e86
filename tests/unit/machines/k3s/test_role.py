# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the endpoint and the cluster itself answer."""

from __future__ import annotations

import json

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import Answer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import places, role
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import certificate


def test_the_endpoint_is_known_by_the_authority_that_k3s_publishes() -> None:
    pem = certificate(days=10)
    assert role.answered({"status": 200, "content": pem}) == Answer(True, authority.fingerprint(pem))
    assert role.answered({"status": 404}) == Answer(answers=True)
    assert role.answered({"status": -1}) == Answer()
    assert role.answered({}) == Answer()


def test_nodes_and_members_are_told() -> None:
    observed = json.dumps({"configuration": {}, "nodes": {"s1": True, "a1": False}, "members": ["s1", "s2"]})
    cluster, change = role.told({}, observed, [])
    assert (cluster.names, cluster.ready, cluster.faults, change) == ({"s1", "a1", "s2"}, {"s1"}, (), {})


def test_no_server_joins_while_settings_of_others_change() -> None:
    """K3s refuses servers with different settings, and the next run would begin with the same join."""
    reasons = [f"its K3s has not loaded {places.CONFIGURATION}"]
    runs = {"serves": True, "found": {"serves": True, "state": "member"}, "turn": {"reasons": reasons}}
    new = {"serves": True, "found": {"serves": False, "state": "absent"}, "turn": {"reasons": []}}
    observed = json.dumps({"configuration": {}, "nodes": {}, "members": []})
    (fault,) = role.told({}, observed, [runs, new])[0].faults
    assert "servers are to join while settings of those that run change" in str(fault)
    assert role.told({}, observed, [runs, {**new, "serves": False}])[0].faults == ()
    assert role.told({}, observed, [{**runs, "turn": {"reasons": []}}, new])[0].faults == ()
