# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs shell scripts of containers as simulated processes."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Callable
from typing import Any

from fleet_agent.loop import Park, Process, Terminated
from fleet_agent.shell import builtins, expansion, tools
from fleet_agent.shell.ends import Exit, Jump
from fleet_agent.shell.parse import ShellSyntax, parse
from fleet_agent.shell.run import Shell


class UnknownProgram(Exception):
    """A program that an unknown image may have."""


def is_tool(name: str) -> bool:
    return name in tools.TOOLS or name in builtins.BUILTINS or name == "sleep"


def _script(proc: Any, execute: Callable[..., Process], text: str, arguments: list[str], name: str) -> Process:
    shell = Shell(proc, execute, arguments, posix=name != "bash")
    first = proc.container.image.family == ""
    try:
        node = parse(text)
    except ShellSyntax as error:
        if first:
            proc.say(f"[sandbox] the script is not simulated ({error}): the container just runs")
            yield Park()
            return 0
        shell.error(f"syntax error: {error}")
        return 2
    try:
        return (yield from shell.run(node))
    except Exit as end:
        return end.code
    except Jump:
        return shell.status
    except Terminated:
        return (yield from _trapped(shell))
    except (expansion.Unset, ShellSyntax) as error:
        shell.error(str(error))
        return 1
    except UnknownProgram as error:
        proc.say(f"[sandbox] {error} is not simulated: the container just runs")
        yield Park()
        return 0


def _trapped(shell: Shell) -> Process:
    """SIGTERM with a trap: the trap's commands, then the shell's usual end."""
    handler = shell.traps.get("TERM") or shell.traps.get("15")
    if not handler:
        raise Terminated
    try:
        yield from shell.run(parse(handler))
    except Exit as end:
        return end.code
    return 143


def run_shell(proc: Any, execute: Callable[..., Process]) -> Process:
    """sh [-c script [name args] | file args]"""
    name, options, rest = posixpath.basename(proc.argv[0]), "", list(proc.argv[1:])
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        options += rest.pop(0)[1:]
    if "c" in options:
        if not rest:
            proc.say(f"{proc.argv[0]}: -c: option requires an argument")
            return 2
        prefix = "".join(f"set -{o}\n" for o in options if o in "eux")
        _direct(proc, rest[0])
        return (yield from _script(proc, execute, prefix + rest[0], rest[1:] or [proc.argv[0]], name))
    if not rest:
        return (yield from _script(proc, execute, proc.stdin, [proc.argv[0]], name))
    return (yield from run_file(dataclasses.replace(proc, argv=rest), rest[0], execute, name))


def _direct(proc: Any, script: str) -> None:
    """A shell replaces itself by a single command: which then is PID 1 with its own signal handling."""
    try:
        commands = parse(script)[1]
    except ShellSyntax:
        return
    if len(commands) == 1 and commands[0][0] == "simple" and commands[0][2]:
        name = commands[0][2][0]
        proc.container.ignores_term = proc.container.ignores_term and is_tool(name)


def run_file(proc: Any, path: str, execute: Callable[..., Process], name: str = "") -> Process:
    """name: of the shell; by default the one in the file's first line."""
    try:
        text = proc.view.read(path)
    except OSError as error:
        proc.say(f"sh: 0: cannot open {path}: {error.strerror}")
        return 2
    return (
        yield from _script(
            proc, execute, text, [path, *proc.argv[1:]], name or text.partition("\n")[0].rpartition("/")[2]
        )
    )


def run_words(proc: Any, execute: Callable[..., Process]) -> Process:
    """A command without a shell, which may be one of the common tools."""
    name = proc.argv[0].rsplit("/", 1)[-1]
    if name == "sleep":
        return (yield from Shell(proc, execute, ["sh"]).call(proc.argv))
    if name in tools.TOOLS:
        return (yield from tools.TOOLS[name](proc))
    if not proc.container.image.family:
        raise UnknownProgram(name)
    proc.say(
        f"sh: line 1: {proc.argv[0]}: " + ("No such file or directory" if "/" in proc.argv[0] else "command not found")
    )
    return 127
