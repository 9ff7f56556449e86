# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The block that ends a run: its verdict, changes, drift with the field and who changed it, and failures with the next step."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import closing

POOLS = [{"pool": "a", "nodes": 3}, {"pool": "b", "nodes": 1}]


def changed(count: int, action: str = "created", kind: str = "Role") -> list[dict[str, t.Any]]:
    return [{"action": action, "kind": kind, "namespace": "n", "name": f"x-{i}", "reason": ""} for i in range(count)]


def field(path: str, manager: str) -> dict[str, str]:
    return {"kind": "DaemonSet", "namespace": "n", "name": "d", "path": path, "manager": manager}


@pytest.mark.parametrize(
    ("summary", "check", "expected"),
    [
        ({}, False, "All 4 nodes passed the gates; nothing changed"),
        ({"changes": changed(1)}, False, "All 4 nodes passed the gates; 1 object changed"),
        ({"changes": changed(2)}, True, "All 4 nodes passed the gates; 2 objects would be changed"),
        (
            {"changes": changed(1, "reclaimed"), "drift": [field("spec.a", "b")] * 2},
            False,
            "All 4 nodes passed the gates; 1 object changed; drift of 2 fields corrected",
        ),
        ({"failed_nodes": ["a-1"]}, False, "1 of 4 nodes failed; nothing changed"),
        (
            {"machine_steps": ["join w1: x"], "changes": changed(1)},
            False,
            "All 4 nodes passed the gates; 1 step on machines taken; 1 object changed",
        ),
        ({"machine_steps": ["a", "b"], "pools": []}, True, "There is no node yet; 2 steps on machines would be taken"),
        (
            {"failed_nodes": ["a-1"], "stopped": ["gate driver: many"]},
            False,
            "The run stopped before its end; nothing changed",
        ),
    ],
)
def test_the_verdict_is_one_line(summary: dict[str, t.Any], check: bool, expected: str) -> None:
    assert closing.verdict({"pools": POOLS} | summary, check) == expected


def test_a_preflight_tells_how_many_steps_on_machines_there_will_be() -> None:
    assert closing.verdict({}, playbook="preflight") == "No problems found; nothing was changed"
    told = closing.verdict({"machine_steps": ["initialize the cluster on cp1"]}, playbook="preflight")
    assert told == "No problems found; nothing was changed; site would take 1 step on machines"


@pytest.mark.parametrize(
    ("summary", "playbook", "expected", "failure"),
    [
        (
            {"problems": ["a", "b"], "stopped": ["a", "b"]},
            "site",
            "2 problems found; nothing was changed",
            "2 problems, see above. Nothing was changed.",
        ),
        ({"changes": changed(3, "deleted")}, "teardown", "3 objects would be removed", ""),
        ({}, "teardown", "Nothing would be removed", ""),
        (
            {"stopped": ["x"]},
            "teardown",
            "The run stopped before its end; nothing would be removed",
            "the run has stopped. Next: correct",
        ),
        ({}, "preflight", "No problems found; nothing was changed", ""),
        (
            {"failed_nodes": ["a-1"]},
            "validate",
            "1 of 4 nodes failed; nothing would be changed",
            "1 node has failed: a-1. Next: correct",
        ),
        (
            {"failed_nodes": ["a-1"], "stopped": ["x"]},
            "site",
            "The run stopped before its end; nothing would be changed",
            "the run has stopped, and 1 node has failed: a-1. Next: correct",
        ),
        ({}, "status", "Healthy; nothing would be changed", ""),
        ({"changes": changed(2)}, "status", "Healthy; 2 objects would be changed", ""),
        ({"not_passed": 2}, "site", "2 of 4 nodes have not passed the gates yet; nothing would be changed", ""),
        (
            {"not_passed": 1},
            "status",
            "1 of 4 nodes has not passed the gates yet; nothing would be changed",
            "1 node has not passed. Next: ansible-playbook hwaccel.gpu.site",
        ),
        (
            {"changes": changed(1, "reclaimed"), "drift": [field("spec.a", "b")] * 2},
            "status",
            "All 4 nodes passed the gates; 1 object would be changed; drift of 2 fields would be corrected",
            "2 fields have drifted. Next: ansible-playbook hwaccel.gpu.site",
        ),
    ],
)
def test_each_playbook_has_its_verdict_and_fails_with_what_is_wrong(
    summary: dict[str, t.Any], playbook: str, expected: str, failure: str
) -> None:
    found = {"pools": POOLS} | summary
    assert closing.verdict(found, True, playbook) == expected
    message = closing.failure(found, playbook)
    assert message.startswith(failure) and bool(message) == bool(failure)


