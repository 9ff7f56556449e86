# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every right that the roles grant is used in the lifecycle of a cluster, and no request is refused.

The simulated programs send the same requests as the real ones, whose sources they name (roles/sandbox/files/fleet_agent/programs).

Runtime: none; it reads the results of `lifecycle`.
"""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.support import rights
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.life import AGENTS, CONTROLLERS, Lifecycle

#: ServiceAccounts with rights. That of the device plugin has none.
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
#: Rights that a lifecycle need not use, and the source that shows when the real program uses them.
NOT_ALWAYS = {
    f"{CONTROLLERS}/nfd-prune: patch nodes": "node-feature-discovery v0.19.0, pkg/nfd-master/nfd-master.go: prune calls updateNodeObject, which patches "
    "labels away where an nfd-master in its last moments has not done so",
    f"{AGENTS}/nvidia-driver: get resourceclaims.resource.k8s.io": "k8s-driver-manager v0.12.0, internal/kubernetes/client.go:381: of pods that hold a claim",
}


def test_every_right_is_used(lifecycle: Lifecycle) -> None:
    assert {right.account for right in lifecycle.granted} == ACCOUNTS
    assert NOT_ALWAYS.keys() <= {str(right) for right in lifecycle.granted}

    def unused() -> list[str]:
        rows = rights.unused(lifecycle.granted, lifecycle.requests())
        return [str(right) for right in rows if str(right) not in NOT_ALWAYS]

    # The log contains a watch only after it has ended, that is, after the end of its program.
    until(
        lambda: not unused(),
        "every right to be used; remove from the manifests those that no program uses",
        seen=unused,
    )


def test_no_request_is_refused(lifecycle: Lifecycle) -> None:
    assert sorted({str(request) for request in lifecycle.requests() if request.status == 403}) == []
