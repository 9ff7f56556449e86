# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rights in the rendered manifests are the calls that the tables of the real programs have, with the settings of these manifests.

A right that no program of the account needs is too much, and a call without a right fails on a cluster. What a simulated program sends is in its
table in any case (Proc.request), so the tables are compared, and not a run.
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.manifests import Manifests, Request, rendered
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack as roles

#: Calls that a program makes only on what these roles do not have on a node.
NOT_NEEDED = {
    (
        "nfd-prune",
        ("patch", "", "nodes/status"),
    ): "node-feature-discovery v0.19.0, pkg/nfd-master/nfd-master.go, updateNodeObject: only of nodes with "
    "extended resources of NFD, which our nfd-master creates none of (restrictions.disableExtendedResources)",
}


@pytest.fixture(scope="module")
def manifests() -> Manifests:
    return rendered()


def accounts() -> list[str]:
    return sorted(
        one["metadata"]["name"]
        for role in roles.ROLES
        for one in roles.everything(role)
        if one["kind"] == "ServiceAccount"
    )


@pytest.mark.parametrize("account", accounts())
def test_an_account_may_send_the_requests_of_its_programs_and_no_others(manifests: Manifests, account: str) -> None:
    needed = manifests.needed(account)
    excepted = {request for name, request in NOT_NEEDED if name == account}
    assert excepted <= needed
    assert manifests.granted(account) == needed - excepted


@pytest.mark.parametrize(
    "change", [lambda verbs: verbs.append("watch"), lambda verbs: verbs.pop()], ids=["more", "less"]
)
def test_a_right_more_or_less_is_seen(change: t.Callable[[list[str]], t.Any]) -> None:
    changed = rendered()
    change(next(one for one in changed.of_kind("Role") if one["metadata"]["name"] == "nfd-worker")["rules"][0]["verbs"])
    assert changed.granted("nfd-worker") != changed.needed("nfd-worker")


def test_most_accounts_have_programs_with_calls(manifests: Manifests) -> None:
    without = {account for account in accounts() if not manifests.needed(account)}
    assert without == {"nvidia-device-plugin", "nvidia-dcgm-exporter"}


@pytest.mark.parametrize(
    ("account", "container", "variable", "value", "lacks", "spares"),
    [
        (
            "nvidia-driver",
            "k8s-driver-manager",
            "ENABLE_GPU_POD_EVICTION",
            "true",
            {("create", "", "pods/eviction"), ("get", "", "pods"), ("get", "apps", "daemonsets")},
            set(),
        ),
        (
            "gpu-feature-discovery",
            "gpu-feature-discovery",
            "GFD_USE_NODE_FEATURE_API",
            "false",
            set(),
            {("get", "", "pods"), *((verb, "nfd.k8s-sigs.io", "nodefeatures") for verb in ("get", "create", "update"))},
        ),
    ],
)
def test_other_settings_need_other_rights(
    account: str, container: str, variable: str, value: str, lacks: set[Request], spares: set[Request]
) -> None:
    changed = rendered()
    made = next(one for _workload, _spec, one in changed.containers() if one["name"] == container)
    made["env"] = [one for one in made["env"] if one["name"] != variable] + [{"name": variable, "value": value}]
    assert changed.needed(account) - changed.granted(account) == lacks
    assert changed.granted(account) - changed.needed(account) == spares
