# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One task observes a machine: what it asks of it how often, what it says of one that does not answer, and that a plan is never printed."""

from __future__ import annotations

import collections.abc as c
import pathlib
import sys
import types
import typing as t

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.hwaccel.gpu.plugins.action import machine_look
from ansible_collections.hwaccel.gpu.plugins.action.machine_look import ActionModule
from ansible_collections.hwaccel.gpu.tests.unit.action import plays

#: As the tasks of the role `machine` call it, which has the plan in a variable and its reason where it has none.
TASKS = """
- name: Look
  hwaccel.gpu.machine_look:
    role: load_balancer
    state: absent
  register: __machine_looked
  check_mode: false
  no_log: true
- name: Tell
  ansible.builtin.debug:
    msg: >-
      packages {{ __machine_looked.plan.packages }}, with {{ ansible_facts.discovered_interpreter_python | default('the one that is set') }}
"""


class Look(ActionModule):
    """Without a machine. answers: what look.py ends with, one after the other; an error is that of the connection."""

    def __init__(self, answers: c.Sequence[dict[str, t.Any] | AnsibleConnectionFailure], pings: bool = True) -> None:
        self._answers, self._pings, self.asked, self.more = list(answers), pings, [], {}
        self._templar = types.SimpleNamespace(template=lambda value: value)

    def validate_argument_spec(self, argument_spec: t.Any) -> tuple[None, dict[str, t.Any]]:
        return None, {"settings": {}, "found": None, "state": "present", "observe": True, **self.args}

    def _pinged(self) -> dict[str, t.Any]:
        self.asked.append("ping")
        if not self._pings:
            raise AnsibleConnectionFailure("it is off")
        return {}

    def _run_script(self, request: str) -> dict[str, t.Any]:
        self.asked.append("look")
        answer = self._answers.pop(0)
        if isinstance(answer, AnsibleConnectionFailure):
            raise answer
        return answer

    def look(self, monkeypatch: pytest.MonkeyPatch, before: t.Any = None, **args: t.Any) -> dict[str, t.Any]:
        monkeypatch.setattr(machine_look.ActionBase, "run", lambda *_given: {})
        monkeypatch.setattr(machine_look.time, "sleep", lambda seconds: seconds and self.asked.append("wait"))
        monkeypatch.setattr(machine_look._looking, "request", lambda *_given: "{}")
        monkeypatch.setattr(machine_look._looking, "plan", lambda printed, *_given: {"actions": ACTIONS[printed]})
        self.args = {"role": "load_balancer", "awaits": False, **args}
        return self.run(task_vars={"inventory_hostname": "lb1", "__machine_looked": before, **self.more})


ACTIONS = {"loaded": [], "stale": [{"unit": "haproxy", "why": "haproxy.cfg is newer"}]}
LOADED, STALE = {"rc": 0, "stdout": "loaded"}, {"rc": 0, "stdout": "stale"}
LOST = AnsibleConnectionFailure("censored")


def test_a_machine_is_reached_first_and_only_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Look([LOADED, STALE])
    first = look.look(monkeypatch)
    assert (first["reached"], first["plan"], first["printed"]) == (True, {"actions": []}, "loaded")
    look.look(monkeypatch, first)
    assert look.asked == ["ping", "look", "look"]


def test_a_machine_that_is_only_to_be_reached_is_not_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Look([])
    assert look.look(monkeypatch, observe=False) == {"changed": False, "reached": True}
    assert look.asked == ["ping"]


def test_one_that_never_answers_is_away_and_one_that_is_lost_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    off = Look([], pings=False).look(monkeypatch)
    assert off["failed"] and off["away"] and not off["reached"]
    assert off["msg"].startswith("lb1 cannot be reached: it is off. Next: ")
    again = Look([], pings=False)
    assert (again.look(monkeypatch, off), again.asked) == (off, []), "the next role waits for no second timeout"
    again.more["hwaccel_awaited"] = "lb1 cannot be reached"
    assert (again.look(monkeypatch, off)["away"], again.asked) == (True, ["ping"]), "it may be installed by now"
    lost = Look([LOST], pings=False).look(monkeypatch, {"reached": True})
    assert lost["failed"] and "away" not in lost
    assert lost["msg"].startswith("lb1 cannot be reached any more: it is off. Next: "), (
        "the reason of a task that is logged"
    )
    back = Look([LOST]).look(monkeypatch, {"reached": True})
    assert back["msg"].startswith("lb1 cannot be reached any more: censored. ")


def test_services_are_awaited_until_they_run_with_the_files_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Look([STALE, STALE, LOADED])
    assert look.look(monkeypatch, {"reached": True}, awaits=True)["plan"] == {"actions": []}
    assert look.asked == ["look", "wait", "look", "wait", "look"]
    never = Look([STALE] * 21).look(monkeypatch, {"reached": True}, awaits=True)
    assert never["failed"] and "plan" not in never
    assert "haproxy on lb1 does not run with the files on disk: haproxy.cfg is newer." in never["msg"]
    assert "journalctl --unit haproxy" in never["msg"]


def test_a_script_that_fails_is_told_with_the_end_of_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"rc": 127, "stdout": "", "stderr": "x" * 600 + " python9: not found\n", "failed": True}
    told = Look([failed]).look(monkeypatch, {"reached": True})
    assert told["failed"]
    assert "lb1 could not be observed: x" in told["msg"] and "python9: not found. Next: run /" in told["msg"]
    assert len(told["msg"]) < 800


@pytest.mark.parametrize(
    ("python", "pipelined"), [(sys.executable, True), (sys.executable, False), ("auto_silent", False)]
)
def test_the_plan_is_computed_by_the_python_of_the_machine_and_not_printed(
    tmp_path: pathlib.Path, python: str, pipelined: bool
) -> None:
    collections = plays.whole_collection(tmp_path / "collections")
    (tmp_path / "bin").mkdir()
    for minor in range(9, 16):
        (tmp_path / "bin" / f"python3.{minor}").symlink_to(sys.executable)
    environ = {
        "ANSIBLE_PYTHON_INTERPRETER": python,
        "ANSIBLE_PIPELINING": str(pipelined),
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
    }
    code, output = plays.play(collections, tmp_path, TASKS, "-vvv", "--check", environ=environ)
    assert code == 0, output
    told = "the one that is set" if python == sys.executable else "/"
    assert f"packages [], with {told}" in output, output
    assert '"plan"' not in output and '"printed"' not in output
    assert ("look.py" in output.partition("TASK [Tell]")[0]) != pipelined, "nothing is copied to the machine"


def test_a_python_that_is_not_there_is_told_with_what_to_do(tmp_path: pathlib.Path) -> None:
    collections = plays.whole_collection(tmp_path / "collections")
    tasks = TASKS.replace("  no_log: true\n", "")
    code, output = plays.play(collections, tmp_path, tasks, environ={"ANSIBLE_PYTHON_INTERPRETER": "/opt/none/python"})
    text = " ".join(output.split())
    assert code == 2, output
    assert "alpha could not be observed: " in text and "/opt/none/python" in text, output
    assert "Next: run /opt/none/python --version on that machine" in text, output
