# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every right that exists in the lifecycle of a cluster is of a call that the real programs make, and no request is refused.

What the real programs call stands in tables from their sources (roles/sandbox/files/fleet_agent/data/programs). Which of these calls the settings of our
manifests need is compared in tests/unit/fleet_agent/test_agent_rights.py.

Runtime: none; it reads the results of `lifecycle`.
"""

from __future__ import annotations

import pathlib

import yaml

from ansible_collections.hwaccel.gpu.tests.live.support.life import AGENTS, CONTROLLERS, Lifecycle

TABLES = (
    pathlib.Path(__file__).resolve().parents[2] / "roles" / "sandbox" / "files" / "fleet_agent" / "data" / "programs"
)
#: Programs with calls, by the ServiceAccount that they run with. That of the device plugin has no rights.
PROGRAMS = {
    f"{CONTROLLERS}/nfd-master": "nfd-master",
    f"{CONTROLLERS}/nfd-gc": "nfd-gc",
    f"{CONTROLLERS}/nfd-prune": "nfd-master",
    f"{AGENTS}/nfd-worker": "nfd-worker",
    f"{AGENTS}/nvidia-driver": "driver-manager",
    f"{AGENTS}/nvidia-container-toolkit": "nvidia-validator",
    f"{AGENTS}/nvidia-validator": "nvidia-validator",
    f"{AGENTS}/gpu-feature-discovery": "gpu-feature-discovery",
}


def calls(account: str) -> set[tuple[str, str, str]]:
    """Verb, group and resource."""
    table = yaml.safe_load((TABLES / f"{PROGRAMS[account]}.yaml").read_text(encoding="utf-8"))
    return {(call["verb"], call.get("group", ""), call["resource"]) for call in table["calls"]}


def test_every_right_is_of_a_call(lifecycle: Lifecycle) -> None:
    assert {right.account for right in lifecycle.granted} == PROGRAMS.keys()
    rows = [
        right for right in lifecycle.granted if (right.verb, right.group, right.resource) not in calls(right.account)
    ]
    assert sorted(map(str, rows)) == []


def test_every_request_is_a_call_and_none_is_refused(lifecycle: Lifecycle) -> None:
    of = {f"system:serviceaccount:{account.replace('/', ':')}": calls(account) for account in PROGRAMS}
    requests = lifecycle.requests()
    assert {request.user for request in requests} == of.keys()
    assert sorted({str(request) for request in requests if request.status == 403}) == []
    sent = {
        (request.user, request.verb, request.group, f"{request.resource}/{request.subresource}".rstrip("/"))
        for request in requests
    }
    assert sorted(row for row in sent if row[1:] not in of[row[0]]) == []
