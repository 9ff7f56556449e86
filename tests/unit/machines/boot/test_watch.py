# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is due for a machine, the rounds of a watch, and when logs were read often enough."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import request, watch
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.watch import Watch
from ansible_collections.hwaccel.gpu.tests.unit.machines.boot.test_plan import GOOD

NOW = 1_800_000_000.0
ONE = Watch(servers=("boot-a",), wait_for="ignition", interval=10, deadline=NOW + 100)
TWO = dataclasses.replace(ONE, servers=("boot-a", "boot-b"))
#: A machine with a cluster that can be queried.
NODE = dataclasses.replace(ONE, wait_for="reported", connected=True)
STARTED: dict[str, t.Any] = {
    "power": "off",
    "started": True,
    "ends": False,
    "joined": "no",
    "steps": [{"kind": "boot"}, {"kind": "power"}],
}
RUNS = {**STARTED, "power": "on", "started": False, "steps": []}
KERNEL = {"stage": "kernel", "done": False, "sending": []}
DONE = {**KERNEL, "done": True}
ACK = "Nov 23 03:41:10 dnsmasq-dhcp[8]: 77 DHCPACK(eth0) 10.77.0.21 52:54:00:77:00:21"


def due(
    how: Watch, plan: dict[str, t.Any], power: dict[str, t.Any] | None = None, verdict: dict[str, t.Any] | None = None
) -> set[str]:
    found = watch.due(how, plan, power or {}, verdict or {})
    return {part for part, is_due in found.items() if is_due is True}


def following(
    how: Watch,
    verdict: dict[str, t.Any] | None = None,
    was_node: bool = False,
    joined: bool = False,
    after: float = 0,
) -> watch.Round:
    return watch.following(how, was_node, joined, verdict or {}, NOW + after)


def enough(result: dict[str, t.Any], tries: int = 3, deadline: float = 0, awaited: str = "address") -> watch.Enough:
    return watch.enough(result, request.read(GOOD), {}, awaited, tries, deadline, NOW)


@pytest.mark.parametrize(
    ("how", "plan", "expected"),
    [
        (ONE, STARTED, {"mark", "act", "watch"}),
        (dataclasses.replace(ONE, check=True), STARTED, set()),
        (dataclasses.replace(ONE, wait_for=""), STARTED, {"mark", "act"}),
        (dataclasses.replace(ONE, servers=()), STARTED, {"act"}),
        (ONE, {**STARTED, "started": False}, {"mark", "act"}),
        (dataclasses.replace(ONE, reach=True), STARTED, {"mark", "act", "watch", "reach"}),
        (dataclasses.replace(ONE, reach=True, check=True), STARTED, set()),
        (dataclasses.replace(ONE, reach=True), RUNS, {"look", "reach"}),
        (dataclasses.replace(ONE, reach=True), {**RUNS, "joined": "yes"}, set()),
        (dataclasses.replace(ONE, reach=True), {**STARTED, "started": False}, {"mark", "act"}),
        (ONE, {**STARTED, "started": False, "steps": [{"kind": "boot"}]}, {"act"}),
        (ONE, RUNS, {"look"}),
        (dataclasses.replace(ONE, check=True), RUNS, {"look"}),
        (ONE, {**RUNS, "joined": "unknown"}, {"look"}),
        (ONE, {**RUNS, "joined": "yes"}, set()),
        (ONE, {**RUNS, "power": "off"}, set()),
        (dataclasses.replace(ONE, servers=()), RUNS, set()),
    ],
)
def test_parts_of_the_role_are_due_by_the_plan(how: Watch, plan: dict[str, t.Any], expected: set[str]) -> None:
    assert due(how, plan) == expected


def test_what_was_set_for_one_boot_is_reset_after_the_boot_or_where_a_plan_says_so() -> None:
    nothing = {**RUNS, "joined": "yes"}
    assert due(ONE, nothing, verdict={"loaded": True}) == {"reset"}
    assert due(ONE, nothing, power={"back": [{"kind": "boot"}]}) == {"reset"}
    assert due(ONE, nothing, power={"back": []}, verdict={"loaded": False}) == set()


def test_a_machine_that_ends_with_its_installation_is_started_once_it_has_begun_it() -> None:
    begun = {**STARTED, "ends": True}
    assert "resume" in due(ONE, begun, verdict={"loaded": True})
    assert "resume" not in due(ONE, begun, verdict={"loaded": False})
    assert "resume" not in due(ONE, STARTED, verdict={"loaded": True})
    assert "resume" not in due(dataclasses.replace(ONE, check=True), begun, verdict={"loaded": True})


@pytest.mark.parametrize(
    ("reached", "wait_for", "awaited"),
    [
        ("nothing", "ignition", "address"),
        ("requested", "ignition", "address"),
        ("address", "ignition", "loader"),
        ("loader", "ignition", "kernel"),
        ("kernel", "ignition", "ignition"),
        ("ignition", "reported", "reported"),
        ("nothing", "address", "address"),
        ("ignition", "kernel", "kernel"),
    ],
)
def test_the_next_stage_is_awaited_and_none_after_the_requested_one(reached: str, wait_for: str, awaited: str) -> None:
    how = dataclasses.replace(ONE, wait_for=wait_for)
    assert following(how, {**KERNEL, "stage": reached})["reads"]["awaited"] == awaited


