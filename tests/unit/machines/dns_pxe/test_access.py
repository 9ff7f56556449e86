# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot server lets in where it has a firewall, and which collections it needs for that."""

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


def opened(made: dict[str, t.Any], *, is_open: bool = True) -> list[tuple[int, str, str]]:
    return [(one["port"], one["protocol"], one["source"]) for one in made["firewall"] if one["open"] is is_open]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, SERVED),
        ({"dhcp": False, "pxe": False}, SERVED[:2]),
        ({"dns": False, "pxe": False}, SERVED[4:]),
        ({"firewall": False}, []),
    ],
)
def test_a_firewall_that_runs_lets_in_what_is_served_and_no_more(
    changed: dict[str, t.Any], expected: list[tuple[int, str, str]]
) -> None:
    made = planned(settings(**changed), host(firewalls="firewalld"))
    assert opened(made) == expected
    assert {bool(one["rule"]) for one in made["firewall"] if one["source"]} <= {True}
    assert planned(settings(**changed))["firewall"] == [], "none runs"


def test_what_was_opened_is_recorded_before_and_closed_once_it_is_not_served_any_more() -> None:
    kept = planned(seen=host(firewalls="ufw"))["record"]
    assert len(json.loads(kept)["openings"]) == len(SERVED)
    given = settings(dhcp=False, pxe=False)
    seen, found = after(given)
    seen = dataclasses.replace(seen, firewalls=("ufw",))
    seen.files[record.path(plan.ROLE)] = File(record.path(plan.ROLE), kept)
    made = plan.plan(seen, given, found)
    assert (opened(made), opened(made, is_open=False), made["record"]) == (SERVED[:2], SERVED[2:], "")
    assert opened(plan.restored(seen), is_open=False) == SERVED


def test_what_selinux_is_set_by_is_installed_where_it_is() -> None:
    for state, expected in (
        ("Enforcing", ["python3-policycoreutils"]),
        ("Permissive", ["python3-policycoreutils"]),
        ("Disabled", []),
    ):
        made = planned(seen=host(packages="", os_release='ID="rhel"\nID_LIKE="fedora"\n', selinux=state))
        assert (made["faults"], [name for name in made["packages"] if "policycoreutils" in name]) == ([], expected)


def test_rules_of_nftables_are_somebody_elses_and_told() -> None:
    assert any(
        "make sure that they allow 53/udp from 10.77.0.0/24, 53/tcp" in line
        for line in planned(seen=host(firewalls="nftables"))["messages"]
    )


@pytest.mark.parametrize(
    ("seen", "installed", "expected"),
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
def test_collections_that_are_missing_are_named_before_anything_is_touched(
    seen: dict[str, str], installed: list[str], expected: list[str]
) -> None:
    found = faults(settings(collections=installed), host(**seen))
    assert [fault.partition("(")[2].partition(")")[0] for fault in found] == expected
    assert all("requirements-metal.yml" in fault for fault in found)
    without = faults(settings(collections=installed, firewall=False), host(firewalls=seen.get("firewalls", "")))
    assert without == [], "nothing has to be opened"
