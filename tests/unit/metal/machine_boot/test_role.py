# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of the role, from a machine's variables to what its BMC is told."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.metal.machine_boot.role import boot


@pytest.mark.parametrize(
    ("variables", "nodes"),
    [
        ({}, ["worker-1"]), ({"hwaccel_domain": "ocp.test"}, ["worker-1", "worker-1.ocp.test"]),
        ({"hwaccel_node_name": "gpu-7", "hwaccel_domain": "ocp.test"}, ["gpu-7", "gpu-7.ocp.test"]),
    ],
)  # fmt: skip
def test_a_machine_is_known_as_a_node_by_the_name_of_its_node(tmp_path: pathlib.Path, variables: dict[str, t.Any], nodes: list[str]) -> None:
    found = boot(tmp_path, entry="preflight", **variables)
    assert found.asked["nodes"] == nodes
    assert found.asked["name"] == "worker-1"


def test_a_machine_that_runs_a_node_of_another_name_keeps_its_power(tmp_path: pathlib.Path) -> None:
    nodes = {"known": True, "names": ["gpu-7"]}
    found = boot(tmp_path, power="on", hwaccel_node_name="gpu-7", machine_boot_power="cycle", machine_boot_nodes=nodes)
    assert "it runs a node of cluster ocp" in found.outcome["text"]
    assert (found.outcome["failed"], found.told) == (True, [])
