# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Openings in the firewall of a boot server, and the collections that they need."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.boot_server import (
    after,
    faults,
    host,
    planned,
    settings,
)

NETWORK = "10.77.0.0/24"
SERVED = [(53, "udp", NETWORK), (53, "tcp", NETWORK), (69, "udp", NETWORK), (8080, "tcp", NETWORK), (67, "udp", "")]


def opened(result: dict[str, t.Any], *, is_open: bool = True) -> list[tuple[int, str, str]]:
    return [(one["port"], one["protocol"], one["source"]) for one in result["firewall"] if one["open"] is is_open]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, SERVED),
        ({"dhcp": False, "pxe": False}, SERVED[:2]),
        ({"dns": False, "pxe": False}, SERVED[4:]),
        ({"firewall": False}, []),
    ],
)
def test_a_running_firewall_is_opened_for_served_ports_only(
    changed: dict[str, t.Any], expected: list[tuple[int, str, str]]
) -> None:
    result = planned(settings(**changed), host(firewalls="firewalld"))
    assert opened(result) == expected
    assert {bool(one["rule"]) for one in result["firewall"] if one["source"]} <= {True}
    assert planned(settings(**changed))["firewall"] == [], "there is no running firewall"


def test_openings_are_recorded_first_and_closed_when_they_are_no_longer_served() -> None:
    kept = planned(observed=host(firewalls="ufw"))["record"]
    assert len(json.loads(kept)["openings"]) == len(SERVED)
    given = settings(dhcp=False, pxe=False)
    observed, found = after(given)
    observed = dataclasses.replace(observed, firewalls=("ufw",))
    observed.files[record.path(plan.ROLE)] = File(record.path(plan.ROLE), kept)
    result = plan.plan(observed, given, found)
    assert (opened(result), opened(result, is_open=False), result["record"]) == (SERVED[:2], SERVED[2:], "")
    assert opened(plan.restored(observed), is_open=False) == SERVED


def test_libraries_for_selinux_are_installed_where_selinux_is_enabled() -> None:
    for state, expected in (
        ("Enforcing", ["python3-policycoreutils"]),
        ("Permissive", ["python3-policycoreutils"]),
        ("Disabled", []),
    ):
        result = planned(observed=host(packages="", os_release='ID="rhel"\nID_LIKE="fedora"\n', selinux=state))
        assert (result["faults"], [name for name in result["packages"] if "policycoreutils" in name]) == ([], expected)


def test_rules_of_nftables_are_not_changed_and_required_ports_are_reported() -> None:
    assert any(
        "make sure that they allow 53/udp from 10.77.0.0/24, 53/tcp" in line
        for line in planned(observed=host(firewalls="nftables"))["messages"]
    )


@pytest.mark.parametrize(
    ("observed", "installed", "expected"),
    [
        ({"firewalls": "firewalld"}, ["community.general"], ["collection ansible.posix"]),
        ({"firewalls": "ufw"}, ["ansible.posix"], ["collection community.general"]),
        ({"selinux": "Enforcing"}, ["ansible.posix"], ["collection community.general"]),
        (
            {"selinux": "Enforcing", "firewalls": "firewalld"},
            [],
            ["collection ansible.posix", "collection community.general"],
        ),
        ({"selinux": "Disabled", "firewalls": "nftables"}, [], []),
    ],
)
def test_missing_collections_are_reported_before_anything_is_changed(
    observed: dict[str, str], installed: list[str], expected: list[str]
) -> None:
    found = faults(settings(collections=installed), host(**observed))
    assert [fault.partition("(")[2].partition(")")[0] for fault in found] == expected
    assert all("requirements-metal.yml" in fault for fault in found)
    without = faults(settings(collections=installed, firewall=False), host(firewalls=observed.get("firewalls", "")))
    assert without == [], "no port has to be opened"
