# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that answers questions of the role machine_boot."""

from __future__ import annotations

import time
import typing as t

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter import machine_boot as plugin
from ansible_collections.hwaccel.gpu.plugins.filter.machine_boot import machine_boot
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import role
from ansible_collections.hwaccel.gpu.tests.unit.machines.boot.test_plan import GOOD

PLAN = {
    "power": "off",
    "started": True,
    "ends": False,
    "joined": "no",
    "steps": [{"kind": "power", "text": "power on"}],
    "messages": [],
}
#: ansible-core before 2.19 converts numbers to text.
WATCH = {
    "servers": ["boot-a"],
    "wait_for": "ignition",
    "interval": "10",
    "connected": True,
    "deadline": str(time.time() + 3600),
    "check": False,
    "reach": False,
}


def test_an_unknown_question_is_refused_with_the_known_ones() -> None:
    with pytest.raises(AnsibleFilterError, match=r"does not know 'colour': use one of faults, nodes, "):
        machine_boot({}, "colour")


def test_all_questions_are_documented() -> None:
    assert yaml.safe_load(plugin.DOCUMENTATION)["options"]["question"]["choices"] == list(role.QUESTIONS)


@pytest.mark.parametrize("question", [name for name in role.QUESTIONS if name not in ("faults", "unreachable")])
def test_input_that_cannot_be_read_is_refused(question: str) -> None:
    with pytest.raises(AnsibleFilterError, match="machine_boot cannot read its input"):
        machine_boot(None, question)


def test_problems_of_all_requests_are_collected() -> None:
    found = machine_boot([GOOD | {"provider": "ipmi", "boot": "floppy"}], "faults")
    assert ["its boot floppy is unknown" in fault["text"] for fault in found] == [True]


@pytest.mark.parametrize(
    ("question", "data", "given", "expected"),
    [
        ("nodes", {"result": ["a"]}, {}, {"known": True, "names": ["a"], "why": "its cluster does not answer"}),
        ("lines", PLAN | {"state": "present"}, {"planned": True, "check": True}, ["would power on"]),
        ("unreachable", [], {}, ""),
        (
            "outcome",
            {"plan": PLAN, "power": {}, "verdict": {}},
            {},
            {"failed": False, "text": "machine worker-1: power on"},
        ),
    ],
)
def test_questions_are_answered_from_plain_data(
    question: str, data: t.Any, given: dict[str, t.Any], expected: t.Any
) -> None:
    found = machine_boot(data, question, request=GOOD, given=given)
    assert found == expected


def test_a_turn_ends_after_its_tries_at_any_time_if_there_is_no_deadline() -> None:
    given = {"reads": {"awaited": "address", "tries": "2"}, "nodes": {}, "deadline": "0"}
    for attempts, turn in ((1, False), (2, True)):
        result = {"stdout_lines": [], "attempts": attempts}
        assert machine_boot(result, "enough", request=GOOD, given=given) == {"turn": turn, "all": False}


def test_what_is_due_and_the_next_round_are_computed_from_the_facts_of_the_moment() -> None:
    due = machine_boot(PLAN, "due", request=GOOD, given={"watch": WATCH, "power": {}, "verdict": {}})
    assert [name for name, is_due in due.items() if is_due is True] == ["mark", "act", "watch"]
    assert due["mark_as"] == "mark"
    given = {"watch": WATCH, "plan": PLAN, "nodes": {}}
    found = machine_boot({}, "round", request=GOOD, given=given)
    assert (found["query"], found["read"], found["settled"]) == (True, True, False)
    given["nodes"] = {"known": True, "names": ["worker-1"]}
    assert machine_boot({}, "round", request=GOOD, given=given)["settled"] is True
    given |= {"nodes": {}, "plan": PLAN | {"joined": "yes"}}
    assert machine_boot({}, "round", request=GOOD, given=given)["query"] is False


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"named": True}, "again"),
        ({"named": True, "boot": "disk"}, "mark"),
        ({"named": True, "boot": "media"}, "mark"),
        ({}, "mark"),
    ],
)
def test_only_a_start_from_the_network_by_name_writes_a_machine_once_more(
    changed: dict[str, t.Any], expected: str
) -> None:
    given = {"watch": WATCH, "power": {}, "verdict": {}}
    assert machine_boot(PLAN, "due", request={**GOOD, **changed}, given=given)["mark_as"] == expected
    stays = {**PLAN, "started": False}
    assert machine_boot(stays, "due", request={**GOOD, **changed}, given=given)["mark_as"] == "mark"


def test_what_a_machine_must_answer_by_ssh_is_of_this_boot_or_of_the_inventory() -> None:
    key, own = f"SHA256:{'a' * 43}", {"host_key": "", "system": "", "device": "", "user": "operator"}
    line = (
        f'10.77.0.21 - - [23/Nov/2026:03:51:13 +0000] "GET /report/worker-1?host_key={key} HTTP/1.1" 204 0 "-" "Wget"'
    )
    for lines, expected in (([line], key), (["earlier", line], "")):
        found = machine_boot([{"stdout_lines": lines}], "expected", request=GOOD, given={"expected": own})
        assert found == {**own, "host_key": expected}
    known = {**own, "host_key": f"SHA256:{'b' * 43}"}
    assert machine_boot([{"stdout_lines": [line]}], "expected", request=GOOD, given={"expected": known}) == known
    given = {"expected": {**own, "host_key": key}, "verdict": {}, "before": {}, "deadline": str(time.time() + 60)}
    answered = {"stdout_lines": [f"key {key}", "os rocky 9.4"]}
    assert machine_boot(answered, "reached", request=GOOD, given=given)["done"] is True


def test_without_a_stage_to_wait_for_the_whole_boot_is_judged() -> None:
    given = {"wait_for": "", "nodes": {"known": True, "names": ["worker-1"]}, "before": {}}
    found = machine_boot([], "verdict", request=GOOD, given=given)
    assert (found["done"], found["lines"]) == (True, ["its node has joined"])
