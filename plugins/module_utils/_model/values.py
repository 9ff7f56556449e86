# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of single values from an inventory. Pure.

A check takes the value and its place, and returns its errors. Answers of surveys are strings, so "8" is a number and "true" a Boolean.
"""

from __future__ import annotations

import collections.abc as c
import difflib
import math
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some

Check = c.Callable[[t.Any, str], list[Fault]]

#: Maximum length of a value in a message.
_SHOWN = 60
_LIMIT = re.compile(r"([0-9]{1,6})(?:\s*(%))?", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
#: "5m", "300s", "2 h": values with a unit, where seconds without a unit are expected.
_WITH_UNIT = re.compile(r"([0-9]+)\s*(s|m|h)[a-z]*", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600}
#: Strings that Ansible's modules accept as Booleans (ansible-core 2.19, module_utils/parsing/convert_bool.py).
_TRUTHS = {"y", "yes", "on", "1", "true", "t", "1.0", "n", "no", "off", "0", "false", "f", "0.0"}


_SEPARATORS = re.compile(r"[\s,]+")


def list_of_text(text: str) -> t.Any:
    """A list from a string: JSON or YAML, or names separated by commas, blanks or line ends. Raises ValueError with the error and its place."""
    text = str(text).strip()
    if not text.startswith(("[", "- ")):
        return [name for name in _SEPARATORS.split(text) if name]
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ValueError(
            f"it is neither JSON nor YAML: {getattr(error, 'problem', None) or error}{place}, and starts with {text[:40]!r}"
        ) from None


def unset(value: t.Any) -> bool:
    """Answers of surveys that were left empty count as unset."""
    return value is None or (isinstance(value, str) and not value.strip())


def shown(value: t.Any) -> str:
    """A value for messages: in YAML's notation, never with the name of a Python type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, c.Mapping):
        return "a dictionary"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "a list"
    text = credentials.redacted_value(str(value))
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def nearest(name: t.Any, known: c.Iterable[str]) -> str:
    """The known name that is most similar to this one, "" if there is none."""
    spelled = {one.casefold(): one for one in sorted(known)}
    found = difflib.get_close_matches(str(name).casefold(), spelled, 1, 0.7)
    return spelled[found[0]] if found else ""


def near(name: t.Any, known: c.Iterable[str]) -> str:
    """ "did you mean retry_timeout?", "" if no known name is similar."""
    found = nearest(name, known)
    return f"did you mean {found}?" if found else ""


def unknown_keys(value: c.Mapping[t.Any, t.Any], known: c.Collection[str], where: str, whose: str) -> list[Fault]:
    """An error for each unknown key. whose: the owner of the keys, such as "a pool"."""
    listed = some(known, 20)
    return [
        Fault(f"unknown: {key}", where, near(key, known), f"{whose} has the keys {listed}")
        for key in sorted(map(str, value))
        if key not in known
    ]


