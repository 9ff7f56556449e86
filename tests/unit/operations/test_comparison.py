# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A given connection is one to the cluster that an installer has found, or the run stops."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.comparison import (
    OTHER,
    SAME,
    UNKNOWN,
    Selected,
    compared,
    fingerprints,
)
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import PEM, certificate

ANOTHER = certificate()
_NEVER = "asked"


def selected(authority: str, uid: str | None = _NEVER) -> Selected:
    """uid: None if the cluster does not answer."""

    def ask() -> str:
        assert uid != _NEVER, "no request is needed"
        if uid is None:
            raise Unreachable("reading it", "https://api", "connection refused", "look")
        return uid

    return Selected("https://api.example.com:6443", authority, ask)


def test_fingerprints_are_those_of_all_certificates_that_can_be_read() -> None:
    broken = "-----BEGIN CERTIFICATE-----\nno base64\n-----END CERTIFICATE-----\n"
    found = fingerprints(f"text\n{PEM}\n{broken}{ANOTHER}")
    assert len(found) == 2 and found[0] != found[1]
    assert fingerprints("") == []


def test_the_same_authority_needs_no_request_also_in_a_bundle() -> None:
    assert compared(selected(ANOTHER + PEM), selected(PEM)) == {"state": SAME, "text": ""}


@pytest.mark.parametrize("authority", ["", ANOTHER])
def test_behind_a_proxy_the_uid_decides(authority: str) -> None:
    assert compared(selected(authority, "1"), selected(PEM, "1"))["state"] == SAME
    found = compared(selected(authority, "1"), selected(PEM, "2"))
    assert found["state"] == OTHER
    assert "another cluster" in found["text"] and "1 and 2" in found["text"] and "Next: " in found["text"]


def test_another_authority_without_an_answer_is_another_cluster() -> None:
    found = compared(selected(ANOTHER, None), selected(PEM, "2"))
    assert found["state"] == OTHER
    assert fingerprints(ANOTHER)[0][:16] in found["text"] and fingerprints(PEM)[0][:16] in found["text"]


@pytest.mark.parametrize("uid", ["", None])
def test_without_authority_and_answer_it_is_unknown(uid: str | None) -> None:
    found = compared(selected("", uid), selected(PEM, "2"))
    assert found["state"] == UNKNOWN
    assert found["text"] == ("connection refused" if uid is None else "the UID of kube-system cannot be read")


def test_any_cluster_is_another_one_while_the_machines_are_none() -> None:
    assert compared(selected(PEM, None), None)["state"] == OTHER
    found = compared(selected("", "7"), None)
    assert found["state"] == OTHER and "the UID of its kube-system is 7" in found["text"]
    assert compared(selected("", None), None)["state"] == UNKNOWN
