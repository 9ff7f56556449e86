# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builtins of the shell: they change the shell itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fleet_agent.loop import Park, Process
from fleet_agent.shell import tools
from fleet_agent.shell.ends import Exit, Jump
from fleet_agent.shell.parse import parse


def _exit(shell: Any, argv: list[str], _values: dict[str, str]) -> Process:
    yield from ()
    raise Exit(int(argv[1]) & 255 if len(argv) > 1 and argv[1].isdigit() else shell.status)


def _jump(shell: Any, argv: list[str], _values: dict[str, str]) -> Process:
    default = shell.status if argv[0] == "return" else 1
    yield from ()
    raise Jump(argv[0], int(argv[1]) if len(argv) > 1 and argv[1].isdigit() else default)


def _set(shell: Any, argv: list[str], _values: dict[str, str]) -> Process:
    words = argv[1:]
    while words:
        word = words.pop(0)
        if word in ("-o", "+o") and words:
            name = {"errexit": "e", "nounset": "u", "xtrace": "x", "allexport": "a"}.get(words[0], words[0])
            words.pop(0)
            (shell.options.add if word == "-o" else shell.options.discard)(name)
        elif word == "--":
            shell.arguments = [shell.arguments[0], *words]
            break
        elif word[0] in "-+":
            letters = word[1:].replace("o", "")
            for letter in letters:
                (shell.options.add if word[0] == "-" else shell.options.discard)(letter)
            if "o" in word and words:
                shell.options.add(words.pop(0))
        else:
            shell.arguments = [shell.arguments[0], word, *words]
            break
    return 0
    yield


def _export(shell: Any, argv: list[str], _values: dict[str, str]) -> Process:
    for word in argv[1:]:
        name, equals, value = word.partition("=")
        if equals:
            shell.assign(name, value)
        shell.exported.add(name)
    return 0
    yield


def _unset(shell: Any, argv: list[str], _values: dict[str, str]) -> Process:
    for name in argv[1:]:
        shell.variables.pop(name, None)
    return 0
    yield


def _shift(shell: Any, argv: list[str], _values: dict[str, str]) -> Process:
    count = int(argv[1]) if len(argv) > 1 else 1
    shell.arguments = [shell.arguments[0], *shell.arguments[1 + count :]]
    return 0
    yield


def _eval(shell: Any, argv: list[str], _values: dict[str, str]) -> Process:
    return (yield from shell.run(parse(" ".join(argv[1:]))))


def _source(shell: Any, argv: list[str], _values: dict[str, str]) -> Process:
    try:
        text = shell.proc.view.read(argv[1])
    except OSError as error:
        shell.error(f"{argv[0]}: can't open '{argv[1]}': {error.strerror}")
        if argv[0] == "." and shell.posix:
            raise Exit(2) from error  # POSIX, 2.8.1 Consequences of Shell Errors
        return 1
    return (yield from shell.run(parse(text)))


def _exec(shell: Any, argv: list[str], values: dict[str, str]) -> Process:
    if len(argv) == 1:
        return 0
    if argv[1] not in tools.TOOLS and argv[1] != "sleep":
        shell.proc.container.ignores_term = False
    raise Exit((yield from shell.call(argv[1:], values)))


def _trap(shell: Any, argv: list[str], _values: dict[str, str]) -> Process:
    for name in argv[2:]:
        shell.traps[name.removeprefix("SIG")] = argv[1]
        if name.removeprefix("SIG") in ("TERM", "15") and argv[1]:
            shell.proc.container.ignores_term = False
    return 0
    yield


def _wait(shell: Any, _argv: list[str], _values: dict[str, str]) -> Process:
    yield Park()
    return 0


def _read(shell: Any, argv: list[str], _values: dict[str, str]) -> Process:
    names = [w for w in argv[1:] if not w.startswith("-")] or ["REPLY"]
    line, newline, shell.stdin = shell.stdin.partition("\n")
    if not line and not newline:
        return 1
    values = line.split(None, len(names) - 1) if len(names) > 1 else [line.strip()]
    for index, name in enumerate(names):
        shell.assign(name, values[index] if index < len(values) else "")
    return 0
    yield


def _command(shell: Any, argv: list[str], values: dict[str, str]) -> Process:
    """command NAME, command -v NAME, type NAME, which NAME"""
    words = [w for w in argv[1:] if not w.startswith("-")]
    if argv[0] == "command" and "-v" not in argv:
        return (yield from shell.call(words, values))
    known = bool(words) and (
        words[0] in BUILTINS
        or (words[0] in tools.TOOLS and words[0] != "nvidia-smi")
        or shell.proc.image_has(words[0])
        or (shell.proc.container.driver_injected and words[0] == "nvidia-smi")
    )
    if known:
        shell.out(words[0] + "\n")
    return int(not known)


def _double_bracket(shell: Any, argv: list[str], _values: dict[str, str]) -> Process:
    return int(not tools.evaluate_test(shell.proc.view, argv[1:-1], double=True))
    yield


def _cd(shell: Any, _argv: list[str], _values: dict[str, str]) -> Process:
    return 0
    yield


def _quiet(_shell: Any, _argv: list[str], _values: dict[str, str]) -> Process:
    return 0
    yield


BUILTINS: dict[str, Callable[..., Process]] = {
    ":": _quiet,
    "umask": _quiet,
    "ulimit": _quiet,
    "hash": _quiet,
    "jobs": _quiet,
    "shopt": _quiet,
    "cd": _cd,
    "exit": _exit,
    "return": _jump,
    "break": _jump,
    "continue": _jump,
    "set": _set,
    "export": _export,
    "local": _export,
    "declare": _export,
    "readonly": _export,
    "unset": _unset,
    "shift": _shift,
    "eval": _eval,
    ".": _source,
    "source": _source,
    "exec": _exec,
    "trap": _trap,
    "wait": _wait,
    "read": _read,
    "command": _command,
    "type": _command,
    "which": _command,
    "[[": _double_bracket,
}
