# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines and messages about a machine."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import outcome

PLAN: dict[str, t.Any] = {"messages": ["it is known"], "steps": [{"text": "power on: it is off"}], "started": True}
IGNITION = {"text": "it has downloaded its ignition file", "next_step": "wait", "done": True}
RESET = {"state": "settled", "steps": [{"text": "start from its disk: its kernel is loaded"}]}


@pytest.mark.parametrize(
    ("answer", "nodes"),
    [
        ({"result": ["a"]}, {"known": True, "names": ["a"], "why": "its cluster does not answer"}),
        (
            {"nodes": [{"name": "a"}, {"name": "b"}]},
            {"known": True, "names": ["a", "b"], "why": "its cluster does not answer"},
        ),
        ({"nodes": []}, {"known": True, "names": [], "why": "its cluster does not answer"}),
        ({"result": None}, {"known": True, "names": [], "why": "its cluster does not answer"}),
        ({"msg": "no route"}, {"known": False, "names": [], "why": "no route"}),
        ({"unreachable": True, "msg": "gone"}, {"known": False, "names": [], "why": "gone"}),
        ({}, {"known": False, "names": [], "why": "its cluster does not answer"}),
        ({"skipped": True}, {"known": False, "names": [], "why": "its cluster has no hwaccel_connection"}),
    ],
)
def test_nodes_are_known_if_the_cluster_has_answered(answer: dict[str, t.Any], nodes: dict[str, t.Any]) -> None:
    assert outcome.nodes(answer) == nodes


@pytest.mark.parametrize(
    ("state", "planned", "check", "lines"),
    [
        ("present", True, False, ["it is known", "power on: it is off"]),
        ("present", True, True, ["it is known", "would power on: it is off"]),
        ("present", False, False, []),
        ("absent", True, False, ["it is known", "power on: it is off"]),
        ("settled", False, False, ["it is known", "power on: it is off"]),
        ("settled", False, True, ["it is known", "would power on: it is off"]),
        ("resumed", False, False, ["it is known", "power on: it is off"]),
        ("observed", True, False, []),
    ],
)
def test_plans_and_resets_are_shown(state: str, planned: bool, check: bool, lines: list[str]) -> None:
    assert outcome.lines({**PLAN, "state": state}, planned, check) == lines


def test_an_observation_has_no_lines() -> None:
    assert outcome.lines({"state": "observed", "observed": {}}, True, False) == []


def test_the_outcome_has_what_was_decided_and_done_and_the_progress() -> None:
    found = outcome.outcome("worker-1", PLAN, RESET, IGNITION)
    reset = RESET["steps"][0]["text"]
    steps = f"it is known; power on: it is off; {reset}; it has downloaded its ignition file"
    assert found == {"failed": False, "text": f"machine worker-1: {steps}"}


def test_the_outcome_has_what_a_machine_does_after_its_installation() -> None:
    resumed = {"state": "resumed", "messages": ["it is not over"], "steps": [{"text": "power on: it is over"}]}
    found = outcome.outcome("worker-1", PLAN, resumed, IGNITION)
    steps = (
        "it is known; power on: it is off; power on: it is over; it is not over; it has downloaded its ignition file"
    )
    assert found["text"] == f"machine worker-1: {steps}"


def test_steps_of_the_plan_are_in_the_outcome_once() -> None:
    found = outcome.outcome("worker-1", PLAN, {**PLAN, "state": "present"}, {})
    assert found["text"] == "machine worker-1: it is known; power on: it is off"


def test_a_machine_that_was_started_and_has_not_reached_the_stage_has_failed() -> None:
    behind = {**IGNITION, "done": False}
    text = "machine worker-1: it has downloaded its ignition file. Next: wait"
    assert outcome.outcome("worker-1", PLAN, {}, behind) == {"failed": True, "text": text}
    assert outcome.outcome("worker-1", {**PLAN, "started": False}, {}, behind)["failed"] is False


def test_the_outcome_of_a_teardown_is_its_plan() -> None:
    kept = {"messages": ["it is not a virtual machine, and is not changed"], "steps": []}
    text = "machine worker-1: it is not a virtual machine, and is not changed"
    assert outcome.outcome("worker-1", kept, {}, {}) == {"failed": False, "text": text}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("machine worker-1: its BMC cannot be reached", "machine worker-1: its BMC cannot be reached"),
        (
            " it is broken.\n",
            "machine worker-1: it is broken. Next: correct what the failed task above reports, and run again",
        ),
        ("", "machine worker-1: a task failed. Next: correct what the failed task above reports, and run again"),
        (
            ["a", "b"],
            "machine worker-1: ['a', 'b']. Next: correct what the failed task above reports, and run again",
        ),
    ],
)
def test_the_message_of_a_failed_task_is_the_outcome(error: object, text: str) -> None:
    assert outcome.outcome("worker-1", {}, {}, {}, error) == {"failed": True, "text": text}


def test_boot_servers_that_cannot_be_reached_are_named_once_with_the_first_reason() -> None:
    gone = [
        {"item": "a", "unreachable": True, "msg": " no route \n"},
        {"item": "b", "unreachable": True, "msg": "refused"},
        {"item": "a", "unreachable": True, "msg": "no route"},
        {"item": "c", "rc": 0},
    ]
    text = "machine worker-1: the boot server a, b cannot be reached (no route). Next: verify that it is on and that Ansible can connect to it, and run again"
    assert outcome.unreachable("worker-1", gone) == text
    assert "(). Next" in outcome.unreachable("worker-1", [{"item": "a", "unreachable": True}])


def test_no_message_if_all_boot_servers_are_reached() -> None:
    assert outcome.unreachable("worker-1", [{"item": "c", "rc": 0}, {"item": "d", "skipped": True}]) == ""
