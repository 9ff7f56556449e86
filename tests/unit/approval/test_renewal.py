# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renewals of serving certificates: cases of TestAuthorizeServingRenewal and TestGetServingCert of cluster-machine-approver, and of its renewal flow."""

from __future__ import annotations

import collections.abc as c

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval import identities, renewal
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.judgement import Kubelets, judge
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.profiles import PROFILES
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.renewal import Authorities, Served
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.requests import of_object
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import (
    ApprovalPolicy,
    ObservedCluster,
    RequestVerdict,
)
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.approval.signing import dns, ips

#: A node that the inventory does not have, as on a cluster whose Machine objects are gone.
NODE, ADDRESS = "test", "10.0.0.1"
NAMES = (*dns("node1", "node1.local"), *ips(ADDRESS, "10.0.0.2"))
SIGNER, OTHER = s.Authority(), s.Authority("another")


def answered(
    served: Served, filed: s.Filed | None = None, pem: str = SIGNER.pem, *, known: bool = False
) -> tuple[RequestVerdict, list[str]]:
    """The verdict, and which kubelets were asked. known: whether the inventory has the node."""
    asked: list[str] = []

    def ask(names: c.Collection[str]) -> dict[str, Served]:
        asked.extend(names)
        return dict.fromkeys(names, served)

    entry = {"name": NODE, "dns_names": ["node1", "node1.local"], "ip_addresses": [ADDRESS, "10.0.0.2"]}
    policy = ApprovalPolicy(PROFILES["openshift"], identities.parse([entry] if known else [])[0])
    observed = ObservedCluster(s.NOW, {NODE: frozenset()})
    request = of_object((filed or s.serving(NODE, *NAMES)).object())
    (verdict,) = judge([request], policy, observed, Kubelets(ask, lambda: Authorities(pem))).verdicts
    return verdict, asked


def test_the_node_serves_with_a_certificate_for_the_same_names() -> None:
    verdict, asked = answered(Served(SIGNER.issue(NODE, *reversed(NAMES))))
    assert (verdict.code, verdict.renewal, asked) == ("", True, [NODE])


def test_what_the_inventory_allows_needs_no_kubelet() -> None:
    verdict, asked = answered(Served(unreachable="nobody"), known=True)
    assert (verdict.code, verdict.renewal, asked) == ("", False, [])


@pytest.mark.parametrize(
    ("served", "code", "why"),
    [
        (Served(), "NOT_IN_INVENTORY", "no expected node"),
        (Served(unreachable="connection refused"), "NODE_UNREACHABLE", "connection refused"),
        (Served(b"no certificate"), "NOT_IN_INVENTORY", "no expected node"),
        (Served(SIGNER.issue(NODE, *NAMES, end=s.NOW - 1)), "NOT_IN_INVENTORY", "valid from"),
        (Served(SIGNER.issue(NODE, *NAMES, start=s.NOW + 60)), "NOT_IN_INVENTORY", "valid from"),
        (Served(OTHER.issue(NODE, *NAMES)), "NOT_IN_INVENTORY", "did not issue it"),
        (Served(SIGNER.issue("another", *NAMES)), "NOT_IN_INVENTORY", "that is for system:node:another"),
        (Served(SIGNER.issue(NODE, *NAMES[1:])), "NOT_IN_INVENTORY", "that has the names"),
        (Served(SIGNER.issue(NODE, *NAMES, *ips("99.0.1.1"))), "NOT_IN_INVENTORY", "that has the names"),
        (Served(SIGNER.issue(NODE)), "NOT_IN_INVENTORY", "that has no names"),
    ],
)
def test_what_is_no_renewal(served: Served, code: str, why: str) -> None:
    verdict, _asked = answered(served)
    assert (verdict.code, verdict.renewal) == (code, False)
    assert why in verdict.why


def test_an_address_more_than_the_current_certificate_has() -> None:
    more = s.serving(NODE, *NAMES, *ips("99.0.1.1"))
    verdict, asked = answered(Served(SIGNER.issue(NODE, *NAMES)), more, known=True)
    assert (verdict.code, asked) == ("SAN_NOT_ALLOWED", [NODE])
    verdict, _asked = answered(Served(SIGNER.issue(NODE, *NAMES, *ips("99.0.1.1"))), more, known=True)
    assert (verdict.code, verdict.renewal) == ("", True)


def test_a_name_of_another_type_is_never_renewed() -> None:
    """Whether the current certificate has it or not."""
    email = (*NAMES, cases.x509.RFC822Name("root@node1"))
    for names in (email, NAMES):
        verdict, _asked = answered(Served(SIGNER.issue(NODE, *names)), s.serving(NODE, *email))
        assert (verdict.code, verdict.renewal) == ("SAN_NOT_ALLOWED", False)
        assert "kubelets request DNS names and addresses only" in verdict.why


def test_other_refusals_ask_no_kubelet() -> None:
    wrong = [
        s.client(NODE),
        s.serving(NODE, *NAMES, age=8000),
        s.serving(NODE, *NAMES, usages=("client auth", "digital signature")),
        s.serving(NODE),
        s.serving("missing", *NAMES),
        s.serving(NODE, *NAMES, conditions=("Denied",)),
    ]
    for filed in wrong:
        verdict, asked = answered(Served(SIGNER.issue(NODE, *NAMES)), filed)
        assert verdict.code not in ("", "NODE_UNREACHABLE"), filed
        assert asked == [], filed


@pytest.mark.parametrize("pem", ["", "nonsense", OTHER.pem, SIGNER.pem.replace("M", "*", 1)])
def test_without_the_signers_certificate_nothing_is_renewed(pem: str) -> None:
    verdict, _asked = answered(Served(SIGNER.issue(NODE, *NAMES)), pem=pem)
    assert (verdict.code, "did not issue it" in verdict.why) == ("NOT_IN_INVENTORY", True)


def test_one_of_several_authorities_is_sufficient() -> None:
    verdict, _asked = answered(Served(SIGNER.issue(NODE, *NAMES)), pem=f"a comment\n{OTHER.pem}{SIGNER.pem}")
    assert verdict.renewal


def test_whether_a_kubelet_serves_with_a_certificate_of_the_signer() -> None:
    authorities = Authorities(SIGNER.pem)
    assert renewal.serves(Served(SIGNER.issue(NODE, *NAMES)), authorities, s.NOW) == ""
    assert renewal.serves(Served(), authorities, s.NOW) == "it presents no certificate"
    assert renewal.serves(Served(unreachable="refused"), authorities, s.NOW) == "refused"
    assert (
        renewal.serves(Served(OTHER.issue(NODE, *NAMES)), authorities, s.NOW) == "the cluster's signer did not issue it"
    )
