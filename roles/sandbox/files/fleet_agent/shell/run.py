# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One simulated shell process: the commands of a parsed script, run in order."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Callable, Generator
from typing import Any

from fleet_agent.loop import Park, Poll, Process, Sleep
from fleet_agent.shell import builtins, expansion, tools
from fleet_agent.shell.ends import Exit, Jump
from fleet_agent.shell.parse import Node, parse


class Shell:
    """State of one shell process."""

    def __init__(self, proc: Any, execute: Callable[..., Process], arguments: list[str], posix: bool = True) -> None:
        self.proc, self.execute = proc, execute
        self.posix = posix  # dash or BusyBox's, not bash: errors of special built-ins end it
        self.variables: dict[str, str] = dict(proc.env)
        self.exported: set[str] = set(proc.env)
        self.arguments = arguments
        self.functions: dict[str, Node] = {}
        self.options: set[str] = set()
        self.traps: dict[str, str] = {}
        self.status = 0
        self.out: Callable[[str], None] = proc.out
        self.stdin: str = proc.stdin
        self.acted = False  # It changed something in this iteration, so that the next one may behave differently.
        self._loops = 0
        self._turn: tuple[int, int] = (-1, -1)
        self._guarded = 0  # inside a condition, where errexit has no effect

    def parameter(self, name: str) -> str:
        special = {
            "?": str(self.status),
            "#": str(len(self.arguments) - 1),
            "$": "1",
            "!": "2",
            "-": "",
            "@": " ".join(self.arguments[1:]),
            "*": " ".join(self.arguments[1:]),
        }
        if name in special:
            return special[name]
        if name.isdigit():
            return self.arguments[int(name)] if int(name) < len(self.arguments) else ""
        if name not in self.variables and "u" in self.options:
            raise expansion.Unset(f"{name}: parameter not set")
        return self.variables.get(name, "")

    def assign(self, name: str, value: str) -> None:
        if self.variables.get(name) != value:
            self.acted = True
        self.variables[name] = value
        if "a" in self.options:
            self.exported.add(name)

    def capture(self, script: str) -> Process:
        """Output of a command substitution (a subshell)."""
        lines: list[str] = []
        saved = self.out, dict(self.variables)
        self.out = lines.append
        try:
            yield from self.run(parse(script))
        except Exit as end:
            self.status = end.code
        finally:
            self.out, self.variables = saved
        return "".join(lines)

    # -- nodes

    def run(self, node: Node) -> Process:
        self.status = yield from getattr(self, "_" + node[0])(node)
        return self.status

    def _list(self, node: Node) -> Process:
        for command in node[1]:
            yield from self.run(command)
            if (
                self.status
                and "e" in self.options
                and not self._guarded
                and command[0] in ("simple", "pipe", "subshell")
            ):
                raise Exit(self.status)
        return self.status

    def _condition(self, node: Node) -> Process:
        self._guarded += 1
        try:
            return (yield from self.run(node))
        finally:
            self._guarded -= 1

    def _andor(self, node: Node) -> Process:
        status = yield from self._condition(node[1])
        for index, (operator, command) in enumerate(node[2]):
            if (status == 0) == (operator == "&&"):
                last = index == len(node[2]) - 1
                status = yield from (self.run(command) if last else self._condition(command))
                if last and status and "e" in self.options and not self._guarded:
                    raise Exit(status)
        return status

    def _pipe(self, node: Node) -> Process:
        saved = self.out, self.stdin
        text, codes = self.stdin, []
        for index, command in enumerate(node[2]):
            lines: list[str] = []
            self.stdin = text
            self.out = saved[0] if index == len(node[2]) - 1 else lines.append
            codes.append((yield from self._condition(command) if node[1] else self.run(command)))
            text = "".join(lines)
        self.out, self.stdin = saved
        status = next((c for c in reversed(codes) if c), 0) if "pipefail" in self.options else codes[-1]
        return int(not status) if node[1] else status

    def _background(self, node: Node) -> Process:
        if node[1][0] == "simple" and node[1][2][:1] == ("sleep",):
            return 0
        return (yield from self.run(node[1]))

    def _if(self, node: Node) -> Process:
        for condition, body in node[1]:
            if (yield from self._condition(condition)) == 0:
                return (yield from self.run(body))
        return (yield from self.run(node[2])) if node[2] else 0

    def _while(self, node: Node) -> Process:
        until, condition, body = node[1:]
        status = 0
        self._loops += 1
        try:
            while True:
                self._turn, self.acted = self._world(), False
                if ((yield from self._condition(condition)) == 0) == until:
                    return status
                status, goes_on = yield from self._once(body)
                if not goes_on:
                    return status
        finally:
            self._loops -= 1

    def _once(self, body: Node) -> Generator[Any, Any, tuple[int, bool]]:
        """One iteration of a loop: its status, which break and continue set to 0, and whether the loop continues."""
        try:
            return (yield from self.run(body)), True
        except Jump as jump:
            if jump.kind == "return":
                raise
            if jump.value > 1:
                raise Jump(jump.kind, jump.value - 1) from jump
            return 0, jump.kind != "break"

    def _world(self) -> tuple[int, int]:
        return self.proc.host.version, self.proc.view.writes

    def _for(self, node: Node) -> Process:
        name, words, body = node[1:]
        values = list(self.arguments[1:]) if words is None else []
        for word in words or ():
            values += yield from expansion.expand(self, word)
        status = 0
        for value in values:
            self.variables[name] = value  # This does not count as a change for an outer loop.
            status, goes_on = yield from self._once(body)
            if not goes_on:
                break
        return status

    def _case(self, node: Node) -> Process:
        subject = yield from expansion.flat(self, node[1])
        for patterns, body in node[2]:
            for pattern in patterns:
                if fnmatch.fnmatchcase(subject, (yield from expansion.flat(self, pattern))):
                    return (yield from self.run(body))
        return 0

    def _group(self, node: Node) -> Process:
        return (yield from self._redirected(node[2], self.run(node[1])))

    def _subshell(self, node: Node) -> Process:
        saved = dict(self.variables)
        try:
            return (yield from self._redirected(node[2], self.run(node[1])))
        except Exit as end:
            return end.code
        finally:
            self.variables = saved

    def _function(self, node: Node) -> Process:
        self.functions[node[1]] = node[2]
        return 0
        yield

    # -- commands

    def _redirected(self, redirections: tuple[tuple[str, str, str], ...], process: Process) -> Process:
        if not redirections:
            return (yield from process)
        saved = self.out, self.stdin
        files: list[tuple[str, list[str]]] = []
        try:
            for descriptor, kind, word in redirections:
                target = yield from expansion.flat(self, word)
                if kind == "<<":
                    self.stdin = target
                elif kind == "<":
                    self.stdin = self.proc.view.read(target)
                elif kind in (">", ">>", "&>") and descriptor != "2":
                    self.proc.view.write(target, "", append=kind == ">>")
                    lines: list[str] = []
                    files.append((target, lines))
                    self.out = lines.append
            return (yield from process)
        except OSError as error:
            self.out = saved[0]
            self.error(f"{error.filename}: {error.strerror}")
            return 1
        finally:
            self.out, self.stdin = saved
            for target, lines in files:
                if lines:
                    self.proc.view.write(target, "".join(lines), append=True)

    def _simple(self, node: Node) -> Process:
        _kind, assignments, words, redirections = node
        return (yield from self._redirected(redirections, self._command(assignments, words)))

    def _command(self, assignments: tuple[tuple[str, str], ...], words: tuple[str, ...]) -> Process:
        values = {}
        for name, word in assignments:
            self.status = 0
            value = yield from expansion.flat(self, word)
            values[name.rstrip("+")] = self.variables.get(name[:-1], "") + value if name.endswith("+") else value
        argv: list[str] = []
        for word in words:
            if word == '"$@"':
                argv += self.arguments[1:]
            else:
                argv += yield from expansion.expand(self, word)
        if not argv:
            for name, value in values.items():
                self.assign(name, value)
            return self.status if assignments else 0
        if "x" in self.options:
            self.out("+ " + " ".join(argv) + "\n")
        return (yield from self.call(argv, values))

    def call(self, argv: list[str], values: dict[str, str] | None = None) -> Process:
        """A function, builtin, tool or program of the image by name."""
        name = argv[0]
        if name in self.functions:
            saved, self.arguments = self.arguments, [self.arguments[0], *argv[1:]]
            try:
                return (yield from self.run(self.functions[name]))
            except Jump as jump:
                if jump.kind != "return":
                    raise
                return jump.value
            finally:
                self.arguments = saved
        if name in builtins.BUILTINS:
            return (yield from builtins.BUILTINS[name](self, argv, values or {}))
        if name == "sleep":
            return (yield from self._sleep(argv))
        proc = dataclasses.replace(
            self.proc,
            argv=argv,
            env={**{k: self.variables[k] for k in self.exported if k in self.variables}, **(values or {})},
            out=self.out,
            stdin=self.stdin,
        )
        tool = tools.TOOLS.get(name.rsplit("/", 1)[-1])
        if tool and not self.proc.image_has(name):
            return (yield from tool(proc))
        self.acted = self.acted or name.rsplit("/", 1)[-1] not in ("nvidia-smi", "lsmod")
        return (yield from self.execute(proc))

    def _sleep(self, argv: list[str]) -> Process:
        seconds = tools.seconds(argv[1]) if len(argv) > 1 else None
        if seconds is None:
            self.error(f"sleep: invalid time interval '{' '.join(argv[1:])}'")
            return 1
        if seconds == float("inf"):
            yield Park()
        elif self._loops and not self.acted and self._turn == self._world():
            yield Poll(seconds, self.proc.host)
        else:
            yield Sleep(seconds)
        return 0

    def error(self, text: str) -> None:
        self.proc.out(f"sh: line 1: {text}\n")
