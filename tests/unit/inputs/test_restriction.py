# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restricted run: nodes that it leaves out, names that do not exist, and objects that it may change."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs.restriction import Restriction

FLEET = {
    "pools": [{"name": "a"}, {"name": "b"}],
    "nodes": [{"name": "a-0", "pool": "a"}, {"name": "a-1", "pool": "a"}, {"name": "b-0", "pool": "b"}],
}


@pytest.mark.parametrize(
    ("pools", "nodes", "left_out"),
    [(("a",), (), ["b-0"]), ((), ("a-1", "b-0"), ["a-0"]), (("a",), ("a-1", "b-0"), ["a-0", "b-0"])],
)
def test_nodes_that_are_not_selected_are_left_out(
    pools: tuple[str, ...], nodes: tuple[str, ...], left_out: list[str]
) -> None:
    assert Restriction(pools, nodes).left_out(FLEET) == left_out


def test_names_that_the_cluster_does_not_have_are_faults() -> None:
    faults = [str(fault) for fault in Restriction(("a", "c"), ("a0", "zzz")).faults(FLEET)]
    assert len(faults) == 3
    for text, fault in zip(
        ("no pool c", "no node a0 (hwaccel_only_nodes): did you mean a-0?", "no node zzz"), faults, strict=True
    ):
        assert text in fault
    assert Restriction(("a",), ("b-0",)).faults(FLEET) == []


def body(name: str, pool: str = "") -> dict[str, t.Any]:
    labels = {names.DRIVER_POOL_LABEL: pool} if pool else {}
    return {"kind": "DaemonSet", "metadata": {"name": name, "namespace": "n", "labels": labels}}


def row(name: str, action: str) -> dict[str, t.Any]:
    return {"kind": "DaemonSet", "namespace": "n", "name": name, "action": action}


OBJECTS = [body("of-a", "a"), body("of-b", "b"), body("shared")]


@pytest.mark.parametrize(
    ("only", "rows", "named"),
    [
        (Restriction(("a",)), [row("of-a", "configured"), row("of-b", "unchanged"), row("shared", "kept")], ""),
        (Restriction(("a",)), [row("of-a", "created"), row("of-b", "reclaimed")], "DaemonSet of-b"),
        (Restriction(("a",)), [row("shared", "configured")], "DaemonSet shared"),
        (Restriction(("a",)), [row("gone", "deleted")], "DaemonSet gone"),
        (Restriction((), ("a-0",)), [row("of-a", "configured")], "DaemonSet of-a"),
        (Restriction(("a",), ("a-0",)), [row("of-a", "configured")], "DaemonSet of-a"),
    ],
)
def test_only_objects_of_the_pools_may_change(only: Restriction, rows: list[dict[str, t.Any]], named: str) -> None:
    refused = only.refused({"objects": rows}, OBJECTS)
    assert (f"others need: {named}. Next: run without {only.variables}" in refused) if named else refused == ""


def test_many_objects_are_counted() -> None:
    rows = [row(f"x-{number}", "created") for number in range(8)]
    assert "DaemonSet x-4 and 3 more. Next" in Restriction(("a",)).refused({"objects": rows}, OBJECTS)