def scalar(value: t.Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def text(value: t.Any, where: str) -> list[Fault]:
    if isinstance(value, str) and any(ord(character) < 32 for character in value.rstrip("\n")):
        return [Fault("the string has a line break or a control character", where, "", "write it in one line")]
    return [] if scalar(value) else [Fault(f"{shown(value)} is not a string", where, "", "set a string")]


def matching(pattern: re.Pattern[str], what: str, example: str, longest: int = 1024) -> Check:
    """what: "not an image reference"; example: a valid one."""

    def check(value: t.Any, where: str) -> list[Fault]:
        written = str(value).strip() if scalar(value) else ""
        if pattern.fullmatch(written) and len(written) <= longest:
            return []
        return [Fault(f"{shown(value)} is {what}", where, "", f"set one such as {example}")]

    return check


def limit(value: t.Any, where: str, *, of: str = "nodes") -> list[Fault]:
    """A number, or a percentage up to 100."""
    found = (
        _LIMIT.fullmatch(str(value).strip()) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
    )
    if found and not (found[2] and int(found[1]) > 100):
        return []
    why = "a percentage is at most 100%" if found else ""
    return [Fault(f"{shown(value)} is neither a number of {of} nor a percentage", where, why, "set 3 or 10%")]


def share(value: t.Any, where: str) -> list[Fault]:
    """Like `limit`, but for objects, and the percentage may have a fraction."""
    found = (
        number_of(str(value).strip().removesuffix("%"))
        if isinstance(value, str) and str(value).strip().endswith("%")
        else None
    )
    return [] if found is not None and 0 <= found <= 100 else limit(value, where, of="objects")


def number_of(value: t.Any) -> float | None:
    """The finite number of a number or a string, None for anything else, including Booleans."""
    if isinstance(value, bool) or not (
        isinstance(value, (int, float)) or (isinstance(value, str) and _NUMBER.fullmatch(value.strip()))
    ):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def number(low: float, high: float = math.inf, *, whole: bool = False, what: str = "", next_step: str = "") -> Check:
    """what: "not a number of seconds"; next_step: replaces the default one."""

    def check(value: t.Any, where: str) -> list[Fault]:
        found = number_of(value)
        if found is not None and low <= found <= high and not (whole and ("." in str(value) or not found.is_integer())):
            return []
        bounds = f"from {low:.10g} to {high:.10g}" if high != math.inf else f"of {low:.10g} or more"
        expected = what or f"not a {'whole ' if whole else ''}number {bounds}"
        return [Fault(f"{shown(value)} is {expected}", where, "", next_step or f"set a number {bounds}")]

    return check


def seconds(low: float = 0.0) -> Check:
    """low: the minimum."""

    def check(value: t.Any, where: str) -> list[Fault]:
        found = number_of(value)
        if found is not None and found >= low:
            return []
        unit = _WITH_UNIT.fullmatch(str(value).strip().casefold()) if isinstance(value, str) else None
        next_step = f"set {int(unit[1]) * _SECONDS[unit[2]]}" if unit else "set a number of seconds, such as 300"
        why = f"it is less than {low:g}" if found is not None else "seconds are set without a unit" if unit else ""
        return [Fault(f"{shown(value)} is not a number of seconds", where, why, next_step)]

    return check


def truth(value: t.Any, where: str) -> list[Fault]:
    if isinstance(value, bool) or (scalar(value) and str(value).strip().casefold() in _TRUTHS):
        return []
    return [
        Fault(f"{shown(value)} is neither true nor false", where, near(value, ("true", "false")), "set true or false")
    ]


def choice(*known: str) -> Check:
    def check(value: t.Any, where: str) -> list[Fault]:
        if isinstance(value, str) and value in known:
            return []
        return [
            Fault(
                f"{shown(value)} is unknown",
                where,
                near(value, known) if scalar(value) else "",
                f"choose one of {', '.join(known)}",
            )
        ]

    return check


def listed(each: Check, what: str = "names") -> Check:
    def check(value: t.Any, where: str) -> list[Fault]:
        if not isinstance(value, (list, tuple)):
            return [Fault(f"{shown(value)} is not a list", where, "", f"set a list of {what}")]
        return [fault for position, entry in enumerate(value) for fault in each(entry, f"{where}[{position}]")]

    return check


def mapping(each: Check, what: str = "names with their values", key: Check | None = None) -> Check:
    """key: check of the keys, if not every string is valid."""

    def check(value: t.Any, where: str) -> list[Fault]:
        if not isinstance(value, c.Mapping):
            return [Fault(f"{shown(value)} is not a dictionary", where, "", f"set {what}")]
        faults = [fault for name in value for fault in (key(name, where) if key else [])]
        return faults + [fault for name, entry in value.items() for fault in each(entry, f"{where}.{name}")]

    return check


def fields(known: c.Mapping[str, Check], whose: str, needed: c.Collection[str] = ()) -> Check:
    """A dictionary with known keys. An empty value counts as unset, which is an error for a needed key."""

    def check(value: t.Any, where: str) -> list[Fault]:
        if not isinstance(value, c.Mapping):
            return [Fault(f"{shown(value)} is not a dictionary", where, "", f"set {', '.join(known)}")]
        faults = unknown_keys(value, known, where, whose)
        faults += [Fault(f"{key} is missing", where, "", "set it") for key in needed if unset(value.get(key))]
        return faults + [
            fault
            for key, entry in value.items()
            if key in known and not unset(entry)
            for fault in known[key](entry, f"{where}.{key}")
        ]

    return check
