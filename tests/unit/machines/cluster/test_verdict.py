# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a cause is found in lines, whatever installs the cluster."""

from __future__ import annotations

import dataclasses
import re

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.verdict import (
    PORT,
    UNREACHABLE,
    Cause,
    Installer,
    verdict,
)

_BROKEN = Cause(re.compile("it broke"), "it is broken", "repair {role} at {endpoint}", detail=re.compile("part .$"))
_SLOW = Cause(re.compile("it waits"), "it waits", "wait", over=re.compile("it goes on"))
SIMPLE = Installer(
    "cluster_x",
    (_BROKEN, _SLOW, PORT, UNREACHABLE),
    errors=re.compile("^bad: "),
    next_step="read on",
    left_out=re.compile("ignored"),
    endpoint=re.compile("the door"),
)
RANKED = dataclasses.replace(SIMPLE, ends=re.compile("^end: "))


@pytest.mark.parametrize("installer", [SIMPLE, RANKED])
def test_a_next_step_has_role_and_endpoint(installer: Installer) -> None:
    fault = verdict(installer, "m1", "api:6443", "", "part a\npart b\nit broke\npart a")
    assert fault.why == "it is broken (it broke; part a; part b)"
    assert fault.next_step == "repair cluster_x at api:6443"


@pytest.mark.parametrize("installer", [SIMPLE, RANKED])
@pytest.mark.parametrize(
    ("journal", "words"),
    [
        ("it broke, ignored", "it broke, ignored"),
        ("it waits", "it waits (it waits)"),
        ("it waits\nit goes on", "told"),
        ("it goes on\nit waits", "it waits (it waits)"),
        ("api: connection refused", "it does not reach the API server"),
        ("the door: connection refused", "it does not reach the API server"),
        ("other: connection refused", "told"),
        ("listen: bind: address already in use", "a port that it needs is in use"),
    ],
)
def test_lines_that_show_a_cause(installer: Installer, journal: str, words: str) -> None:
    fault = verdict(installer, "m1", "api:6443", "told", journal)
    if words in ("told", journal):
        assert fault.why == "told" and fault.next_step == "read on"
    else:
        assert fault.why.startswith(words)


def test_what_was_printed_goes_first_unless_the_journal_has_what_ended_the_program() -> None:
    assert "waits" in verdict(SIMPLE, "m1", "", "it waits", "end: it broke").why
    assert "broke" in verdict(RANKED, "m1", "", "it waits", "end: it broke").why


def test_what_ended_a_program_first_goes_before_all_other_lines() -> None:
    journal = "bad: it broke\nend: unknown\nend: it waits\nend: it broke\nit broke"
    assert verdict(RANKED, "m1", "", "", journal).why == "it waits (end: it waits)"
    assert verdict(SIMPLE, "m1", "", "", journal).why == "it is broken (bad: it broke)"


def test_an_endpoint_that_is_not_reached_goes_last() -> None:
    refused = "end: api: connection refused"
    assert "broken" in verdict(RANKED, "m1", "api:6443", "", f"{refused}\nend: it broke").why
    assert "reach" in verdict(RANKED, "m1", "api:6443", "", f"{refused}\nbad: it broke").why
    assert "broken" in verdict(RANKED, "m1", "api:6443", "", "bad: api: connection refused\nit broke").why


def test_another_line_of_a_cause() -> None:
    more = UNREACHABLE.also("Nobody There")
    assert more.lines.search("NOBODY THERE") and more.lines.search("i/o timeout")
    assert (more.why, more.next_step, more.of_endpoint) == (UNREACHABLE.why, UNREACHABLE.next_step, True)
