# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values and command lines as Go's standard library and urfave/cli read them, with their messages.

Go 1.25 flag, strconv and time; urfave/cli v2.27.7 (flag_*.go) and v3.10.1 (command_parse.go, flag_impl.go), as NVIDIA's programs have them.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

Value = str | bool | int | float | tuple[str, ...]

_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|ms|s|m|h)")


class Invalid(Exception):
    """A value that is none of its kind. The string is what Go's strconv or time says."""


class Refused(Exception):
    """A command line or an environment that the program does not accept. usage: the error comes with the usage."""

    def __init__(self, message: str, usage: bool = True) -> None:
        super().__init__(message)
        self.usage = usage


@dataclasses.dataclass(frozen=True)
class Flag:
    """One flag. env: variables, the first that is set counts. values: what is accepted, all if empty. refused: the message for anything else.

    field: its place in the program's configuration file, without which it has none.
    """

    name: str
    kind: str = "string"
    default: Value = ""
    env: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    refused: str = ""
    field: str = ""
    required: bool = False

    def refusal(self, value: Any) -> str:
        """The program's message about a value that it does not accept, empty if it accepts it."""
        for one in value if isinstance(value, tuple) else (value,):
            if self.values and one not in self.values:
                return self.refused.format(value=one)
        return ""


def duration(text: str) -> float:
    """Seconds of time.ParseDuration. Raises Invalid."""
    sign, rest = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    parts = _PART.findall(rest)
    if not parts or "".join(number + unit for number, unit in parts) != rest:
        unit = "missing unit in" if re.fullmatch(r"\d+\.?\d*|\.\d+", rest) else "invalid"
        raise Invalid(f'time: {unit} duration "{text}"')
    return sign * sum(float(number) * _UNITS[unit] for number, unit in parts)


def _interval(text: str) -> float:
    """DurationValue of NVIDIA/k8s-device-plugin v0.20.0, api/config/v1/duration.go."""
    return math.inf if text == "infinite" else duration(text)


def _boolean(text: str) -> bool:
    if text not in (*_TRUE, *_FALSE):
        raise Invalid(f'strconv.ParseBool: parsing "{text}": invalid syntax')
    return text in _TRUE


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?(\d+|0[xX][0-9a-fA-F]+)", text):
        raise Invalid(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text, 16 if "x" in text.lower() else 10)


def _unsigned(text: str) -> int:
    if not text.isdigit():
        raise Invalid(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Invalid(f'strconv.ParseFloat: parsing "{text}": invalid syntax') from None


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise Invalid(f"error parsing regexp: {error}") from error
    return text


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


KINDS: dict[str, Callable[[str], Value]] = {
    "string": str,
    "bool": _boolean,
    "int": _integer,
    "uint": _unsigned,
    "float": _number,
    "duration": duration,
    "interval": _interval,
    "regexp": _expression,
    "strings": _words,
    "ints": lambda text: tuple(str(_integer(word)) for word in _words(text)),
}
#: Names of kinds in messages of urfave/cli, where they are others.
_NAMES_V2 = {"strings": "string", "ints": "int slice", "uint": "uint", "float": "float64"}
_NAMES_V3 = {"strings": "[]string", "ints": "[]int", "duration": "time.Duration", "float": "float64"}
#: Kinds about which Go's own flag package says no more than this. flag.Value of others brings its message.
_PARSE_ERROR = ("bool", "int", "uint", "float", "duration")

Values = dict[str, Value]


def of_environment_v2(flags: list[Flag], env: dict[str, str]) -> Values:
    """Apply of each flag: before the command line is read. Of an empty variable a string and a list take the empty value, a bool is false."""
    found: Values = {}
    for flag in flags:
        name = next((one for one in flag.env if one in env), "")
        if not name:
            continue
        text = env[name]
        if not text and flag.kind not in ("string", "strings", "bool"):
            continue
        try:
            found[flag.name] = False if flag.kind == "bool" and not text else KINDS[flag.kind](text)
        except Invalid as error:
            place = f'environment variable "{name}"'
            if flag.kind == "interval":
                raise Refused(
                    f'could not parse "{text}" from {place} as value for flag {flag.name}: {error}'
                ) from error
            kind = _NAMES_V2.get(flag.kind, flag.kind)
            raise Refused(
                f'could not parse "{text}" as {kind} value from {place} for flag {flag.name}: {error}'
            ) from error
    return found


def of_environment_v3(flags: list[Flag], env: dict[str, str], given: Values) -> Values:
    """PostParse of each flag: after the command line, and only if that does not have the flag."""
    found: Values = {}
    for flag in flags:
        name = next((one for one in flag.env if one in env), "")
        if not name or flag.name in given:
            continue
        text = env[name]
        if not text and flag.kind not in ("string", "bool"):
            continue
        try:
            found[flag.name] = False if flag.kind == "bool" and not text else KINDS[flag.kind](text)
        except Invalid as error:
            kind = _NAMES_V3.get(flag.kind, flag.kind)
            why = "parse error" if flag.kind == "bool" else str(error)
            raise Refused(
                f'could not parse "{text}" as {kind} value from environment variable "{name}" for flag {flag.name}: {why}',
                usage=False,
            ) from error
    return found


def of_command_line(by_name: dict[str, Flag], words: list[str], interspersed: bool) -> tuple[Values, list[str]]:
    """Values of flags, and the other words. interspersed: as urfave/cli v3, which looks for flags behind other words as well; Go's flag does not."""
    found: Values = {}
    rest: list[str] = []
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "--":
            return found, rest + words
        if len(word) < 2 or not word.startswith("-"):
            if not interspersed:
                return found, [word, *words]
            rest.append(word)
            continue
        name, equals, text = word.removeprefix("--" if word.startswith("--") else "-").partition("=")
        if not interspersed and (not name or name[0] in "-="):
            raise Refused(f"bad flag syntax: {word}")
        flag = by_name.get(name)
        if flag is None:
            raise Refused(f"flag provided but not defined: -{name}")
        if flag.kind == "bool":
            text = text if equals and (text or not interspersed) else "true"
        elif not equals:
            if not words:
                raise Refused(f"flag needs an argument: {word if interspersed else '-' + name}")
            text = words.pop(0)
        found[flag.name] = _read(flag, name, text, interspersed)
    return found, rest


def _read(flag: Flag, name: str, text: str, urfave_v3: bool) -> Value:
    try:
        return KINDS[flag.kind](text)
    except Invalid as error:
        plain = flag.kind == "bool" if urfave_v3 else flag.kind in _PARSE_ERROR
        why = "parse error" if plain else str(error)
        if flag.kind == "bool" and not urfave_v3:
            raise Refused(f'invalid boolean value "{text}" for -{name}: {why}') from error
        raise Refused(f'invalid value "{text}" for flag -{name}: {why}') from error
