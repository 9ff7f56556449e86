# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on several requests together."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.judgement import Judgement, Kubelets, judge
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.renewal import Authorities, Served
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.requests import of_object
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.approval.test_rules import observed, policy

KUBELETS = Kubelets(lambda names: dict.fromkeys(names, Served()), lambda: Authorities(""))


def judgement(*filed: s.Filed, nodes: dict[str, frozenset[str]] | None = None, **options: t.Any) -> Judgement:
    cluster = observed(nodes=cases.NODES if nodes is None else nodes)
    return judge(
        [of_object(one.object()) for one in filed], dataclasses.replace(policy(), **options), cluster, KUBELETS
    )


def codes(found: Judgement) -> dict[str, str]:
    return {verdict.request.name: verdict.code for verdict in found.verdicts}


def test_of_two_requests_of_a_node_the_newest_is_approved() -> None:
    client, serving = cases.good_client(), cases.good_serving()
    found = judgement(
        client.but(name="older", age=900),
        client.but(name="newer", age=10),
        serving.but(name="serving-newer", age=20),
        serving.but(name="serving-older", age=800),
    )
    assert codes(found) == {"older": "SUPERSEDED", "newer": "", "serving-newer": "", "serving-older": "SUPERSEDED"}
    assert "newer is newer" in found.refused[0].why


def test_a_request_that_is_older_than_an_approved_one_is_superseded() -> None:
    """Otherwise a second run would approve it, before the Node exists."""
    client, serving = cases.good_client(), cases.good_serving()
    approved = [
        client.but(name="approved", age=100, conditions=("Approved",)),
        serving.but(name="serving-approved", age=100, conditions=("Approved",), certificate="LS0t"),
    ]
    older = [client.but(name="older", age=900), serving.but(name="serving-older", age=900)]
    assert set(codes(judgement(*approved, *older)).values()) == {"SUPERSEDED"}
    # The kubelet has not got its certificate in time, and files another request.
    newer = [client.but(name="newer", age=10), serving.but(name="serving-newer", age=10)]
    assert codes(judgement(*approved, *newer)) == {"newer": "", "serving-newer": ""}


def test_of_two_requests_of_the_same_second_one_is_approved() -> None:
    client = cases.good_client()
    assert sorted(codes(judgement(client.but(name="a"), client.but(name="b"))).values()) == ["", "SUPERSEDED"]


@pytest.mark.parametrize("name", ["a-pending", "z-pending"])
def test_a_pending_request_of_the_second_of_an_approved_one_is_not_older(name: str) -> None:
    """A kubelet that renews at once waits for it a quarter of an hour; names are random."""
    serving = cases.good_serving()
    approved = serving.but(name="m-approved", conditions=("Approved",), certificate="LS0t")
    assert codes(judgement(approved, serving.but(name=name))) == {name: ""}


def test_a_newer_request_that_is_refused_supersedes_nothing() -> None:
    client = cases.good_client()
    found = judgement(client.but(name="older", age=900), client.but(name="newer", age=1, usages=("any",)))
    assert codes(found) == {"older": "", "newer": "BAD_USAGE"}


def test_a_key_of_two_nodes_is_refused_for_both() -> None:
    key = s.ec_key()
    first, second = cases.good_client().but(key=key), cases.good_client(node=cases.UPPER).but(key=key)
    found = judgement(first, second)
    assert list(codes(found).values()) == ["KEY_REUSED", "KEY_REUSED"]
    assert f"{cases.NEW}, {cases.UPPER}" in found.refused[0].why


def test_a_key_of_a_request_that_was_approved_before_counts() -> None:
    key = s.ec_key()
    before = cases.good_client(node=cases.UPPER).but(key=key, conditions=("Approved",))
    assert codes(judgement(before, cases.good_client().but(key=key))) == {f"csr-{cases.NEW}": "KEY_REUSED"}


def test_a_node_may_use_its_own_key_again() -> None:
    key = s.ec_key()
    nodes = {**cases.NODES, cases.NEW: frozenset()}
    serving = s.serving(cases.NEW, *s.dns(cases.NEW), key=key)
    before = cases.good_client().but(key=key, conditions=("Approved",))
    assert codes(judgement(before, serving, nodes=nodes)) == {serving.name: ""}


def test_somebody_without_the_key_cannot_spoil_it() -> None:
    """A request with a public key that was copied has no valid signature."""
    client = cases.good_client()
    forged = cases._unsigned(client.but(key=(key := s.ec_key()), subject=s.node_subject("stranger")).pem())
    found = judgement(client.but(key=key), client.but(name="forged", written=lambda _pem: forged))
    assert codes(found) == {client.name: "", "forged": "BAD_SIGNATURE"}


@pytest.mark.parametrize("first", ["full", "short"])
def test_a_machine_becomes_one_node_under_the_name_that_asked_first(first: str) -> None:
    full = cases.good_client().but(name="full", age=100 if first == "full" else 50)
    short = cases.good_client(node="worker-1").but(name="short", age=75)
    found = codes(judgement(full, short))
    assert found == {"full": "" if first == "full" else "TWO_NAMES", "short": "" if first == "short" else "TWO_NAMES"}


def test_a_name_that_was_approved_before_stays() -> None:
    full = cases.good_client().but(name="full", age=10, conditions=("Approved",))
    short = cases.good_client(node="worker-1").but(name="short", age=75)
    assert codes(judgement(full, short)) == {"short": "TWO_NAMES"}


def test_two_nodes_of_one_machine_get_no_serving_certificates() -> None:
    nodes = {**cases.NODES, "worker-0": frozenset[str]()}
    serving = cases.good_serving()
    short = s.serving("worker-0", *s.dns("worker-0"))
    assert set(codes(judgement(serving, short, nodes=nodes)).values()) == {"TWO_NAMES"}


def test_too_many_requests_at_once() -> None:
    client = cases.good_client()
    many = [client.but(name=f"csr-{number}", written=lambda _pem: b"x", key=s.rsa_key()) for number in range(105)]
    found = judgement(*many)
    assert found.flood == (105, 104)
    assert (set(codes(found).values()), found.approved) == ({"FLOOD"}, ())
    assert judgement(*many[:104], client).flood == (105, 104)
    assert judgement(*many, max_pending=105).flood is None
    assert judgement(client, cases.good_serving(), max_pending=1).flood == (2, 1)


def test_the_limit_grows_with_the_cluster() -> None:
    client = cases.good_client()
    many = [client.but(name=f"csr-{number}", written=lambda _pem: b"x") for number in range(110)]
    nodes = {f"node-{number}": frozenset[str]() for number in range(10)}
    assert judgement(*many, nodes=nodes).flood is None
    assert judgement(*many, client, nodes=nodes).flood == (111, 110)


def test_old_and_decided_requests_are_no_flood() -> None:
    client = cases.good_client()
    decided = [client.but(name=f"a-{number}", conditions=("Approved",)) for number in range(80)]
    decided += [client.but(name=f"d-{number}", conditions=("Denied",)) for number in range(80)]
    old = [client.but(name=f"o-{number}", age=3700) for number in range(80)]
    assert judgement(*decided, *old).flood is None


def test_approved_requests_are_no_result() -> None:
    decided = cases.good_client().but(conditions=("Approved",))
    issued = cases.good_serving().but(conditions=("Approved",), certificate="LS0t")
    assert judgement(decided, issued).verdicts == ()


def test_clients_are_approved_first() -> None:
    found = judgement(cases.good_serving().but(age=900), cases.good_client().but(age=5))
    assert [verdict.request.kind for verdict in found.approved] == ["client", "serving"]
