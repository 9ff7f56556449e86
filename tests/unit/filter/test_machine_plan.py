# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that compute for a role on machines: roles that they do not know, and looks that cannot be read."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.machine_plan import machine_plan
from ansible_collections.hwaccel.gpu.plugins.filter.machine_verdict import machine_verdict


@pytest.mark.parametrize(
    ("call", "known"),
    [
        (lambda: machine_plan("", "chrony", {}), "dns_pxe, load_balancer, node_runtime"),
        (lambda: machine_plan("", "chrony", state="absent"), "dns_pxe, load_balancer, node_runtime"),
        (lambda: machine_verdict("", "chrony", {}, {}), "dns_pxe, load_balancer, node_runtime"),
    ],
)
def test_an_unknown_role_is_refused_with_those_that_are_known(call: t.Callable[[], t.Any], known: str) -> None:
    with pytest.raises(AnsibleFilterError, match=rf"does not support role .*: set one of {known}$"):
        call()


@pytest.mark.parametrize("role", ["dns_pxe", "load_balancer", "node_runtime"])
def test_a_look_that_did_not_come_to_its_end_is_refused(role: str) -> None:
    with pytest.raises(AnsibleFilterError, match=r"machine_plan cannot read .*ended before its output was complete"):
        machine_plan("fact kernel NS4xMA==\n", role, state="absent")
