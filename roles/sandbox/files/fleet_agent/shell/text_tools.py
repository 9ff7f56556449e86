# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that read lines and write lines, and what all small tools share."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from fleet_agent.loop import Process


def plain(function: Callable[[Any, list[str], list[str]], int]) -> Callable[[Any], Process]:
    """A tool from a function of (process, option letters, other words) that never waits. Its OSErrors become the usual message."""

    @functools.wraps(function)
    def run(proc: Any) -> Process:
        name = proc.argv[0].rsplit("/", 1)[-1]
        letters = [
            c
            for w in proc.argv[1:]
            if re.fullmatch(r"-[A-Za-z]+|--[a-z-]+", w)
            for c in ([w] if w.startswith("--") else w[1:])
        ]
        words = [w for w in proc.argv[1:] if not re.fullmatch(r"-[A-Za-z]+|--[a-z-]+", w)]
        try:
            return function(proc, letters, words)
        except OSError as error:
            proc.container.write_log(f"{name}: {error.filename}: {error.strerror}\n")
            return 1
        yield

    return run


def inputs(proc: Any, files: list[str]) -> str:
    return "".join(proc.view.read(f) for f in files) if files else proc.stdin


@plain
def _grep(proc: Any, letters: list[str], words: list[str]) -> int:
    pattern = words[0] if words else ""
    if "F" in letters:
        pattern = re.escape(pattern)
    elif "E" not in letters:
        pattern = re.sub(r"\\([|+?(){}])", r"\1", pattern)
    expression = re.compile(
        pattern.replace("[[:space:]]", r"\s").replace("[^[:space:]]", r"\S"), re.I if "i" in letters else 0
    )
    found = [line for line in inputs(proc, words[1:]).splitlines() if bool(expression.search(line)) != ("v" in letters)]
    if "c" in letters:
        proc.say(str(len(found)))
    elif "q" not in letters:
        pieces = [m for line in found for m in expression.findall(line)] if "o" in letters else found
        proc.out("".join(f"{line}\n" for line in pieces))
    return int(not found)


@plain
def _wc(proc: Any, letters: list[str], words: list[str]) -> int:
    text = inputs(proc, words)
    proc.say(str(text.count("\n") if "l" in letters else len(text.split()) if "w" in letters else len(text)))
    return 0


def _count(proc: Any, default: int = 10) -> int:
    match = re.search(r"-(?:n\s*)?(\d+)", " ".join(proc.argv[1:]))
    return int(match[1]) if match else default


@plain
def _head(proc: Any, _letters: list[str], words: list[str]) -> int:
    files = [w for w in words if not re.fullmatch(r"-?\d+", w)]
    lines = inputs(proc, files).splitlines(keepends=True)
    proc.out("".join(lines[: _count(proc)] if proc.argv[0].endswith("head") else lines[-_count(proc) :]))
    return 0


@plain
def _cut(proc: Any, _letters: list[str], _words: list[str]) -> int:
    text = " ".join(proc.argv[1:])
    delimiter, field = re.search(r"-d\s*['\"]?(.)", text), re.search(r"-f\s*(\d+)", text)
    for line in proc.stdin.splitlines():
        parts = line.split(delimiter[1] if delimiter else "\t")
        index = int(field[1]) - 1 if field else 0
        proc.say(parts[index] if index < len(parts) else "")
    return 0


@plain
def _awk(proc: Any, _letters: list[str], words: list[str]) -> int:
    match = re.search(r"\{\s*print \$(NF|\d+)\s*\}", " ".join(words))
    separator = re.search(r"-F\s*(\S)", " ".join(proc.argv[1:]))
    if not match:
        proc.container.write_log("awk: only {print $N} is simulated\n")
        return 2
    for line in proc.stdin.splitlines():
        parts = line.split(separator[1]) if separator else line.split()
        index = len(parts) if match[1] == "NF" else int(match[1])
        proc.say(line if index == 0 else parts[index - 1] if 0 < index <= len(parts) else "")
    return 0


@plain
def _sed(proc: Any, _letters: list[str], words: list[str]) -> int:
    match = re.match(r"s(.)(.*?)(?<!\\)\1(.*?)(?<!\\)\1(g?)$", words[0] if words else "")
    if not match:
        proc.container.write_log("sed: only s/// is simulated\n")
        return 2
    new = re.sub(r"&", r"\\g<0>", match[3])
    proc.out(
        "".join(
            re.sub(match[2], new, line, count=0 if match[4] else 1) + "\n"
            for line in inputs(proc, words[1:]).splitlines()
        )
    )
    return 0


@plain
def _tr(proc: Any, letters: list[str], words: list[str]) -> int:
    old, new = (w.replace("\\n", "\n") for w in [*words, ""][:2])
    if "d" in letters:
        proc.out("".join(c for c in proc.stdin if c not in old))
    else:
        proc.out(
            proc.stdin.translate(str.maketrans(old, new.ljust(len(old), new[-1:])[: len(old)])) if new else proc.stdin
        )
    return 0


@plain
def _sort(proc: Any, letters: list[str], words: list[str]) -> int:
    lines = inputs(proc, words).splitlines()
    lines = sorted(lines) if proc.argv[0].endswith("sort") else lines
    unique = "u" in letters or proc.argv[0].endswith("uniq")
    proc.out("".join(line + "\n" for line in (dict.fromkeys(lines) if unique else lines)))
    return 0


TOOLS: dict[str, Callable[[Any], Process]] = {
    "grep": _grep,
    "egrep": _grep,
    "wc": _wc,
    "head": _head,
    "tail": _head,
    "cut": _cut,
    "awk": _awk,
    "sed": _sed,
    "tr": _tr,
    "sort": _sort,
    "uniq": _sort,
}
