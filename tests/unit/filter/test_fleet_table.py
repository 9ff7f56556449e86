# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of pools at the end of a run."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.filter.fleet_table import fleet_table
from ansible_collections.hwaccel.gpu.plugins.filter.gate_summary import gate_summary

#: A pool that has passed a gate.
ROW: dict[str, t.Any] = {
    "pool": "training",
    "nodes": 8,
    "expected": 64,
    "seen": 64,
    "passed": 8,
    "failed": 0,
    "settled": 0,
    "kernels": [],
    "drivers": [],
    "simulated": 0,
}


def test_the_table_counts_proofs_where_nodes_were_validated() -> None:
    devices = {"gate": "devices", "pools": [ROW, ROW | {"pool": "off"}]}
    validation = {"gate": "validation", "pools": [ROW | {"passed": 5, "unproven": 2, "failed": 1}]}
    header, _rule, off, training = fleet_table(gate_summary([devices, validation]))
    place = header.index("proofs")
    assert training[place:].startswith("5 proven, 2 unproven, 1 failed")
    assert off[place:].strip() == ""
    assert "proofs" not in fleet_table(gate_summary([devices]))[0]


def test_nodes_that_failed_early_stay_in_the_table() -> None:
    """The devices gate evaluates seven nodes of one pool, and none of another pool whose only node has failed."""

    def row(pool: str, nodes: int, passed: int, seen: int) -> dict[str, t.Any]:
        more = {"simulated": 1, "settled": seen, "kernels": ["6.8"], "drivers": []}
        return {"pool": pool, "nodes": nodes, "expected": 8 * nodes, "seen": seen, "passed": passed, **more}

    features = {"gate": "features", "pools": [row("edge", 1, 1, 0), row("off", 2, 2, 0), row("training", 8, 8, 0)]}
    driver = {
        "gate": "driver",
        "pools": [row("edge", 1, 0, 0), row("training", 8, 7, 0)],
        "failed_nodes": ["edge-0", "training-3"],
    }
    devices = {"gate": "devices", "pools": [row("training", 7, 7, 56)]}
    found = {pool["pool"]: pool for pool in gate_summary([features, driver, devices])["pools"]}
    assert [(pool["nodes"], pool["expected"], pool["seen"]) for pool in found.values()] == [
        (1, 8, 0),
        (2, 16, 0),
        (8, 64, 56),
    ]
    assert found["training"]["gates"] == ["features", "driver 7/8", "devices 7/8"]
    assert found["edge"]["gates"] == ["features", "driver 0/1", "devices 0/1"]
    assert found["off"]["gates"] == ["features"]
    assert [pool["settled"] for pool in found.values()] == [0, 0, 56]
    assert fleet_table({"pools": [found["training"]]})[2].endswith(" 1 simulated")


def test_exporters_are_counted_on_nodes_that_can_have_one() -> None:
    """One node of each pool has no driver. Boards have no exporter, and one exporter of the other pools has failed."""

    def row(pool: str, nodes: int, passed: int, seen: int) -> dict[str, t.Any]:
        return {
            "pool": pool,
            "nodes": nodes,
            "expected": 8 * nodes,
            "seen": seen,
            "passed": passed,
            "simulated": 0,
            "settled": 0,
            "kernels": [],
            "drivers": [],
        }

    driver = {"gate": "driver", "pools": [row("boards", 4, 3, 0), row("training", 8, 7, 0), row("bad", 1, 0, 0)]}
    devices = {"gate": "devices", "pools": [row("boards", 3, 3, 24), row("training", 7, 7, 56)]}
    gates = [driver, devices, {"gate": "exporters", "pools": [row("training", 6, 5, 48)]}]
    found = {pool["pool"]: pool for pool in gate_summary(gates)["pools"]}
    assert {name: pool["gates"] for name, pool in found.items()} == {
        "boards": ["driver 3/4", "devices 3/4"],
        "training": ["driver 7/8", "devices 7/8", "exporters 5/6"],
        "bad": ["driver 0/1", "devices 0/1"],
    }
    assert {name: pool["seen"] for name, pool in found.items()} == {"boards": 24, "training": 56, "bad": 0}
    validation = {"gate": "validation", "pools": [row("training", 7, 7, 56) | {"unproven": 0, "failed": 0}]}
    (training,) = [pool for pool in gate_summary([*gates, validation])["pools"] if pool["pool"] == "training"]
    assert training["gates"] == ["driver 7/8", "devices 7/8", "exporters 5/6", "validation 7/8"]
