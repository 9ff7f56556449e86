# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The block that ends a run on machines: its verdict, table, changes, and failures with the next step."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import closing
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.closing import DONE, FAILED, REFUSED

BATCH = ["lb1", "lb2"]


def summaries(**outcomes: dict[str, t.Any] | None) -> dict[str, dict[str, t.Any]]:
    return {name: closing.summarized(outcome) for name, outcome in outcomes.items()}


def lines(entry: str = "main", check: bool = False, **outcomes: dict[str, t.Any] | None) -> str:
    return "\n".join(closing.lines(summaries(**outcomes), entry, check))


def done(*changes: str) -> dict[str, t.Any]:
    return closing.ended(DONE, BATCH, changes=changes)


def test_a_run_without_changes_is_a_line_and_the_table() -> None:
    assert lines(lb1=done(), lb2=done()) == (
        "All 2 machines are configured; nothing changed\n\nmachine  result  changes\n-------  ------  -------\nlb1      done\nlb2      done"
    )
    assert closing.failure(summaries(lb1=done(), lb2=done())) == ""


def test_each_kind_of_outcome_has_its_section_with_reason_and_next_step() -> None:
    text = lines(
        a=done("write /etc/x", "reload haproxy"),
        b=done("write /etc/x", "reload haproxy"),
        c=closing.ended(REFUSED, BATCH, ["port 6443 is taken. Next: free it"]),
        d=closing.ended(FAILED, BATCH, ["the disk is full. Next: free space"], ["write /etc/y"]),
        e=closing.begun(BATCH),
        f=None,
    )
    assert text.partition("\n\n")[0] == "6 machines: 1 with problems, 1 failed, 1 lost, 1 not begun; 2 machines changed"
    # Those that failed first, each section once, and machines with the same changes together.
    assert [line.split()[0] for line in text.splitlines()[4:10]] == ["c", "d", "e", "f", "a", "b"]
    assert "Changed:\n  a, b:\n    write /etc/x\n    reload haproxy\n" in text
    assert "Planned, and perhaps done in part:\n  d:\n    write /etc/y\n" in text
    assert "Not begun:\n  f: all machines of an earlier batch failed\n" in text
    assert "Problems, nothing was changed:\n  c:\n    port 6443 is taken\n      Next: free it\n" in text
    assert (
        "Failed:\n  d:\n    the disk is full\n      Next: free space\n  e:\n    the connection to the machine was lost"
        in text
    )
    found = summaries(c=closing.ended(REFUSED, BATCH, ["x"]), d=closing.ended(FAILED, BATCH, ["y"]), f=None)
    expected = "1 machine has problems: c; 1 machine has failed: d. Next: correct what is reported above, and run the playbook again."
    assert closing.failure(found) == expected


@pytest.mark.parametrize(
    ("entry", "check", "expected"),
    [
        ("main", False, "The machine is configured; 1 machine changed"),
        ("main", True, "The machine would be configured; 1 machine would be changed"),
        ("preflight", False, "The machine is checked; 1 machine would be changed"),
        ("teardown", False, "The machine is restored; 1 machine changed"),
    ],
)
def test_the_first_line_says_what_was_done(entry: str, check: bool, expected: str) -> None:
    assert lines(entry, check, lb1=done("write /etc/x")).splitlines()[0] == expected
    assert ("\nWould be changed:\n" in lines(entry, check, lb1=done("write /etc/x"))) == ("would" in expected)


def test_five_hundred_machines_take_some_lines() -> None:
    many = {f"m{number:03}": done("write /etc/x") for number in range(499)}
    text = lines(last=closing.ended(FAILED, BATCH, ["no. Next: yes"]), **many)
    assert len(text.splitlines()) < 40 and "and 480 more" in text and "last     failed" in text


def test_machines_that_booted_have_reports_of_their_own() -> None:
    good, bad = (
        {"failed": False, "text": "machine a: power on; joined"},
        {"failed": True, "text": "machine b: no. Next: look"},
    )
    text = lines(a=good, b=bad)
    assert "Reports:\n  machine a: power on; joined\n" in text and "Failed:\n  b:\n    machine b: no\n" in text
    assert text.startswith("2 machines: 1 failed\n")


