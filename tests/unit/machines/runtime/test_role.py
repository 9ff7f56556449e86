# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of the role that can be tested without a machine."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.unit.programs import environment

ROLES = pathlib.Path(__file__).resolve().parents[4] / "roles"
TASKS, SHARED = ROLES / "node_runtime" / "tasks", ROLES / "machine" / "tasks"


def copies(tasks: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    found = [task["ansible.builtin.copy"] for task in tasks if "content" in task.get("ansible.builtin.copy", {})]
    return found + [copy for task in tasks for copy in copies(task.get("block", []))]


def played(folder: pathlib.Path, tasks: list[dict[str, t.Any]], plan: dict[str, t.Any], *arguments: str) -> str:
    """The output of a play with these tasks on this machine, with the plan of the role."""
    play = [
        {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "vars_files": ["plan.json"],
            "tasks": tasks,
        }
    ]
    (folder / "plan.json").write_text(json.dumps({"__machine_looked": {"plan": plan}}), encoding="utf-8")
    (folder / "play.yml").write_text(yaml.safe_dump(play), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "ansible",
        "playbook",
        "-i",
        "localhost,",
        "-e",
        f"ansible_python_interpreter={sys.executable}",
        "play.yml",
        *arguments,
    ]
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_texts_that_look_like_data_are_written_unchanged(tmp_path: pathlib.Path) -> None:
    """ansible-core 2.16 converts a text that looks like a dictionary to one, which the module copy then writes in another form."""
    contents = [
        copy["content"]
        for path in sorted(SHARED.glob("*.yml"))
        for copy in copies(yaml.safe_load(path.read_text(encoding="utf-8")))
    ]
    planned = [content for content in contents if "__machine_" in content]
    assert len(planned) > 2
    text = '{"z": true,   "a": 9007199254740993}\n'
    plan = {"contents": {"/f": text}, "staged": {"/f": text}, "record": text}
    tasks = [
        {"ansible.builtin.copy": {"content": content, "dest": f"{tmp_path}/{number}"}}
        for number, content in enumerate(planned)
    ]
    for task in tasks:
        item = "/f" if "staged" in task["ansible.builtin.copy"]["content"] else {"path": "/f"}
        task["vars"] = {"item": item, "__machine_record": "{{ __machine_looked.plan.record | string }}"}
    played(tmp_path, tasks, plan)
    assert [(tmp_path / str(number)).read_text(encoding="utf-8") for number in range(len(planned))] == [text] * len(
        planned
    )


def test_a_record_reaches_the_shared_tasks_as_text() -> None:
    """Otherwise ansible-core 2.16 converts it to a dictionary."""
    lines = [
        line.strip()
        for path in sorted(ROLES.glob("*/tasks/*.yml"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith("__machine_record:")
    ]
    assert len(lines) > 5
    assert [line for line in lines if not line.endswith('| string }}"')] == []


def included(path: pathlib.Path) -> list[tuple[str, str]]:
    """What each task of a file includes, and the record that it passes."""
    tasks: list[dict[str, t.Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        (
            task.get("ansible.builtin.include_role", {}).get("tasks_from", "")
            or task.get("ansible.builtin.include_tasks", task.get("ansible.builtin.import_tasks", "")),
            task.get("vars", {}).get("__machine_record", ""),
        )
        for task in tasks
    ]


def test_teardown_records_pending_restarts_before_it_restores_files_and_their_completion_next() -> None:
    shared, own = included(SHARED / "restore.yml"), included(TASKS / "teardown.yml")
    recorded = shared.index(("record.yml", "{{ __machine_looked.plan.record | string }}"))
    assert recorded < shared.index(("write.yml", ""))
    assert own[0] == ("restore", "")
    assert own[1:3] == [("restart.yml", ""), ("record", "{{ __machine_looked.plan.restarted | string }}")]


@pytest.mark.parametrize("manager", ["apt", "dnf"])
def test_check_mode_does_not_query_packages_of_a_repository_that_was_not_written(
    tmp_path: pathlib.Path, manager: str
) -> None:
    tasks = yaml.safe_load((TASKS / f"repository_{manager}.yml").read_text(encoding="utf-8"))
    names = {"toolkit": {"names": ["hwaccel-does-not-exist"]}}
    output = played(tmp_path, [task for task in tasks if "nstall" in task["name"]], names, "--check")
    assert "hwaccel-does-not-exist" in output
    assert "changed=1" in output
