# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""K3s on a Docker that is there: what it needs, what it is given, and that a node keeps its engine."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Host, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import configuration, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.plan import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.request import request
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s import test_plan as machines

DOCKER = {**machines.SETTINGS, "engine": "docker"}


def texts(host: Host, settings: dict[str, t.Any]) -> str:
    return " ".join(one["text"] for one in plan(host, settings)["faults"])


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        (Unit(), "Docker does not run (cluster_k3s_engine): it is not installed"),
        (Unit(loaded=True), "Docker does not run (cluster_k3s_engine): unit docker is not active"),
        (Unit(loaded=True, active=True), ""),
    ],
)
def test_docker_has_to_run_before_k3s_is_started(unit: Unit, told: str) -> None:
    assert "docker" in request(DOCKER).units
    host = dataclasses.replace(machines.BARE, units={"docker": unit})
    found = texts(host, DOCKER)
    assert (told in found) if told else ("Docker" not in found)
    assert "Docker" not in texts(host, machines.SETTINGS)


def test_runtime_classes_of_k3s_are_left_out_as_docker_knows_none_of_their_handlers() -> None:
    assert "runtimes" not in configuration.settings_of({**machines.SETTINGS, "board_labels": {}})["disable"]
    made = configuration.settings_of({**DOCKER, "disable": ["traefik"], "board_labels": {}})
    assert (made["docker"], made["disable"]) == (True, ["traefik", "runtimes"])
    assert configuration.settings_of({**DOCKER, "disable": ["runtimes"], "board_labels": {}})["disable"] == ["runtimes"]


@pytest.mark.parametrize("role", ["server", "agent"])
@pytest.mark.parametrize(("runs", "wanted"), [("docker", "containerd"), ("containerd", "docker")])
def test_a_node_keeps_its_engine(role: str, runs: str, wanted: str) -> None:
    host = machines.member(role)
    text = host.text(places.CONFIGURATION) + ("docker: true\n" if runs == "docker" else "")
    host = dataclasses.replace(
        host,
        files={**host.files, places.CONFIGURATION: File(places.CONFIGURATION, text, "0600")},
        units={**host.units, "docker": Unit(loaded=True, active=True)},
    )
    assert "the node runs on" not in texts(host, {**machines.SETTINGS, "role": role, "engine": runs})
    told = texts(host, {**machines.SETTINGS, "role": role, "engine": wanted})
    assert f"the node runs on {'Docker' if runs == 'docker' else 'containerd'}" in told
