# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What replaces the certificate authorities of a cluster, as tasks ask for it."""

from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_rotation import cluster_rotation
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_rotation import MACHINES, MINE, NODES, looks

WISH = {
    "what": "certificate authorities",
    "cluster": "one",
    "nodes": NODES,
    "lost": [],
    "confirm": MINE,
    "at_a_time": "2",
}


def test_a_rotation_is_planned_from_what_machines_have_printed() -> None:
    printed = {name: json.dumps(one) for name, one in looks().items()}
    assert cluster_rotation(MACHINES, "cluster_kubeadm", printed, WISH)["owner"] == "cp1"
    with pytest.raises(AnsibleFilterError, match="cannot read its input"):
        cluster_rotation(MACHINES, "cluster_kubeadm", {"cp1": "none"}, WISH)
    with pytest.raises(AnsibleFilterError, match="does not support role 'cluster_x'"):
        cluster_rotation(MACHINES, "cluster_x", printed, WISH)