def test_all_problems_of_the_preflight_are_listed_each_in_one_line() -> None:
    problems = [f"variable {number} is wrong. Next: correct it" for number in range(closing.MOST + 5)]
    assert closing.sections({"problems": problems, "stopped": problems}) == [
        "",
        "Problems:",
        *(f"  {text}" for text in problems),
    ]


def test_quarantine_names_the_nodes() -> None:
    assert closing.sections({"quarantined": ["a", "b"], "released": ["c"]}) == [
        "",
        "Quarantine:",
        "  imposed on a, b",
        "  lifted from c",
    ]


def test_the_oldest_proof_of_all_pools_is_shown() -> None:
    pools = [{"pool": "a", "oldest_proof": "2026-11-02"}, {"pool": "b", "oldest_proof": "2026-11-01"}, {"pool": "c"}]
    assert closing.proofs({"pools": pools}) == ["Oldest proof: 2026-11-01, in pool b"]
    assert closing.proofs({"pools": pools[2:]}) == []


def test_a_run_with_nothing_to_report_has_no_section() -> None:
    assert closing.sections({"pools": POOLS, "changes": [], "drift": []}) == []


def test_steps_on_machines_are_listed() -> None:
    assert closing.sections({"machine_steps": ["join w1: x"]}) == ["", "Machines:", "  join w1: x"]


def test_drift_names_the_field_and_who_changed_it() -> None:
    summary = {
        "changes": changed(1, "reclaimed"),
        "drift": [field("spec.replicas", "kubectl-scale"), field("spec.paused", ""), field("", "")],
        "foreign_fields": [field("spec.template.spec.hostIPC", "kubectl-edit")],
    }
    assert closing.sections(summary) == [
        "",
        "Drift:",
        "  DaemonSet n/d: spec.replicas, changed by kubectl-scale",
        "  DaemonSet n/d: spec.paused, removed",
        "  DaemonSet n/d: it was deleted",
        "",
        "Fields of others, left as they are:",
        "  DaemonSet n/d: spec.template.spec.hostIPC, set by kubectl-edit",
    ]


def test_few_changes_are_listed_and_many_are_counted() -> None:
    assert closing.sections({"changes": changed(2)})[2:] == ["  created Role n/x-0", "  created Role n/x-1"]
    assert closing.sections({"changes": [*changed(30), *changed(1, "deleted", "Pod")]})[2:] == [
        "  created 30 x Role",
        "  deleted 1 x Pod",
    ]


def test_a_failed_node_has_its_log_and_next_step_and_is_reported_once() -> None:
    fault = {"node": "a-1", "pool": "a", "state": "failed", "link": "driver", "reason": "it crashed"}
    text = closing.sentence("driver", fault | {"log_tail": "it cannot start\ntwo", "next_step": "read the log"})
    stopped = "gate driver: 1 of 4 nodes failed, 0 allowed. Next: repair the problems below\n- node a-1: it crashed"
    assert closing.sections({"faults": [text], "stopped": [stopped]}) == [
        "",
        "Stopped:",
        "  gate driver: 1 of 4 nodes failed, 0 allowed",
        "    Next: repair the problems below",
        "",
        "Failed:",
        "  a-1 (pool a) failed at gate driver, driver: it crashed",
        "    Log: it cannot start",
        "    Next: read the log",
    ]


def test_a_section_has_a_limit() -> None:
    lines = closing.sections({"drift": [field(f"spec.f{i}", "x") for i in range(closing.MOST + 3)]})
    assert (len(lines), lines[-1]) == (closing.MOST + 3, "  and 3 more")


def test_unchanged_objects_of_sets_are_left_out() -> None:
    kept = {"action": "unchanged", "kind": "Role", "namespace": "n", "name": "r", "reason": ""}
    made = {"action": "created", "kind": "Pod", "namespace": None, "name": "p", "reason": None, "ready": True}
    result = {"objects": [kept, made], "reclaimed": [field("a", "b")], "foreign_fields": []}
    assert closing.of_sets([result]) == {
        "changes": [{"action": "created", "kind": "Pod", "namespace": "", "name": "p", "reason": ""}],
        "drift": [field("a", "b")],
        "foreign_fields": [],
    }
