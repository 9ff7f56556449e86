# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Races: what is approved is what was judged, whatever others do between the read and the write."""

from __future__ import annotations

import collections.abc as c

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Conflict, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.session import NODES_AGE
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_csr.csr_cluster import CsrCluster

CLIENT, SERVING = cases.good_client(), cases.good_serving()
ROGUE = CLIENT.but(subject=s.node_subject("rogue"))


def before_the_first_write(cluster: CsrCluster, change: c.Callable[[], object]) -> None:
    cluster.on("replace", lambda _request: change(), times=1)


def codes(cluster: CsrCluster, **options: object) -> tuple[list[str], dict[str, str]]:
    """Names that are approved, and reasons of the others as a second run reports them."""
    outcome = cluster.approve(**options)
    assert outcome.failure is None
    approved = [one["name"] for one in outcome.values["approved"]]
    again = cluster.approve(**options)
    assert not again.changed
    return approved, {one["name"]: one["reason_code"] for one in again.values["ignored"]}


def replaced(cluster: CsrCluster, filed: s.Filed) -> None:
    """The request is deleted, and another one is filed under its name."""
    cluster.remove("CertificateSigningRequest", filed.name)
    cluster.file(filed)


def test_a_request_that_is_replaced_is_judged_again() -> None:
    cluster = CsrCluster(CLIENT)
    before_the_first_write(cluster, lambda: replaced(cluster, ROGUE))
    assert codes(cluster) == ([], {CLIENT.name: "NOT_IN_INVENTORY"})
    assert (cluster.writes, cluster.conditions(CLIENT.name)) == ([], [])


def test_a_request_that_is_replaced_by_a_good_one_is_approved() -> None:
    cluster = CsrCluster(CLIENT)
    before_the_first_write(cluster, lambda: replaced(cluster, CLIENT))
    assert codes(cluster) == ([CLIENT.name], {})
    assert cluster.conditions(CLIENT.name) == ["Approved"]


def test_the_uid_and_the_version_of_what_was_judged_are_sent() -> None:
    cluster = CsrCluster(CLIENT)
    judged = cluster.stored("CertificateSigningRequest", CLIENT.name)
    expected = judged["metadata"]["uid"], judged["metadata"]["resourceVersion"], judged["spec"]
    cluster.approve()
    (write,) = cluster.sent("replace")
    assert (write.body["metadata"]["uid"], write.body["metadata"]["resourceVersion"], write.body["spec"]) == expected
    assert write.subresource == "approval"


def test_another_approver_is_first() -> None:
    cluster = CsrCluster(CLIENT, SERVING)
    before_the_first_write(cluster, lambda: cluster.file(CLIENT.but(conditions=("Approved",))))
    assert codes(cluster) == ([SERVING.name], {})
    assert cluster.conditions(CLIENT.name) == ["Approved"]


def test_another_writer_denies_it_meanwhile() -> None:
    cluster = CsrCluster(CLIENT)
    before_the_first_write(cluster, lambda: cluster.file(CLIENT.but(conditions=("Denied",))))
    assert codes(cluster) == ([], {CLIENT.name: "DENIED"})


def test_a_request_that_is_gone_is_no_error() -> None:
    cluster = CsrCluster(CLIENT, SERVING)
    before_the_first_write(cluster, lambda: cluster.remove("CertificateSigningRequest", CLIENT.name))
    assert codes(cluster) == ([SERVING.name], {})


def test_a_harmless_change_of_the_request_is_retried() -> None:
    cluster = CsrCluster(CLIENT)

    def label() -> None:
        cluster.patch_as("somebody", "CertificateSigningRequest", CLIENT.name, {"metadata": {"labels": {"a": "b"}}})

    before_the_first_write(cluster, label)
    assert codes(cluster) == ([CLIENT.name], {})
    assert len(cluster.sent("replace")) == 2


def test_a_node_appears_together_with_a_change_of_the_request() -> None:
    cluster = CsrCluster(CLIENT)

    def join() -> None:
        replaced(cluster, CLIENT)
        cluster.join(cases.NEW, cases.NEW_ADDRESS)

    before_the_first_write(cluster, join)
    assert codes(cluster) == ([], {CLIENT.name: "NODE_EXISTS"})


def test_a_node_appears_while_many_requests_are_approved() -> None:
    """Nodes are read again before a client request is approved if their list is old."""
    others = [cases.good_client(node=node) for node in (cases.UPPER, cases.DOTTED)]
    cluster = CsrCluster(
        CLIENT.but(name="a-first", age=100), others[1].but(name="b-second", age=50), others[0].but(name="c-third")
    )

    def join(_request: Request) -> None:
        assert cluster.time is not None
        cluster.join(cases.UPPER, "10.33.3.22")
        cluster.time.advance(NODES_AGE + 1)

    cluster.on("replace", join, after=True, times=1)
    assert codes(cluster) == (["a-first", "b-second"], {"c-third": "NODE_EXISTS"})
    # Once more than the two runs: all later verdicts are by the new list.
    assert len(cluster.sent("list", "Node")) == 3


def test_a_serving_request_whose_node_is_deleted_meanwhile() -> None:
    cluster = CsrCluster(SERVING)

    def leave() -> None:
        replaced(cluster, SERVING)
        cluster.remove("Node", cases.WORKER)

    before_the_first_write(cluster, leave)
    assert codes(cluster) == ([], {SERVING.name: "NODE_MISSING"})


def test_an_old_request_that_is_filed_again_gets_no_second_certificate() -> None:
    """Replay: the bytes of a request that was approved before its Node joined."""
    key = s.ec_key()
    text = CLIENT.but(key=key).pem()
    old = CLIENT.but(written=lambda _pem: text, conditions=("Approved",), name="old")
    cluster = CsrCluster(old, old.but(name="replayed", conditions=()), nodes=(cases.WORKER, cases.NEW))
    assert codes(cluster) == ([], {"replayed": "NODE_EXISTS"})
    # Before the Node is there, the holder of the key gets what it has: the request names the same node and key.
    cluster.remove("Node", cases.NEW)
    assert codes(cluster) == (["replayed"], {})


def test_a_writer_that_never_rests_is_an_error() -> None:
    cluster = CsrCluster(CLIENT)
    cluster.fail(Conflict("the object has been modified"), "replace")
    with pytest.raises(HwaccelError, match="another client wrote it each time, 8 times"):
        cluster.approve()
    assert cluster.conditions(CLIENT.name) == []


def test_a_denial_of_a_request_that_is_replaced_by_a_good_one() -> None:
    cluster = CsrCluster(ROGUE)
    before_the_first_write(cluster, lambda: replaced(cluster, CLIENT))
    outcome = cluster.approve(deny_refused=True)
    assert (outcome.values["denied"], cluster.conditions(CLIENT.name)) == ([], [])
    assert codes(cluster, deny_refused=True) == ([CLIENT.name], {})
