# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on each single request, by profile: cluster-machine-approver's tables, and hostile requests.

Cases of these tables without an equivalent: "CSR too early" compares with the creation of a Machine, of which there is none, and addresses of OpenShiftSDN's
HostSubnets belong to a network that no supported release has. Renewals are in test_renewal.py.
"""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval import identities, profiles
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.profiles import PROFILES
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.reasons import REASONS
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.requests import of_object
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import (
    ApprovalPolicy,
    ObservedCluster,
    RequestVerdict,
    judged,
)
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.approval.cases import Case

ALL_PROFILES = {**PROFILES, "custom": profiles.custom("joiner", ["joiners"])}
EXPECTED = identities.parse(cases.EXPECTED)[0]


def policy(profile: str = "openshift") -> ApprovalPolicy:
    return ApprovalPolicy(ALL_PROFILES[profile], EXPECTED)


def observed(**changes: object) -> ObservedCluster:
    return dataclasses.replace(ObservedCluster(s.NOW, cases.NODES), **changes)


def verdict(filed: s.Filed, of: ApprovalPolicy | None = None, cluster: ObservedCluster | None = None) -> RequestVerdict:
    return judged(of_object(filed.object()), of or policy(), cluster or observed())


@pytest.mark.parametrize("profile", ["openshift", "kubeadm", "custom"])
@pytest.mark.parametrize("kind", ["table", "hostile"])
def test_each_request_has_its_verdict(profile: str, kind: str) -> None:
    every: list[Case] = getattr(cases, kind)(profile)
    wrong = []
    for case in every:
        found = verdict(case.filed, policy(profile))
        if found.code != case.code or (found.code and not found.why):
            wrong.append(f"{case.name}: {found.code} ({found.why}), not {case.code}")
    assert wrong == []


def test_there_are_enough_requests() -> None:
    every = [*cases.table(), *cases.hostile()]
    assert len(every) >= 80
    assert len({case.name for case in every}) == len(every)
    assert sum(not case.code for case in every) >= 15


def test_k3s_has_no_client_requests_and_the_same_serving_ones() -> None:
    wrong = []
    for case in (*cases.table(), *cases.hostile()):
        expected = "BAD_REQUESTOR" if case.decided_by_profile else case.code
        if (found := verdict(case.filed, policy("k3s"))).code != expected:
            wrong.append(f"{case.name}: {found.code} ({found.why}), not {expected}")
    assert wrong == []


@pytest.mark.parametrize("profile", sorted(ALL_PROFILES))
def test_a_bootstrap_identity_counts_in_its_own_profile_only(profile: str) -> None:
    approved = [of for of in s.REQUESTORS if verdict(cases.good_client(of), policy(profile)).approved]
    assert approved == [of for of in s.REQUESTORS if of == profile]


def test_a_kind_that_is_not_selected_is_not_approved() -> None:
    serving = dataclasses.replace(policy(), signers=frozenset(("serving",)))
    assert verdict(cases.good_client(), serving).code == "UNKNOWN_SIGNER"
    assert verdict(cases.good_serving(), serving).approved


def test_a_node_with_a_machine_object_is_left_to_its_approver() -> None:
    cluster = observed(machines=frozenset((cases.NEW, cases.WORKER)))
    for filed in (cases.good_client(), cases.good_serving()):
        assert verdict(filed, cluster=cluster).code == "MACHINE_EXISTS"


def test_a_node_may_rejoin_only_by_its_own_name() -> None:
    rejoin = dataclasses.replace(policy(), allow_rejoin=frozenset((cases.WORKER,)))
    assert verdict(cases.good_client(node=cases.WORKER), rejoin).approved
    assert verdict(cases.good_client(node="worker-0"), rejoin).code == "TWO_NAMES"
    cluster = observed(nodes={**cases.NODES, cases.NEW: frozenset()})
    assert verdict(cases.good_client(), rejoin, cluster).code == "NODE_EXISTS"


def test_addresses_of_the_inventory_that_the_node_does_not_report() -> None:
    strict = dataclasses.replace(policy(), strict_addresses=True)
    found = verdict(cases.good_serving(), strict)
    assert found.code == "SAN_NOT_ALLOWED"
    assert cases.SECOND in found.why
    assert cases.ADDRESS in found.why
    full = observed(nodes={cases.WORKER: frozenset((cases.WORKER, "worker-0", cases.ADDRESS, cases.SECOND))})
    assert verdict(cases.good_serving(), strict, full).approved


def test_the_age_counts_from_the_creation_of_the_request() -> None:
    for filed in (cases.good_client(), cases.good_serving()):
        assert verdict(filed.but(age=7199)).approved
        assert verdict(filed.but(age=7201)).code == "TOO_OLD"
    undated = of_object({**cases.good_client().object(), "metadata": {"name": "csr-1"}})
    assert judged(undated, policy(), observed()).code == "TOO_OLD"


def test_a_name_of_two_machines_names_neither() -> None:
    both = identities.parse([{"name": "gpu-0.a.example.com"}, {"name": "gpu-0.b.example.com"}])[0]
    ambiguous = dataclasses.replace(policy(), expected=both)
    found = verdict(s.client("gpu-0"), ambiguous)
    assert (found.code, "have this first label" in found.why) == ("NOT_IN_INVENTORY", True)
    assert verdict(s.client("gpu-0.a.example.com"), ambiguous).approved


def test_long_names_of_nodes_are_read_without_a_warning() -> None:
    name = f"{'n' * 60}.{'d' * 60}.example.com"
    long = dataclasses.replace(policy(), expected=identities.parse([{"name": name}])[0])
    assert verdict(s.client(name), long).approved


def test_each_reason_has_a_next_step_and_is_reached() -> None:
    """The others are of several requests, of renewals and of the cluster: see the tests of those."""
    reached = {case.code for case in (*cases.table(), *cases.hostile())} - {""}
    elsewhere = {"FLOOD", "KEY_REUSED", "SUPERSEDED", "NODE_UNREACHABLE", "MACHINE_EXISTS"}
    assert reached | elsewhere == set(REASONS)
    assert all(reason.next_step for reason in REASONS.values())


def test_only_what_no_change_of_the_cluster_can_make_right_may_be_denied() -> None:
    """A denial locks a machine out, so a request that waits for something is not denied even with deny_refused."""
    permanent = {code for code, reason in REASONS.items() if reason.permanent}
    bad = {"EXPIRATION", "EXTENSION", "KEY", "PEM", "REQUESTOR", "SIGNATURE", "SUBJECT", "USAGE"}
    assert permanent == {*(f"BAD_{one}" for one in bad), "NO_SAN", "SAN_NOT_ALLOWED", "NOT_IN_INVENTORY"}
