# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What brings etcd back from a snapshot, as tasks ask for it."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_restoration import cluster_restoration
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_restoration import LOOKS, MINE, SNAPSHOT

WISH = {
    "cluster": "one",
    "snapshot": f"cp1:{SNAPSHOT}",
    "verified": "ab12",
    "why": "",
    "confirm": MINE,
    "moment": "NOW",
    "encrypted": False,
    "keys": [],
}


def test_a_restoration_is_planned_from_what_servers_have_printed() -> None:
    assert cluster_restoration(LOOKS, "cluster_kubeadm", WISH)["target"] == "cp1"
    with pytest.raises(AnsibleFilterError, match="cannot read its input"):
        cluster_restoration({"cp1": "none"}, "cluster_kubeadm", WISH)