def test_before_the_first_read_the_first_stage_is_awaited_also_if_the_start_has_used_up_the_timeout() -> None:
    found = following(ONE, after=101)
    assert (found["read"], found["reads"]["awaited"], found["reads"]["tries"]) == (True, "address", 2)


def test_logs_are_read_until_the_stage_or_the_deadline() -> None:
    assert following(ONE, KERNEL)["read"] is True
    assert following(ONE, KERNEL, after=100)["read"] is False
    assert following(ONE, DONE)["read"] is False


@pytest.mark.parametrize(
    ("verdict", "after", "settled"), [(KERNEL, 99, False), (KERNEL, 100, True), (DONE, 0, True), ({}, 0, False)]
)
def test_the_watch_ends_at_the_deadline_or_when_the_machine_is_done(
    verdict: dict[str, t.Any], after: float, settled: bool
) -> None:
    assert following(ONE, verdict, after=after)["settled"] is settled


@pytest.mark.parametrize(("after", "tries"), [(0, 10), (1, 10), (11, 9), (95, 2), (300, 2)])
def test_tries_fill_the_time_that_is_left_and_are_two_at_least(after: float, tries: int) -> None:
    assert following(ONE, KERNEL, after=after)["reads"]["tries"] == tries


def test_an_interval_of_zero_is_read_as_one() -> None:
    reads = following(dataclasses.replace(ONE, interval=0), KERNEL)["reads"]
    assert (reads["what"], reads["tries"]) == (1, 100)


def test_the_cluster_is_queried_between_few_reads_until_the_node_has_joined() -> None:
    found = following(NODE, KERNEL)
    assert (found["query"], found["reads"]["tries"]) == (True, watch.SLICE)
    assert following(NODE, KERNEL, after=75)["reads"]["tries"] == 3
    joined = following(NODE, KERNEL, joined=True)
    assert (joined["query"], joined["read"], joined["settled"]) == (False, False, True)
    assert following(NODE, DONE)["query"] is False


def test_the_last_query_may_come_after_the_deadline() -> None:
    found = following(NODE, KERNEL, after=101)
    assert (found["query"], found["read"]) == (True, False)


def test_a_stage_before_the_report_is_awaited_without_a_pause() -> None:
    """The cluster is queried at each stage only."""
    found = following(dataclasses.replace(NODE, wait_for="ignition"), KERNEL)
    assert (found["query"], found["reads"]["tries"]) == (True, 10)


def test_a_cluster_that_had_the_node_before_the_start_is_not_queried() -> None:
    found = following(NODE, KERNEL, was_node=True)
    assert (found["query"], found["reads"]["tries"]) == (False, 10)
    assert following(ONE, KERNEL)["query"] is False


def test_several_boot_servers_share_the_tries_in_turns() -> None:
    reads = following(TWO)["reads"]
    assert reads == {"what": 10, "awaited": "address", "servers": ["boot-a", "boot-b"] * watch.TURNS, "tries": 2}


def test_a_boot_server_that_sends_more_than_an_address_is_the_only_one_that_is_read() -> None:
    reads = following(TWO, {**KERNEL, "sending": ["boot-b"]})["reads"]
    assert (reads["servers"], reads["tries"]) == (["boot-b"], 10)


def test_before_the_first_read_of_a_loop_nothing_is_enough() -> None:
    nothing = {"turn": False, "all": False}
    assert enough({}) == nothing
    assert enough({"results": [{"skipped": True}]}) == nothing


@pytest.mark.parametrize(
    ("result", "turn", "every"),
    [
        ({"stdout_lines": [], "attempts": 1}, False, False),
        ({"stdout_lines": []}, False, False),
        ({"stdout_lines": [], "attempts": 3}, True, False),
        ({"unreachable": True}, False, False),
        ({"stdout_lines": [ACK], "attempts": 1}, True, True),
        ({"skipped": True}, True, True),
    ],
)
def test_a_turn_ends_after_its_tries_and_all_turns_when_the_stage_is_reached(
    result: dict[str, t.Any], turn: bool, every: bool
) -> None:
    assert enough(result) == {"turn": turn, "all": every}


def test_a_turn_ends_at_the_deadline_and_other_boot_servers_are_still_read() -> None:
    assert enough({"stdout_lines": []}, deadline=NOW - 1) == {"turn": True, "all": False}
    assert enough({"stdout_lines": []}, deadline=NOW + 1) == {"turn": False, "all": False}


def judged(*lines: str, before: dict[str, t.Any] | None = None, **changed: t.Any) -> watch.Verdict:
    read = [{"item": "boot-a", "stdout_lines": list(lines)}]
    return watch.judged(read, request.read({**GOOD, **changed}), "reported", {}, before or {})


def test_progress_is_shown_once() -> None:
    found = judged(ACK)
    assert found["lines"] == [found["text"]]
    assert judged(ACK, before=dict(found))["lines"] == []


def test_what_is_missing_is_not_shown_as_progress() -> None:
    assert judged()["lines"] == []
    assert judged(ACK.replace("DHCPACK", "DHCPDISCOVER"))["lines"] == []
