# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions of `test`, `[` and `[[`. Pure except for the view that it reads."""

from __future__ import annotations

import fnmatch
import re
from typing import Any

_NUMBERS = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}


def evaluate_test(view: Any, words: list[str], double: bool = False) -> bool:
    """-a, -o, ! and one or two operands; an invalid condition is false, like a failed test."""
    for operator, combine in (("-o", any), ("||", any), ("-a", all), ("&&", all)):
        if operator in words and len(words) > 3:
            parts: list[list[str]] = [[]]
            for word in words:
                if word == operator:
                    parts.append([])
                else:
                    parts[-1].append(word)
            return combine(evaluate_test(view, part, double) for part in parts)
    if words[:1] == ["!"]:
        return not evaluate_test(view, words[1:], double)
    if len(words) == 1:
        return words[0] != ""
    if len(words) == 2:
        return _unary(view, *words)
    return _binary(words[0], words[1], words[2], double) if len(words) == 3 else False


def _unary(view: Any, operator: str, word: str) -> bool:
    if operator in ("-z", "-n"):
        return (word == "") == (operator == "-z")
    if operator == "-d":
        return bool(view.is_folder(word))
    if operator in ("-f", "-r", "-c", "-S", "-b", "-L", "-h", "-x"):
        return bool(view.is_file(word) or (operator in ("-r", "-x") and view.is_folder(word)))
    if operator in ("-e", "-a"):
        return bool(view.exists(word))
    if operator == "-s":
        return bool(view.is_file(word) and view.read(word))
    return False


def _binary(left: str, operator: str, right: str, double: bool) -> bool:
    if operator in _NUMBERS:
        try:
            return bool(_NUMBERS[operator](int(left), int(right)))
        except ValueError:
            return False
    if operator == "=~":
        return re.search(right, left) is not None
    equal = fnmatch.fnmatchcase(left, right) if double else left == right
    return {"=": equal, "==": equal, "!=": not equal, "<": left < right, ">": left > right}.get(operator, False)
