# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every stage is in each playbook that runs the stages."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs.table import STAGES

PLAYBOOKS = pathlib.Path(__file__).resolve().parents[3] / "playbooks"


def text(name: str) -> str:
    return (PLAYBOOKS / f"{name}.yml").read_text(encoding="utf-8")


def test_site_runs_the_stages_in_the_known_order() -> None:
    known = yaml.safe_load(text("vars/cluster"))["hwaccel_known_stages"]
    assert known == list(STAGES)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_is_planned_and_run_and_can_stop_the_run(stage: str) -> None:
    assert f"name: hwaccel.gpu.{stage}\n        tasks_from: variables" in text("plan")
    assert f"name: hwaccel.gpu.{stage}\n" in text("stages")
    assert f"{stage}_stage | default({{}})" in yaml.safe_load(text("vars/cluster"))["hwaccel_stopped"]


@pytest.mark.parametrize("stage", STAGES[1:])
def test_a_stage_excludes_nodes_that_failed_an_earlier_one(stage: str) -> None:
    assert f'{stage}_excluded_nodes: "{{{{ hwaccel_left_out }}}}"' in text("stages")


def test_teardown_removes_all_stages() -> None:
    tasks = yaml.safe_load(text("tasks/teardown"))
    roles = [task["loop"] for task in tasks if task.get("loop_control", {}).get("loop_var") == "hwaccel_teardown_role"]
    assert [sorted(names) for names in roles] == [sorted(STAGES)]
