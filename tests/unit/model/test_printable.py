# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Foreign text in messages contains no terminal control sequences."""

from __future__ import annotations

import time
import unicodedata

import hypothesis
import hypothesis.strategies as st
import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.printable import printable, printable_data

#: Characters that change the direction of text (Unicode, PropList.txt, Bidi_Control).
DIRECTION = {*map(chr, (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))}


def obeyed(text: str) -> list[str]:
    return [
        one
        for one in text
        if one not in "\n\t" and (unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") or one in DIRECTION)
    ]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("driver\tready\n", "driver\tready\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1HPASSED", "PASSED"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x1b]52;c;cm0gLXJmIC8=\x07", ""),
        ("\x9d0;title\x9cafter", "after"),
        ("\x1bcreset", "reset"),
        ("\x1b(0line", "line"),
        ("failed\rpassed", "failed\npassed"),
        ("one\r\ntwo", "one\ntwo"),
        ("abc\b\b\bxyz", "abcxyz"),
        ("\x07bell\x00nul\x7fdel", "bellnuldel"),
        ("\u202egnp.exe", "gnp.exe"),
        ("\u2066isolate\u2069", "isolate"),
        ("\ud800half", "half"),
        ("\x1b]0;never ended", "0;never ended"),
        ("\x1b", ""),
        ("\x1b[", ""),
        ("Grüße, 東京, 😀", "Grüße, 東京, 😀"),
        # Removing a sequence must not create another one from the rest.
        ("\x1b\x1b[31m[2J", "[2J"),
        ("\x1b[3\x1b[31m1m", "31m"),
    ],
)
def test_what_terminals_obey_is_taken_out(written: str, shown: str) -> None:
    assert printable(written) == shown


PIECES = st.one_of(
    st.text(max_size=4),
    st.sampled_from(
        ["\x1b", "\x1b[", "\x9b", "\x1b]", "\x9d", "\x07", "\x9c", "\x1b\\", "31m", "\r", "\u202e", "\ud800"]
    ),
)


@hypothesis.settings(max_examples=300, deadline=None)
@hypothesis.given(st.lists(PIECES, max_size=12).map("".join))
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = printable(text)
    assert obeyed(shown) == []
    assert printable(shown) == shown
    assert printable_data({text: [text, 1, None, {"a": text}]}) == {shown: [shown, 1, None, {"a": shown}]}


@pytest.mark.parametrize("piece", ["\x1b]", "\x9d", "\x1b[", "\x1b[1;", "\x1b]x\x1b", "\x90\x1b"])
def test_no_log_takes_long(piece: str) -> None:
    started = time.process_time()
    printable(piece * (2**20 // len(piece)))
    assert time.process_time() - started < 5


def test_every_fault_is_printable() -> None:
    fault = Fault("pod a\x1b[2Jb", "node \x07n", "its log says \x1b]0;x\x07no\rno", "look\u202e at it")
    assert str(fault) == "pod ab (node n): its log says no\nno. Next: look at it"
    for error in (HwaccelError("a\x1b[31m", "b\x9b1m"), ManyFaults([fault, Fault("\x1bc")])):
        assert obeyed(str(error)) == []
        assert [obeyed(one.as_dict()["text"]) for one in error.faults] == [[]] * len(error.faults)
