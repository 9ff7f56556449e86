# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of roles on machines: unknown roles, and incomplete observations."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.machine_verdict import machine_verdict
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _looking

ROLES = "cluster_k3s, cluster_kubeadm, dns_pxe, load_balancer, node_runtime"


@pytest.mark.parametrize(
    ("call", "known"),
    [
        (lambda: _looking.request("chrony", {}), ROLES),
        (lambda: _looking.plan("", "chrony", {}, None, "present"), ROLES),
        (lambda: _looking.plan("", "chrony", {}, None, "absent"), ROLES),
        (lambda: machine_verdict("", "chrony", {}, {}), "dns_pxe, load_balancer, node_runtime"),
    ],
)
def test_an_unknown_role_is_reported_with_the_known_roles(call: t.Callable[[], t.Any], known: str) -> None:
    with pytest.raises(AnsibleFilterError, match=rf"does not support role .*: set one of {known}$"):
        call()


@pytest.mark.parametrize("role", ["dns_pxe", "load_balancer", "node_runtime"])
def test_an_incomplete_observation_is_reported(role: str) -> None:
    with pytest.raises(AnsibleFilterError, match=r"machine_look cannot read .*ended before its output was complete"):
        _looking.plan("fact kernel NS4xMA==\n", role, {}, None, "absent")


@pytest.mark.parametrize(
    ("plan", "idle"),
    [
        ({"files": [], "actions": [], "record": "", "record_after": "", "firewall": [], "selinux": False}, True),
        ({"packages": ["haproxy"]}, False),
        ({"actions": [{"unit": "haproxy", "state": "reloaded"}]}, False),
        # Whether a port is open already shows only when it is opened, and a record is the run's own.
        ({"firewall": [{"port": 6443}]}, False),
        ({"selinux": True}, False),
        ({"record": "{}"}, False),
        ({"record_after": "{}"}, False),
    ],
)
def test_a_plan_is_idle_if_nothing_is_done_by_it(
    monkeypatch: pytest.MonkeyPatch, plan: dict[str, t.Any], idle: bool
) -> None:
    monkeypatch.setitem(_looking.PLANS, "load_balancer", lambda *_given: plan)
    assert _looking.plan("", "load_balancer", {}, None, "present")["idle"] is idle


class Tagged(str):
    """As a text of Ansible's, with more to copy than its characters."""

    __slots__ = ("origin",)


def test_a_plan_is_computed_from_plain_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[t.Any] = []
    monkeypatch.setitem(_looking.PLANS, "load_balancer", lambda _printed, settings: given.append(settings) or {})
    _looking.plan("", "load_balancer", {"names": [Tagged("a")], "maximum": {Tagged("b"): 3}}, None, "present")
    assert given[0].items() >= {"names": ["a"], "maximum": {"b": 3}}.items()
    assert {type(given[0]["names"][0]), *map(type, given[0]["maximum"])} == {str}
