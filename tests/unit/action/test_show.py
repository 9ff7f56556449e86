# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shown lines, by real runs: ansible-playbook prints them unchanged, and ansible-runner (so AWX too) has them in its events."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import ansible_runner
import pytest
import yaml

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.tests.unit import programs

COLLECTIONS = pathlib.Path(next(iter(collection.__path__))).parents[2]
LINES = ["pool      nodes", "training  8", "", "KUBECONFIG=/tmp/kubeconfig"]
#: Text that an annotation or a message of a cluster may have, and the text that is shown.
RAW, SHOWN = "node \x1b]0;title\x07\x1b[1A\x1b[2Kready\u202e", "node ready"
TASK = {"hwaccel.gpu.show": {"lines": "{{ lines }}"}, "register": "shown"}


def play(**more: object) -> list[dict[str, object]]:
    checked = {"ansible.builtin.assert": {"that": ["shown is not changed"], "quiet": True}}
    return [
        {"hosts": "alpha", "gather_facts": False, "vars": {"lines": [*LINES, RAW]}, "tasks": [TASK | more, checked]}
    ]


@pytest.mark.parametrize("arguments", [(), ("--check", "--diff")])
def test_lines_can_be_copied_from_the_output(tmp_path: pathlib.Path, arguments: tuple[str, ...]) -> None:
    output = printed(tmp_path, play(), *arguments)
    assert "\n".join(["alpha:", *LINES, SHOWN, "ok: [alpha]"]) in output


def test_where_hosts_do_not_wait_for_each_other_lines_have_the_name_of_their_task(tmp_path: pathlib.Path) -> None:
    (only,) = play(name="Show the fleet")
    output = printed(tmp_path, [only | {"strategy": "free"}])
    assert "\n".join(["alpha, Show the fleet:", *LINES, SHOWN]) in output
    # The headline comes with the result.
    assert output.index(SHOWN) < output.index("TASK [Show the fleet]")


def test_with_no_log_nothing_is_shown(tmp_path: pathlib.Path) -> None:
    assert "KUBECONFIG" not in printed(tmp_path, play(no_log=True))


def printed(folder: pathlib.Path, plays: list[dict[str, object]], *arguments: str) -> str:
    (folder / "play.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
    environ = programs.environment(folder) | environment(folder)
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "alpha,", *arguments, "play.yml"]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(folder: pathlib.Path) -> dict[str, str]:
    return {
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
    }


def test_events_of_ansible_runner_contain_the_lines(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    run = ansible_runner.run(
        private_data_dir=str(tmp_path), playbook=play(), inventory="alpha", envvars=environment(tmp_path), quiet=True
    )
    assert run.rc == 0, run.stdout.read()
    shown = [event["stdout"] for event in run.events if "KUBECONFIG" in event["stdout"]]
    assert [text.splitlines() for text in shown] == [["alpha:", *LINES, SHOWN]]
