# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes text from elsewhere safe to show on a terminal. Pure.

Logs come from any pod, and annotations and messages from anyone who may write the object. A terminal obeys control characters in them: it changes its
title, moves the cursor and overwrites lines, and some terminals answer as if the user had typed.
"""

from __future__ import annotations

import re
import typing as t

_ESC = "\x1b"
#: C0 except tab and line feed, DEL, C1; marks, embeddings, overrides and isolates of direction (Unicode, UAX 9, section 2); the line and paragraph
#: separators; halves of surrogate pairs, which represent bytes that are not valid UTF-8.
_REFUSED = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_ANY = re.compile(f"[{_REFUSED}]")
#: Defined in ECMA-48, sections 5.4 (control sequences), 5.6 (control strings) and 5.5 with ECMA-35 (other escape sequences). A control string that
#: is not terminated is text: its content is shown, and no pattern reads past the next control character.
_SEQUENCE = re.compile(
    f"(?:{_ESC}\\[|\x9b)[0-?]*[ -/]*[@-~]"
    f"|(?:{_ESC}[PX\\]^_]|[\x90\x98\x9d-\x9f])[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x9c|{_ESC}\\\\)"
    f"|{_ESC}[ -/]*[0-~]"
)


def printable(text: str) -> str:
    """The text without terminal control characters. Tabs and line ends are kept. A carriage return becomes a line end, so that it cannot hide text."""
    if not _ANY.search(text):
        return text
    return _ANY.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def printable_data(value: t.Any) -> t.Any:
    """Plain data with every string in it, including keys, made printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable_data(key): printable_data(item) for key, item in value.items()}
    return [printable_data(item) for item in value] if isinstance(value, list) else value
