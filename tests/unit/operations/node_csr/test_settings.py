# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of the options: all of them at once, before anything is read."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.settings import Settings, policy
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_csr.csr_cluster import CsrCluster


def settings(**given: t.Any) -> Settings:
    return Settings(**{"expected_nodes": cases.EXPECTED, "profile": "openshift"} | given)


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"expected_nodes": [{"name": "a"}, {"name": "A."}]}, "expected_nodes"),
        ({"expected_nodes": [], "wait": True}, "expected_nodes"),
        ({"allow_rejoin": ["worker-99"]}, "allow_rejoin"),
        ({"bootstrap_user": "joiner"}, "bootstrap_user"),
        ({"bootstrap_groups": ["joiners"]}, "bootstrap_user"),
        ({"profile": "custom"}, "bootstrap_user"),
        ({"profile": "custom", "bootstrap_user": "system:node:worker-0"}, "bootstrap_user"),
        ({"max_age": 0.0}, "max_age"),
        ({"max_age": float("nan")}, "max_age"),
        ({"wait_timeout": -1.0}, "wait_timeout"),
        ({"max_pending": 0}, "max_pending"),
        ({"serving_ca": "/etc/kubernetes/pki/ca.crt"}, "serving_ca"),
    ],
)
def test_what_cannot_be_used(given: dict[str, t.Any], where: str) -> None:
    with pytest.raises(ManyFaults) as caught:
        policy(settings(**given))
    (fault,) = caught.value.faults
    assert (fault.where, bool(fault.next_step)) == (where, True)


def test_all_problems_are_reported_before_anything_is_read() -> None:
    cluster = CsrCluster()
    with pytest.raises(ManyFaults) as caught:
        cluster.approve(
            expected_nodes=[{"name": "not valid"}], max_age=-1.0, max_pending=-1, bootstrap_user="x", serving_ca="x"
        )
    assert len(caught.value.faults) == 5
    assert cluster.requests == []


def test_what_can_be_used() -> None:
    assert policy(settings(allow_rejoin=["Worker-0"])).allow_rejoin == {"worker-0"}
    custom = policy(settings(profile="custom", bootstrap_user="joiner", bootstrap_groups=["joiners"])).profile
    assert custom.is_requestor("joiner", ["system:authenticated", "joiners"])
    assert not custom.is_requestor("joiner", ["system:authenticated"])
    assert not custom.is_requestor("joiner-2", ["system:authenticated", "joiners"])
    serving = policy(settings(profile="custom", signers=["serving"])).profile
    assert not serving.is_requestor("", ["system:authenticated"])
