# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of others as a terminal may show it. Pure.

Whoever runs a pod writes its log, and whoever may write an object its annotations and messages. A terminal obeys control characters: it retitles its
window, moves to lines above and overwrites them, and some answer as if somebody had typed.
"""

from __future__ import annotations

import re
import typing as t

_ESC = "\x1b"
#: C0 but tab and line feed, DEL, C1; marks, embeddings, overrides and isolates of direction (Unicode, UAX 9, section 2); the line and paragraph
#: separators; halves of surrogate pairs, which is what bytes that are no UTF-8 become where they are kept.
_REFUSED = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_ANY = re.compile(f"[{_REFUSED}]")
#: As ECMA-48 has them, section 5.4 (control sequences), 5.6 (control strings) and 5.5 with ECMA-35 (other escape sequences). A control string that
#: nobody ends is text: what it holds is shown, and no pattern reads past the next control character.
_SEQUENCE = re.compile(
    f"(?:{_ESC}\\[|\x9b)[0-?]*[ -/]*[@-~]"
    f"|(?:{_ESC}[PX\\]^_]|[\x90\x98\x9d-\x9f])[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x9c|{_ESC}\\\\)"
    f"|{_ESC}[ -/]*[0-~]"
)


def printable(text: str) -> str:
    """The text without what a terminal would obey; tabs and line ends stay, a carriage return becomes a line end, so that it hides nothing."""
    if not _ANY.search(text):
        return text
    return _ANY.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def printable_data(value: t.Any) -> t.Any:
    """Plain data with every text in it, keys too, made printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable_data(key): printable_data(item) for key, item in value.items()}
    return [printable_data(item) for item in value] if isinstance(value, list) else value
