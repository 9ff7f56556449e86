# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a cluster from data as Ansible has them."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import data
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import Answer, Found

WISH = {"version": "1.36.4", "endpoint": "10.0.0.1:6443", "even_servers": False, "at_a_time": "50%"}


def machine(host: str, role: str) -> dict[str, object]:
    return {"host": host, "node": host, "address": "10.0.0.9", "role": role, "labels": {}, "taints": []}


def test_what_was_observed_survives_as_a_fact_of_ansible() -> None:
    one = Found(
        "member",
        serves=True,
        data=True,
        authority="a" * 64,
        certificate="PEM",
        endpoint="https://10.0.0.1:6443",
        version=(1, 36, 4),
        control_plane=(1, 36, 5),
        running=True,
        days=300,
        expired=True,
        behind=("its kubelet is 1.36.4",),
    )
    assert Found.of(json.loads(json.dumps(one.as_dict()))) == one


def test_machines_without_a_plan_could_not_be_observed() -> None:
    group = [machine("cp1", "server"), *(machine(f"w{number}", "agent") for number in range(4))]
    plans = {str(one["host"]): {"found": Found().as_dict(), "identity": {}} for one in group if one["host"] != "w3"}
    found = data.planned(group, plans, WISH, Answer())
    assert found["faults"] == []
    assert [(one["do"], one["hosts"]) for one in found["steps"]] == [
        ("init", ["cp1"]),
        ("join agents", ["w0", "w1"]),
        ("join agents", ["w2"]),
    ]
    assert found["predicted"][0] == found["steps"][0]["text"]
    assert found["predicted"][0].startswith("initialize the cluster on cp1: ")
    assert found["leader"] == "cp1"


@pytest.mark.parametrize(
    ("given", "total", "expected"), [("10%", 500, 50), ("10%", 4, 1), ("100%", 7, 7), ("3", 500, 3), (" 25% ", 8, 2)]
)
def test_batches_are_numbers_or_percentages(given: str, total: int, expected: int) -> None:
    assert data.batch(given, total) == expected
