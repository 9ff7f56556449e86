# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of the inventory: how roles read them, and that all problems are reported at once."""

from __future__ import annotations

import ipaddress
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines

GOOD = {
    "name": "master-0",
    "cluster": "ocp",
    "role": "master",
    "address": "10.77.0.11",
    "mac": "52:54:00:77:00:11",
    "firmware": "bios",
    "install": True,
}


def other(number: int, **changed: t.Any) -> dict[str, t.Any]:
    return {
        **GOOD,
        "name": f"worker-{number}",
        "address": f"10.77.0.{20 + number}",
        "mac": f"52:54:00:77:00:{20 + number}",
        **changed,
    }


def faults(*given: t.Any, needs: tuple[str, ...] = ()) -> list[str]:
    return [str(fault) for fault in machines.read(list(given), "dns_pxe_machines", needs)[1]]


def test_a_machine_is_read_with_additional_keys_of_the_role() -> None:
    found, wrong = machines.read([{**GOOD, "mac": "52-54-00-77-00-AB"}], "dns_pxe_machines")
    assert wrong == []
    address = ipaddress.ip_address("10.77.0.11")
    assert found == [
        machines.Machine("master-0", "ocp", "master", address, "52:54:00:77:00:ab", "bios", "x86_64", {"install": True})
    ]


def test_an_ipv6_address_is_read() -> None:
    found, wrong = machines.read([{**GOOD, "address": "fd77::11"}], "dns_pxe_machines")
    assert (wrong, str(found[0].address)) == ([], "fd77::11")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((True, "true", "True", "yes", "on", "1", 1), True),
        ((False, "false", "False", "no", "off", "0", 0, "", None), False),
        (("maybe", "y", 2, []), None),
    ],
)
def test_a_boolean_can_be_text(values: tuple[t.Any, ...], expected: bool | None) -> None:
    assert [machines.truth(value) for value in values] == [expected] * len(values)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "Master_0"}, "its name Master_0 is not a DNS label"),
        ({"name": "m" * 64}, "is not a DNS label"),
        ({"name": "master-"}, "is not a DNS label"),
        ({"name": ""}, "machine (no name) has no name"),
        ({"address": "10.77.0.300"}, "its address 10.77.0.300 is not an IP address"),
        ({"address": "10.77.0.11/24"}, "is not an IP address"),
        ({"address": None}, "machine master-0 has no address"),
        ({"mac": "52:54:00:77:00"}, "is not the MAC address of a machine"),
        ({"mac": 525400770011}, "is not the MAC address of a machine"),
        ({"mac": "01:00:5e:00:00:01"}, "is not the MAC address of a machine"),
        ({"mac": "00:00:00:00:00:00"}, "is not the MAC address of a machine"),
        ({"firmware": "coreboot"}, "its firmware coreboot is unknown (known: bios, uefi)"),
        ({"architecture": "amd64"}, "its architecture amd64 is unknown (known: x86_64, aarch64)"),
        ({"role": "the worker"}, "is not the name of a role"),
    ],
)
def test_a_problem_of_a_machine_is_reported_with_location_and_next_step(
    changed: dict[str, t.Any], message: str
) -> None:
    (fault,) = faults(other(1), {**GOOD, **changed})
    assert message in fault
    assert "(dns_pxe_machines[1])" in fault
    assert "Next: " in fault


@pytest.mark.parametrize("key", ["name", "address", "mac"])
def test_two_machines_must_not_share_a_value(key: str) -> None:
    (fault,) = faults(GOOD, other(1, **{key: GOOD[key]}))
    assert f"2 machines have the {key} {GOOD[key]}" in fault


def test_machines_of_two_clusters_may_have_the_same_name() -> None:
    assert faults(GOOD, other(1, name="master-0", cluster="other")) == []


def test_a_mac_is_only_required_where_it_is_needed() -> None:
    without = {**GOOD, "mac": ""}
    assert faults(without) == []
    assert faults(without, other(1, mac=None)) == []
    assert faults(without, needs=("mac",)) == [
        "machine master-0 has no mac (dns_pxe_machines[0]). Next: set its mac (hwaccel_mac)"
    ]


def test_all_faults_are_reported_at_once() -> None:
    given = ["master-0", {**GOOD, "address": "x", "mac": "y"}, GOOD, other(1, mac=GOOD["mac"])]
    assert len(faults(*given)) == 4
    assert len(machines.read({"master-0": GOOD}, "dns_pxe_machines")[1]) == 1


@pytest.mark.parametrize(
    ("roles", "hosts", "problems"),
    [
        (("bootstrap", "worker"), ("a", "a"), 0),
        (("worker", "bootstrap"), ("a", "a"), 0),
        # One host is not two workers, and two hosts are not one machine.
        (("worker", "worker"), ("a", "a"), 3),
        (("bootstrap", "worker"), ("a", "b"), 3),
    ],
)
def test_a_bootstrap_machine_can_be_another_one_afterwards(
    roles: tuple[str, str], hosts: tuple[str, str], problems: int
) -> None:
    base = {"name": "m", "address": "10.0.0.9", "mac": "52:54:00:00:00:09"}
    found, faults = machines.read(
        [{**base, "role": role, "host": host} for role, host in zip(roles, hosts, strict=True)], "x"
    )
    assert len(found) == 2 and len(faults) == problems
