# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every right that the roles grant is used in the life of a cluster, and nothing that is needed is refused.

The simulated programs ask for what the real ones ask for, at the places that their own files name (roles/sandbox/files/fleet_agent/programs).

Runtime: none of its own; it reads what `life` left.
"""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.support import rights
from ansible_collections.hwaccel.gpu.tests.live.support.life import AGENTS, CONTROLLERS, Life
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import until

#: ServiceAccounts with rights. The device plugin's has none.
ACCOUNTS = {
    f"{CONTROLLERS}/nfd-master",
    f"{CONTROLLERS}/nfd-gc",
    f"{CONTROLLERS}/nfd-prune",
    f"{AGENTS}/nfd-worker",
    f"{AGENTS}/nvidia-driver",
    f"{AGENTS}/nvidia-container-toolkit",
    f"{AGENTS}/nvidia-validator",
    f"{AGENTS}/gpu-feature-discovery",
}
#: Rights that a life need not use, and the source that shows when the real program does.
NOT_ALWAYS = {
    f"{CONTROLLERS}/nfd-prune: patch nodes": "node-feature-discovery v0.19.0, pkg/nfd-master/nfd-master.go: prune calls updateNodeObject, which patches "
    "labels away where an nfd-master in its last moments has not done so",
    f"{AGENTS}/nvidia-driver: get resourceclaims.resource.k8s.io": "k8s-driver-manager v0.12.0, internal/kubernetes/client.go:381: of pods that hold a claim",
}


def test_every_right_is_used(life: Life) -> None:
    assert {right.account for right in life.granted} == ACCOUNTS
    assert NOT_ALWAYS.keys() <= {str(right) for right in life.granted}

    def left() -> list[str]:
        return [str(right) for right in rights.unused(life.granted, life.requests()) if str(right) not in NOT_ALWAYS]

    # A watch stands in the log when it has ended, which is when the program that held it is gone.
    until(
        lambda: not left(), "every right to be used; take away from the manifests what no program asks for", seen=left
    )


def test_nothing_is_refused(life: Life) -> None:
    assert sorted({str(request) for request in life.requests() if request.status == 403}) == []
