# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A load balancer that has served a cluster gets the bootstrap machine of the next one under its name: Ansible evaluates the condition of the phase."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.filter.machine_inventory import machine_inventory
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import desired
from ansible_collections.hwaccel.gpu.tests.unit.action import plays

PHASE = plays.ROOT / "playbooks" / "tasks" / "phases" / "load_balancer.yml"
#: Plans of the cluster: its files are created; it goes on with those that are there; nothing is left to be done.
CREATED, GOES_ON, RESTS = ([{"do": name} for name in names] for names in (("files", "init"), ("init",), ()))
#: As HAProxy was left by the previous cluster, with its bootstrap machine taken out.
PRESENT = "backend ocp-api\n  server master-0 10.0.0.11:6443\n"


@pytest.mark.parametrize(
    ("known", "member"),
    [
        ({}, False),
        ({"cluster_plan": {"steps": CREATED}}, True),
        # Silence says nothing of a cluster whose machines have its files.
        ({"cluster_plan": {"steps": GOES_ON}}, False),
        ({"cluster_plan": {"steps": CREATED}, "cluster_openshift_bootstrap": {"complete": True}}, False),
    ],
)
def test_the_bootstrap_machine_is_a_member_again_if_files_are_created(known: dict[str, t.Any], member: bool) -> None:
    groups = {
        "gpu_clusters": ["ocp"],
        "load_balancers": ["lb"],
        "bootstrap": ["bootstrap-0"],
        "control_plane": ["master-0"],
    }
    hostvars = {
        "ocp": {"hwaccel_installer": "openshift", **known},
        "lb": {},
        "bootstrap-0": {"hwaccel_address": "10.0.0.10"},
        "master-0": {"hwaccel_address": "10.0.0.11"},
    }
    found = machine_inventory(groups, "load_balancer", hostvars, "lb")
    defaults = yaml.safe_load((plays.ROOT / "roles" / "load_balancer" / "defaults" / "main.yml").read_text("utf-8"))
    settings = {name.removeprefix("load_balancer_"): value for name, value in defaults.items()}
    plan = desired.desired({**settings, "clusters": found["clusters"], "machines": found["machines"]}, PRESENT)
    (api,) = (service for service in plan.services if service.name == "ocp-api")
    assert ("bootstrap-0" in [one.name for one in api.members]) == member


@pytest.mark.parametrize(("steps", "runs"), [(CREATED, True), (GOES_ON, False), (RESTS, False)])
def test_the_role_runs_again_after_its_preflight_if_files_are_created(
    tmp_path: pathlib.Path, steps: list[dict[str, str]], runs: bool
) -> None:
    collect, role = yaml.safe_load(PHASE.read_text(encoding="utf-8"))
    assert collect["when"] == role["when"]
    task = {
        "ansible.builtin.copy": {"content": "", "dest": f"{tmp_path}/runs"},
        "vars": {
            "hwaccel_machines_part": "main",
            "hwaccel_phase": "load_balancer",
            "ansible_facts": {"load_balancer_outcome": {"state": "done"}},
            # Of what it was before.
            "__load_balancer_idle": True,
        },
        "when": ["inventory_hostname == 'lb'", role["when"]],
    }
    hosts = {
        "gpu_clusters": {"hosts": {"ocp": {"cluster_plan": {"steps": steps}}, "elsewhere": {}}},
        "load_balancers": {"hosts": {"lb": {}}},
    }
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(hosts))
    collections = plays.whole_collection(tmp_path / "collections")
    code, output = plays.play(collections, tmp_path, yaml.safe_dump([task]), hosts="hosts.yml")
    assert code == 0, output[-3000:]
    assert (tmp_path / "runs").exists() == runs
