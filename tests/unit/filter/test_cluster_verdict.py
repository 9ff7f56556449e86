# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a machine did not become a node."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_verdict import cluster_verdict


def test_the_verdict_has_machine_cause_and_next_step() -> None:
    result = {"stderr": "\t[ERROR Port-10250]: Port 10250 is in use", "stdout": "", "msg": "non-zero return code"}
    text = cluster_verdict(result, "cluster_kubeadm", host="w1", endpoint="api.example.com:6443", journal="")
    assert (
        text.startswith("w1 did not become a healthy node: a port that it needs is in use (") and "Next: find" in text
    )


def test_another_role_is_refused() -> None:
    with pytest.raises(AnsibleFilterError):
        cluster_verdict({}, "cluster_rke2", host="w1")
