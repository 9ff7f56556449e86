# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of a stage, with modules that only record how they were called. Needs no cluster."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.tests.unit.action.plays import collection_with, play

MODULE = """
import json, os, sys
name = "{name}"
args = json.load(sys.stdin)["ANSIBLE_MODULE_ARGS"]
given = {{key: value for key, value in args.items() if not key.startswith(("_ansible", "wait_"))}}
with open(os.environ["CALLS"], "a") as file:
    print(json.dumps([name, args["_ansible_check_mode"], given]), file=file)
print(json.dumps(json.loads(os.environ.get("RESULT_" + name) or "{{}}") or {{"changed": False, "progress": [name + " is done"]}}))
"""
MODULES = ("manifest_set", "node_gate", "node_info")


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return collection_with(
        tmp_path_factory.mktemp("collections"), {name: MODULE.format(name=name) for name in (*MODULES, "stage")}, {}
    )


BODY = {
    "kind": "DaemonSet",
    "metadata": {"name": "d", "namespace": "n", "labels": {names.DRIVER_POOL_LABEL: "training"}},
}
PLAN: dict[str, t.Any] = {"objects": [BODY], "provider": "hwaccel", "pools": {}, "namespaces": [], "messages": []}
VARIABLES: dict[str, t.Any] = {
    "hwaccel_preflight": {"plans": {"driver": PLAN}},
    "driver_fleet": {},
    "__driver_apply": {"name": "driver", "wait": False},
    "__driver_read": {},
    "__driver_verify": [
        {
            "name": "gate",
            "module": "hwaccel.gpu.node_gate",
            "taken": "{{ driver_plan.provider == 'hwaccel' }}",
            "options": {
                "gate": "driver",
                "wait_timeout": "",
                "exclude": "{{ driver_plan.objects | map(attribute='kind') | list }}",
            },
        },
        {"name": "more", "module": "hwaccel.gpu.node_gate", "taken": False, "options": {}},
    ],
}


def run(
    collections: pathlib.Path,
    folder: pathlib.Path,
    *arguments: str,
    stop: bool = False,
    results: dict[str, t.Any] | None = None,
    **variables: t.Any,
) -> tuple[list[t.Any], dict[str, t.Any], str]:
    """Calls of modules with check mode and options, the registered result, and the output."""
    (folder / "vars.json").write_text(json.dumps(VARIABLES | variables), encoding="utf-8")
    tasks = [
        {
            "hwaccel.gpu.stage": {"role": "driver", "stop": stop, "context": "mine"},
            "register": "it",
            "ignore_errors": True,
        },
        {
            "ansible.builtin.copy": {"content": "{{ it | to_json }}", "dest": str(folder / "result.json")},
            "check_mode": False,
        },
    ]
    environ = {"CALLS": str(folder / "calls")} | {
        f"RESULT_{name}": json.dumps(result) for name, result in (results or {}).items()
    }
    code, output = play(
        collections, folder, yaml.safe_dump(tasks), "-e", f"@{folder / 'vars.json'}", *arguments, environ=environ
    )
    assert code == 0, output
    calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
    return [json.loads(line) for line in calls], json.loads((folder / "result.json").read_text()), output


SET = {"context": "mine", "definition": [BODY], "name": "driver", "wait": False}
GATE = {"context": "mine", "gate": "driver", "exclude": ["DaemonSet"]}


def test_the_plan_of_the_preflight_is_applied_and_verified_without_a_word(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Empty options count as not set, and verifications that are not taken do not run."""
    calls, result, output = run(collections, tmp_path)
    assert calls == [["manifest_set", False, SET], ["node_gate", False, GATE]]
    assert (result["changed"], result["failed"], result["stopped"], result["plan"]) == (False, False, [], PLAN)
    assert "is done" not in output


def test_what_changes_is_shown_and_is_the_result_of_the_task(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    changed = {
        "changed": True,
        "progress": ["2 objects"],
        "objects": [1],
        "diff": [{"before": "", "after": "x"}],
        "warnings": ["w"],
    }
    calls, result, output = run(collections, tmp_path, "--check", results={"manifest_set": changed})
    assert [check for _name, check, _given in calls] == [True, True]
    assert (result["changed"], result["set"], result["diff"]) == (True, {"objects": [1]}, changed["diff"])
    assert "alpha: 2 objects" in output.splitlines() and "[WARNING]: w" in output


@pytest.mark.parametrize("before", [{"changed": True}, {"changed": False, "gate": {"waited": True}}])
def test_the_plan_is_computed_again_if_an_earlier_stage_has_changed_or_waited_for_something(
    collections: pathlib.Path, tmp_path: pathlib.Path, before: dict[str, t.Any]
) -> None:
    unreachable = {"failed": True, "msg": "no answer. Next: try again"}
    calls, result, _output = run(
        collections, tmp_path, results={"node_info": unreachable}, feature_discovery_stage=before
    )
    assert [name for name, _check, _given in calls] == ["node_info"]
    assert result["stopped"] == ["no answer. Next: try again"]


@pytest.mark.parametrize("stop", [True, False])
def test_a_step_that_fails_is_the_last_one(collections: pathlib.Path, tmp_path: pathlib.Path, stop: bool) -> None:
    refused = {"failed": True, "msg": "pods is forbidden. Next: grant it", "objects": []}
    calls, result, output = run(collections, tmp_path, stop=stop, results={"manifest_set": refused})
    assert [name for name, _check, _given in calls] == ["manifest_set"]
    assert result["failed"] is stop
    assert (result["msg"] if stop else result["stopped"]) == (refused["msg"] if stop else [refused["msg"]])
    assert ("fatal: [alpha]" in output) is stop
    assert "plan" not in result if stop else result["plan"] == PLAN


@pytest.mark.parametrize(
    ("only", "checked"), [({"pools": ["training"], "nodes": []}, True), ({"pools": ["inference"], "nodes": []}, False)]
)
def test_a_restricted_run_looks_before_it_applies(
    collections: pathlib.Path, tmp_path: pathlib.Path, only: dict[str, list[str]], checked: bool
) -> None:
    row = {"action": "configured", "kind": "DaemonSet", "namespace": "n", "name": "d"}
    calls, result, _output = run(
        collections,
        tmp_path,
        results={"manifest_set": {"changed": True, "objects": [row]}},
        hwaccel_preflight={"plans": {"driver": PLAN}, "only": only, "left_out": ["b-0"]},
    )
    expected = [["manifest_set", True], ["manifest_set", False], ["node_gate", False]]
    assert [[name, check] for name, check, _given in calls] == (expected if checked else expected[:1])
    assert [given["exclude"] for name, _check, given in calls if name == "node_gate"] == [
        ["DaemonSet", "b-0"]
    ] * checked
    assert ("restricted by hwaccel_only_pools" in "".join(result["stopped"])) is not checked
