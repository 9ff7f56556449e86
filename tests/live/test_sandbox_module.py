# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module and the role as users run them: check mode, first and second run, refused options, removal."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import SMALL_FLEET, find_programs
from ansible_collections.hwaccel.gpu.tests.live.support.site import COLLECTIONS

ROLE_FILES = pathlib.Path(__file__).parents[2] / "roles" / "sandbox" / "files"
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME")


@dataclasses.dataclass(frozen=True)
class Answer:
    result: dict[str, t.Any]
    text: str


@dataclasses.dataclass(frozen=True)
class Caller:
    """Runs the module and the role, each with its own sandbox."""

    folder: pathlib.Path
    components: str

    def module(self, *switches: str, **options: t.Any) -> Answer:
        arguments = {"name": "module", "sources": str(ROLE_FILES), "components": self.components, **options}
        text = self._run("ansible", "localhost", "-m", "hwaccel.gpu.sandbox", "-a", json.dumps(arguments), *switches)
        result, _end = json.JSONDecoder().raw_decode(text, text.index("{", text.index("localhost | ")))
        return Answer(result, text)

    def role(self, entry: str = "main", **variables: t.Any) -> str:
        shown = " ".join(
            f"{name}={{{{ sandbox_{name} | default('none') }}}}"
            for name in ("kubeconfig", "audit_log", "preflight_faults")
        )
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "tasks": [
                {
                    "name": "Run the role",
                    "ansible.builtin.include_role": {"name": "hwaccel.gpu.sandbox", "tasks_from": entry},
                },
                {"name": "Show", "ansible.builtin.debug": {"msg": shown}},
            ],
            "vars": {"sandbox_name": "role", "sandbox_components": self.components, **variables},
        }
        path = self.folder / "play.yml"
        path.write_text(json.dumps([play]), encoding="utf-8")
        return self._run("ansible-playbook", str(path))

    def _run(self, program: str, *arguments: str) -> str:
        environment = {key: os.environ[key] for key in _KEPT if key in os.environ} | {
            "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "ANSIBLE_NOCOLOR": "1",
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        command = [
            str(pathlib.Path(sys.executable).with_name(program)),
            "-i",
            "localhost,",
            "-c",
            "local",
            "-e",
            f"ansible_python_interpreter={sys.executable}",
        ]
        done = subprocess.run(
            [*command, *arguments],
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Caller]:
    caller = Caller(tmp_path_factory.mktemp("module"), find_programs().folder)
    yield caller
    caller.module(state="absent")
    caller.role(sandbox_state="absent")
    assert list(caller.folder.glob("state/hwaccel-gpu/sandbox/*")) == []


def test_check_mode_first_and_second_run(caller: Caller) -> None:
    predicted = caller.module("--check", "--diff", fleet=SMALL_FLEET).result
    assert predicted["changed"]
    assert not pathlib.Path(predicted["state_dir"]).exists()
    done = caller.module("--diff", fleet=SMALL_FLEET).result
    assert done["changed"]
    assert {action.partition(" ")[2] for action in predicted["actions"]} <= {
        action.partition(" ")[2] for action in done["actions"]
    }
    assert {row["component"] for row in done["processes"]} == {
        action.removeprefix("start ") for action in predicted["actions"] if action.startswith("start ")
    }
    assert "+pool: gpu, 2 nodes, 16 GPUs" in caller.module(
        "--check", "--diff", fleet={**SMALL_FLEET, "pools": []}
    ).text.replace("-pool", "+pool")
    for switches in ((), ("--check",)):
        again = caller.module(*switches, fleet=SMALL_FLEET).result
        assert (again["changed"], again["actions"]) == (False, [])
        assert again["kubeconfig"] == done["kubeconfig"]
        assert again["nodes"] == 3


def test_every_error_of_a_fleet_file_is_reported_and_nothing_is_changed(caller: Caller, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "fleet.yml"
    path.write_text("pools:\n  - {name: a, count: many}\n  - {name: b, kernel: '?'}\n", encoding="utf-8")
    refused = caller.module(fleet_file=str(path))
    assert "localhost | FAILED!" in refused.text
    assert [fault["where"] for fault in refused.result["faults"]] == ["pool a.count", "pool b.kernel"]
    assert "Traceback" not in refused.text
    path.write_text("pools: [", encoding="utf-8")
    assert "is not valid YAML" in caller.module(fleet_file=str(path)).result["msg"]
    assert "cannot be read" in caller.module(fleet_file=str(tmp_path / "none.yml")).result["msg"]
    assert "there is no node 'x'" in caller.module(reboot=[{"node": "x"}]).result["msg"]


def test_missing_components_are_reported(caller: Caller, tmp_path: pathlib.Path) -> None:
    assert "does not exist" in caller.module(components=str(tmp_path / "none")).result["msg"]


def test_role_starts_stops_and_removes(caller: Caller) -> None:
    started = caller.role(sandbox_fleet={"pools": []})
    folder = caller.folder / "state" / "hwaccel-gpu" / "sandbox" / "role"
    assert f"kubeconfig={folder / 'kubeconfig'} audit_log={folder / 'audit.log'} preflight_faults=[]" in started
    assert "changed=1" in started
    assert "changed=0" in caller.role(sandbox_fleet={"pools": []})
    assert "changed=1" in caller.role(sandbox_state="stopped")
    assert "changed=0" in caller.role(sandbox_state="stopped")
    assert "changed=1" in caller.role("teardown")
    absent = caller.role(sandbox_state="absent")
    assert "changed=0" in absent
    assert "kubeconfig=none" in absent
    assert not folder.exists()


def test_the_preflight_of_the_role_returns_every_problem_and_its_start_refuses_them(
    caller: Caller, tmp_path: pathlib.Path
) -> None:
    wrong = {
        "sandbox_name": "never",
        "sandbox_fleet": {"pools": [{"name": "a", "count": "many"}]},
        "sandbox_components": str(tmp_path / "none"),
    }
    preflight = caller.role("preflight", **wrong)
    assert "changed=0" in preflight and "failed=0" in preflight
    refused = caller.role(**wrong)
    assert "failed=1" in refused
    for output in (preflight, refused):
        assert "pool a.count" in output and "the folder of the components does not exist" in output
    assert not (caller.folder / "state" / "hwaccel-gpu" / "sandbox" / "never").exists()
