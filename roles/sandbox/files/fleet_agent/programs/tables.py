# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the real programs accept and call, as data: data/programs has one table a program, taken from its source.

A simulated program asks its settings for flags and variables by name. A name that is not in its table is an error of the simulation, and so is a
request that the table does not have. What the command line or the environment has beside the table ends the program as it ends the real one; variables
that no program reads have no effect, as there.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable
from typing import Any

import yaml

from fleet_agent.loop import Process
from fleet_agent.programs import flags
from fleet_agent.programs.flags import Flag, Refused, Value

FOLDER = os.path.join(os.path.dirname(__file__), os.pardir, "data", "programs")
#: Exit status of Go's flag.ExitOnError.
_USAGE_ERROR = 2
#: Of urfave/cli: these are flags of every program.
_OWN = {"help": Flag("help", "bool", False, aliases=("h",)), "version": Flag("version", "bool", False, aliases=("v",))}


class Unknown(Exception):
    """The simulation uses what is not in the table of the program."""


@dataclasses.dataclass(frozen=True)
class Call:
    """One request to the API server. resource: with a subresource, as in pods/eviction. source: file and line.

    condition: what the settings must have for it, nothing for a request of every run.
    """

    verb: str
    group: str
    resource: str
    source: str
    condition: tuple[tuple[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class Table:
    """One program. style: how it reads its command line. error: what it prints before it ends, and code its exit status then."""

    program: str
    source: str
    style: str
    title: str
    error: str
    code: int
    flags: tuple[Flag, ...]
    commands: tuple[str, ...]
    environment: frozenset[str]
    calls: tuple[Call, ...]

    @functools.cached_property
    def by_name(self) -> dict[str, Flag]:
        own = () if self.style == "getopt" else _OWN.values() if self.style.startswith("urfave") else (_OWN["help"],)
        known = {name: flag for flag in own for name in (flag.name, *flag.aliases)}
        return known | {name: flag for flag in self.flags for name in (flag.name, *flag.aliases)}

    def has_call(self, verb: str, group: str, resource: str) -> bool:
        return any((call.verb, call.group, call.resource) == (verb, group, resource) for call in self.calls)


class Settings:
    """Flags of one process, and the variables that its program reads itself."""

    def __init__(self, table: Table, given: dict[str, Value], words: list[str], env: dict[str, str]) -> None:
        self.table, self.words = table, words
        self._given, self._env = given, env

    def __getitem__(self, name: str) -> Any:
        flag = self._flag(name)
        return self._given.get(name, flag.default)

    def given(self, name: str) -> bool:
        """Whether command line or environment has the flag."""
        return self._flag(name).name in self._given

    def variable(self, name: str) -> str:
        """A variable that the program reads itself; empty if it is not set."""
        if name not in self.table.environment:
            raise Unknown(f"{self.table.program} does not read {name} ({self.table.source})")
        return self._env.get(name, "")

    def refusal(self, name: str, value: Any) -> str:
        return self._flag(name).refusal(value)

    def _flag(self, name: str) -> Flag:
        flag = self.table.by_name.get(name)
        if flag is None:
            raise Unknown(f"{self.table.program} has no flag {name} ({self.table.source})")
        return flag


@functools.cache
def table_of(program: str) -> Table | None:
    """By the name of the executable file. None: data/programs has no table for it."""
    path = os.path.join(FOLDER, f"{_ALIASES.get(program, program)}.yaml")
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as stream:
        data = dict(yaml.safe_load(stream))
    rows = dict(data.get("flags") or {})
    for name in data.get("include") or ():
        with open(os.path.join(FOLDER, f"{name}.yaml"), encoding="utf-8") as stream:
            rows |= yaml.safe_load(stream)["flags"]
    return Table(
        data["program"],
        data["source"],
        data["style"],
        data.get("title", data["program"]),
        data.get("error", "{message}"),
        int(data.get("code", 1)),
        tuple(_flag(name, row or {}) for name, row in rows.items()),
        tuple(data.get("commands") or ()),
        frozenset(data.get("environment") or ()),
        tuple(_call(row) for row in data.get("calls") or ()),
    )


#: Executable files that are links to another one, or the same one in another image.
_ALIASES = {"nvidia-toolkit": "nvidia-ctk-installer", "k8s-driver-manager": "driver-manager"}
_EMPTY: dict[str, Value] = {"string": "", "regexp": "", "bool": False, "strings": (), "ints": ()}


def _flag(name: str, row: dict[str, Any]) -> Flag:
    kind = row.get("kind", "string")
    default = row.get("default", _EMPTY.get(kind, 0))
    if isinstance(default, str) and kind not in ("string", "regexp"):
        default = flags.KINDS[kind](default)
    return Flag(
        name,
        kind,
        tuple(default) if isinstance(default, list) else default,
        tuple(row.get("env") or ()),
        tuple(row.get("aliases") or ()),
        tuple(row.get("values") or ()),
        row.get("refused", ""),
        row.get("field", ""),
        bool(row.get("required")),
    )


def _call(row: dict[str, Any]) -> Call:
    return Call(row["verb"], row.get("group", ""), row["resource"], row["source"], tuple((row.get("if") or {}).items()))


def read(table: Table, argv: list[str], env: dict[str, str]) -> Settings:
    """Raises Refused."""
    if table.style == "urfave v3":
        given, words = flags.of_command_line(table.by_name, argv[1:], interspersed=True)
        given |= flags.of_environment_v3(list(table.flags), env, given)
    elif table.style == "urfave v2":
        given = flags.of_environment_v2(list(table.flags), env)
        more, words = flags.of_command_line(table.by_name, argv[1:], interspersed=False)
        given |= more
        missing = [flag.name for flag in table.flags if flag.required and flag.name not in given]
        if missing and "help" not in more:
            raise Refused(f'Required flag{"s" if missing[1:] else ""} "{", ".join(missing)}" not set')
    elif table.style == "flag":
        # A program of NFD skips empty words (parseArgs in cmd/nfd-master/main.go).
        given, words = flags.of_command_line(table.by_name, [word for word in argv[1:] if word], interspersed=False)
        if words:
            raise Refused(f"unknown command line argument: {words[0]}")
    else:
        given, words = {}, argv[1:]
    return Settings(table, given, words, env)


def checked(program: str, function: Callable[[Any], Process]) -> Callable[[Any], Process]:
    """The program with its settings; a program without a table as it is."""
    table = table_of(program)
    if table is None:
        return function

    def run(proc: Any) -> Process:
        try:
            proc.settings = read(table, proc.argv, proc.env)
        except Refused as refused:
            return _refuse(proc, table, refused)
        if table.style != "getopt" and proc.settings["help"]:
            _usage(proc, table)
            return 0
        return (yield from function(proc))

    return run


def _refuse(proc: Any, table: Table, refused: Refused) -> int:
    message = str(refused)
    if table.style == "flag":
        proc.say(message)
        _usage(proc, table)
        return _USAGE_ERROR
    if refused.usage:
        if not message.startswith("Required flag"):
            proc.say(f"Incorrect Usage: {message}\n")
        _usage(proc, table)
    proc.say(table.error.format(message=message))
    return table.code


def _usage(proc: Any, table: Table) -> None:
    if table.style == "flag":
        proc.say(f"Usage of {table.program}:")
        for flag in table.flags:
            proc.say(f"  -{flag.name}")
        return
    proc.say(f"NAME:\n   {table.title}\n\nUSAGE:\n   {table.title} [global options]\n\nGLOBAL OPTIONS:")
    for flag in table.flags:
        names = ", ".join(f"--{name}" if len(name) > 1 else f"-{name}" for name in (flag.name, *flag.aliases))
        variables = ", ".join(f"${name}" for name in flag.env)
        proc.say(f"   {names}{f' [{variables}]' if variables else ''}")


# -- requests


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/[^/]+(?=/[^/]))?/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?"
)


def request_of(method: str, path: str) -> tuple[str, str, str]:
    """Verb, group and resource, as RBAC has them. Raises ValueError for a path outside of the API."""
    match = _PATH.fullmatch(path)
    if not match:
        raise ValueError(path)
    verb = _VERBS.get(method) or ("get" if match["name"] else "list")
    return verb, match["group"] or "", f"{match['resource']}/{match['sub']}" if match["sub"] else match["resource"]


def confirm(settings: Settings | None, *requests: tuple[str, str, str]) -> None:
    """Raises Unknown for a request that the table of the program does not have."""
    for verb, group, resource in requests if settings else ():
        if settings and not settings.table.has_call(verb, group, resource):
            raise Unknown(f"{settings.table.program} does not {verb} {resource} {group} ({settings.table.source})")
