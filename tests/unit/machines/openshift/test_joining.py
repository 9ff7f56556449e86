# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which machines may be added to a cluster, or replace others, from an inventory and from what its boot servers know."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.filter.machine_inventory import machine_inventory

GROUPS = {
    "gpu_clusters": ["ocp", "two"],
    "boot_servers": ["boot", "other"],
    "bootstrap": ["b0"],
    "control_plane": ["m0"],
    "workers": ["w0", "w1", "w9"],
}


def joining(boot: dict[str, t.Any] | None = None, **machines: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    """boot: variables of the boot server of the cluster."""
    hostvars: dict[str, dict[str, t.Any]] = {
        "ocp": {"hwaccel_domain": "ocp.example.com"},
        "two": {},
        "boot": boot or {},
        "other": {"hwaccel_cluster": "two", "dns_pxe_install_again": ["w0"], "dns_pxe_installs": []},
        **{name: {"hwaccel_cluster": "ocp"} for name in ("b0", "m0", "w0", "w1")},
        "w9": {"hwaccel_cluster": "two", "hwaccel_install": True},
    }
    for name, more in machines.items():
        hostvars[name] = {**hostvars[name], **more}
    return t.cast("list[dict[str, t.Any]]", machine_inventory(GROUPS, "cluster_openshift", hostvars, "ocp")["joining"])


def hosts(found: list[dict[str, t.Any]]) -> list[tuple[str, bool]]:
    return [(one["host"], one["again"]) for one in found]


def test_a_machine_has_the_name_of_its_node() -> None:
    found = joining(w1={"hwaccel_install": True, "hwaccel_node_name": "gpu-1"})
    text = "add gpu-1.ocp.example.com to the cluster"
    assert found == [{"host": "w1", "node": "gpu-1.ocp.example.com", "again": False, "text": text}]


@pytest.mark.parametrize(
    ("machines", "expected"),
    [
        ({}, []),
        ({"w1": {"hwaccel_install": "yes"}, "m0": {"hwaccel_install": True}}, [("m0", False), ("w1", False)]),
        ({"w1": {"hwaccel_install": "false"}}, []),
        ({"b0": {"hwaccel_install": True}}, []),
        ({"w1": {"hwaccel_install": True, "hwaccel_retired": True}}, []),
    ],
)
def test_only_machines_with_consent_are_installed(
    machines: dict[str, dict[str, t.Any]], expected: list[tuple[str, bool]]
) -> None:
    assert hosts(joining(**machines)) == expected


@pytest.mark.parametrize("names", [["w1"], "w1", '["w1"]', ["ocp/w1"], "m1, ocp/w1"])
def test_a_machine_that_is_named_needs_no_other_consent(names: t.Any) -> None:
    assert hosts(joining({"dns_pxe_install_again": names})) == [("w1", True)]


@pytest.mark.parametrize("names", [None, "", ["two/w1"], 7, "[w1"])
def test_what_names_no_machine_of_the_cluster_is_left_to_the_boot_server(names: t.Any) -> None:
    assert joining({"dns_pxe_install_again": names}) == []


def test_a_machine_that_its_boot_server_keeps_is_not_added() -> None:
    """It has been a node before, and its Node was deleted."""
    consent = {"hwaccel_install": True}
    assert hosts(joining({"dns_pxe_installs": ["ocp/w1", "ocp/b0"]}, w0=consent, w1=consent)) == [("w1", False)]
    assert joining({"dns_pxe_installs": []}, w0=consent, w1=consent) == []
