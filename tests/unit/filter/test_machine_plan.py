# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for roles on machines: unknown roles, and incomplete observations."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.machine_plan import machine_plan
from ansible_collections.hwaccel.gpu.plugins.filter.machine_verdict import machine_verdict


@pytest.mark.parametrize(
    ("call", "known"),
    [
        (lambda: machine_plan("", "chrony", {}), "cluster_kubeadm, dns_pxe, load_balancer, node_runtime"),
        (lambda: machine_plan("", "chrony", state="absent"), "cluster_kubeadm, dns_pxe, load_balancer, node_runtime"),
        (lambda: machine_verdict("", "chrony", {}, {}), "dns_pxe, load_balancer, node_runtime"),
    ],
)
def test_an_unknown_role_is_reported_with_the_known_roles(call: t.Callable[[], t.Any], known: str) -> None:
    with pytest.raises(AnsibleFilterError, match=rf"does not support role .*: set one of {known}$"):
        call()


@pytest.mark.parametrize("role", ["dns_pxe", "load_balancer", "node_runtime"])
def test_an_incomplete_observation_is_reported(role: str) -> None:
    with pytest.raises(AnsibleFilterError, match=r"machine_plan cannot read .*ended before its output was complete"):
        machine_plan("fact kernel NS4xMA==\n", role, state="absent")
