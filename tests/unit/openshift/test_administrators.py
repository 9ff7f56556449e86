# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is proof that a cluster keeps an administrator without kubeadmin."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.administrators import (
    Administrators,
    Connected,
    Person,
    proof,
)

ALICE = Person("alice", ("sso",), everything=True)
SSO = ("sso",)


@pytest.mark.parametrize(
    ("found", "name", "why"),
    [
        (Administrators(SSO, people=(ALICE,)), "alice", "alice has logged in by identity provider sso"),
        (Administrators(SSO, people=(Person("bob"), ALICE)), "alice", "alice has logged in"),
        (Administrators((), people=(ALICE,)), "", "no identity provider"),
        (Administrators(SSO, "it is degraded", (ALICE,)), "", "nobody can log in at the moment: it is degraded"),
        (Administrators(SSO), "", "no user is bound to the ClusterRole cluster-admin"),
        (Administrators(SSO, people=(Person("bob", (), True),)), "", "bob may do everything, and have not logged in"),
        # The provider by which they have logged in is gone.
        (Administrators(SSO, people=(Person("bob", ("old",), True),)), "", "have not logged in by"),
        (Administrators(SSO, people=(Person("bob", SSO),)), "", "bob may not do everything"),
        (Administrators(connected=Connected("oidc:carol", (), True)), "oidc:carol", "hwaccel_connection is that of"),
        (Administrators(connected=Connected("oidc:carol")), "", "no identity provider"),
        (Administrators(connected=Connected("kube:admin", (), True)), "", "no identity provider"),
        (Administrators(connected=Connected("system:admin", (), True)), "", "no identity provider"),
        (Administrators(connected=Connected("root", ("system:masters",), True)), "", "no identity provider"),
        (
            Administrators(connected=Connected("system:serviceaccount:awx:runner", (), True)),
            "",
            "no identity provider",
        ),
    ],
)
def test_somebody_else_has_to_work_as_administrator(found: Administrators, name: str, why: str) -> None:
    judged = proof(found)
    assert judged.name == name and why in judged.why
    assert bool(judged.next_step) == (not name)
