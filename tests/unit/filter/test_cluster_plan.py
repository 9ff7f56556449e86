# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a cluster, as tasks ask for it, with what its endpoint answers."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_plan import cluster_plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.authority import fingerprint
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import Found
from ansible_collections.hwaccel.gpu.tests.unit.filter.test_cluster_connection import kubeconfig
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import PEM
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_data import WISH, machine


def planned(answer: dict[str, t.Any], found: Found) -> dict[str, t.Any]:
    plans = {"cp1": {"found": found.as_dict(), "identity": {}}}
    return cluster_plan([machine("cp1", "server")], "cluster_kubeadm", plans=plans, wish=WISH, answer=answer)


MEMBER = Found("member", "", True, True, fingerprint(PEM), PEM, version=(1, 36, 4))
INFORMATION = {"status": 200, "json": {"data": {"kubeconfig": kubeconfig("https://10.0.0.1:6443")}}}


def test_the_endpoint_tells_its_cluster_by_its_public_information() -> None:
    assert planned(INFORMATION, MEMBER)["faults"] == []
    assert (
        "another cluster"
        in planned(INFORMATION, Found(**{**MEMBER.as_dict(), "authority": "b" * 64}))["faults"][0]["text"]
    )


@pytest.mark.parametrize("answer", [{}, {"status": -1}, {"skipped": True}])
def test_an_endpoint_that_does_not_answer_is_not_there_yet(answer: dict[str, t.Any]) -> None:
    assert [one["do"] for one in planned(answer, Found())["steps"]] == ["init"]


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 403},
        {"status": 200, "json": {"data": {}}},
        {"status": 200, "json": {"data": {"kubeconfig": "clusters: []"}}},
        {"status": 200, "json": {"data": {"kubeconfig": ": ["}}},
    ],
)
def test_an_endpoint_that_answers_anything_else_is_taken(answer: dict[str, t.Any]) -> None:
    assert "the endpoint answers" in planned(answer, Found())["faults"][0]["text"]


def test_other_roles_install_no_cluster() -> None:
    with pytest.raises(AnsibleFilterError, match="does not support role 'dns_pxe'"):
        cluster_plan([], "dns_pxe", plans={}, wish=WISH)