def test_problems_of_several_machines_belong_to_those_that_they_name() -> None:
    found = closing.with_problems(summaries(a=None, b=None), ["machine a: its MAC is that of b. Next: correct it"])
    assert (found["a"]["state"], found["b"]["state"]) == ("problems", "not begun")
    assert all(
        one["reasons"] == ["no collection"]
        for one in closing.with_problems(summaries(a=None, b=None), ["no collection"]).values()
    )


def test_a_run_stops_after_a_batch_of_which_all_failed() -> None:
    outcomes = {"a": closing.ended(FAILED, ["a", "b"]), "b": closing.ended(REFUSED, ["a", "b"])}
    assert closing.stopped("c", outcomes)
    # One that has left the play in the middle has no end.
    assert closing.stopped("c", outcomes | {"b": closing.begun(["a", "b"])})
    assert not closing.stopped("c", outcomes | {"b": closing.ended(DONE, ["a", "b"])})
    # The batch of the machine itself is running.
    assert not closing.stopped("b", {"a": closing.begun(["a", "b"])})
    assert not closing.stopped("a", {})


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"msg": "lb1 is wrong. Next: mend it"}, ["lb1 is wrong. Next: mend it"]),
        ({"msg": ["one. Next: a", "two. Next: b"]}, ["one. Next: a", "two. Next: b"]),
        ({"msg": "non-zero return code", "stderr": "first\nno space\n"}, ["non-zero return code: no space. NEXT"]),
        (
            {"msg": "items failed", "results": [{"msg": "fine"}, {"failed": True, "msg": "bad path"}]},
            ["bad path. NEXT"],
        ),
        ({}, ["the task 'write | Write files' failed. NEXT"]),
    ],
)
def test_the_reason_of_a_failure_is_the_message_with_the_next_step(
    result: dict[str, t.Any], expected: list[str]
) -> None:
    step = "Next: correct what the task 'write | Write files' reports above, and run again"
    assert closing.reasons("write | Write files", result, hidden=False) == [
        text.replace("NEXT", step) for text in expected
    ]


def test_a_task_that_hides_its_result_is_only_named() -> None:
    (text,) = closing.reasons("Write credentials", {"msg": "password secret"}, hidden=True)
    assert "secret" not in text and "Write credentials" in text and "Next: " in text


def before(name: str, outcomes: dict[str, dict[str, t.Any]], order: list[str]) -> tuple[bool, int]:
    """Whether a run stops before a machine, and how many outcomes were read for that."""
    read: list[str] = []

    def of(other: str) -> dict[str, t.Any]:
        read.append(other)
        return outcomes.get(other, {})

    return closing.stopped(name, closing.before(name, order, of)), len(read)


def test_whether_a_run_stops_is_told_by_the_last_batch_before() -> None:
    order = [f"m{number}" for number in range(200)]
    batches = [order[at : at + 10] for at in range(0, 200, 10)]
    states = [FAILED, *[closing.HELD] * 18]
    for failed in (True, False):
        outcomes = {
            name: closing.ended(state if failed else DONE, batch)
            for state, batch in zip(states, batches, strict=False)
            for name in batch
        }
        assert before("m199", outcomes, order) == (failed, 20)
        # As of all outcomes.
        assert closing.stopped("m199", outcomes) is failed
    # One of the batch has succeeded.
    outcomes["m180"] = closing.ended(FAILED, batches[18])
    assert before("m199", outcomes, order)[0] is False


def test_batches_that_were_not_begun_and_outcomes_of_a_preflight_are_passed_over() -> None:
    order = ["a", "b", "c"]
    failed = closing.ended(FAILED, ["a"])
    assert before("c", {"a": failed}, order)[0] is True
    assert before("c", {"a": failed, "b": closing.ended(DONE, order)}, order)[0] is True
    assert before("a", {"a": failed, "b": failed}, order) == (False, 0)
    assert before("host", {"a": failed}, order) == (False, 0)
