# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON of files that anybody can have written, within limits of size, number of values and depth. Pure.

No error has a value of the file, which can be a secret.
"""

from __future__ import annotations

import collections
import collections.abc as c
import json
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults

#: Bytes of a file.
LARGEST = 32 << 20
#: A bootstrap file has about 5,000. This many take at most 100 MiB of memory, whatever they are.
MOST_VALUES = 400_000
#: The deepest value of the Ignition specification is eight levels down.
DEEPEST = 64
_SHOWN_KEY = 60

#: The end of the text ends a string as well: otherwise the time for one without an end would grow with the square of its quotes.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_SEPARATORS = (b"[", b"{", b",", b":")


class _Refused(ValueError):
    """A document that is not read. Its text says why."""


def parse(data: bytes, what: str, where: str, next_step: str) -> t.Any:
    """The value of a document in JSON (RFC 8259), which is in UTF-8.

    A key that an object has twice is refused, because readers differ in which of the two they take, and so are NaN and Infinity, which are not JSON.
    what, where, next_step: of the HwaccelError that is raised, such as "the ignition file cannot be read".
    """
    twice: dict[int, list[str]] = {}
    try:
        _limit(data)
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_object(twice), parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise HwaccelError(what, where, _why(error), next_step) from None
    if twice:
        raise ManyFaults(
            [
                Fault(what, within(where, place), "an object has this key twice", next_step)
                for place in _places(value, twice)
            ]
        )
    return value


def _limit(data: bytes) -> None:
    """Refuses what would need too much memory, before it is parsed."""
    if len(data) > LARGEST:
        raise _Refused(f"it has more than {LARGEST >> 20} MiB")
    if not data.strip():
        raise _Refused("it is empty")
    too_many = _Refused(f"it has more than {MOST_VALUES} values")
    if data.count(b'"') > 2 * MOST_VALUES:
        raise too_many
    structure = _STRING.sub(b"", data)
    if sum(map(structure.count, _SEPARATORS)) > MOST_VALUES:
        raise too_many
    depth = 0
    for bracket in _BRACKET.findall(structure):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST:
            raise _Refused(f"its values are nested more than {DEEPEST} levels deep")


def _object(twice: dict[int, list[str]]) -> c.Callable[[list[tuple[str, t.Any]]], dict[str, t.Any]]:
    """twice: gets the keys that an object has twice, by its id."""

    def made(pairs: list[tuple[str, t.Any]]) -> dict[str, t.Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counted = collections.Counter(name for name, _value in pairs)
            twice[id(found)] = sorted(name for name, count in counted.items() if count > 1)
        return found

    return made


def _constant(name: str) -> t.NoReturn:
    raise _Refused(f"it is not valid JSON: it has {name}")


def _why(error: Exception) -> str:
    if isinstance(error, _Refused):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8: byte {error.start + 1} is invalid"
    if isinstance(error, json.JSONDecodeError):
        return f"it is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}"
    return "it is not valid JSON: it has a number that is too long"


def _places(value: t.Any, twice: c.Mapping[int, list[str]]) -> list[str]:
    """Where keys occur twice; an empty place for those in an object that another one has replaced."""
    found: list[str] = []
    rest: list[tuple[t.Any, str]] = [(value, "")]
    while rest:
        one, place = rest.pop()
        if isinstance(one, dict):
            found += [below(place, name) for name in twice.get(id(one), ())]
            rest += [(item, below(place, name)) for name, item in one.items()]
        elif isinstance(one, list):
            rest += [(item, f"{place}[{position}]") for position, item in enumerate(one)]
    return sorted(found)[:20] or [""]


def within(where: str, place: str) -> str:
    """A place in a file: /srv/worker.ign: storage.files[3].path"""
    return ": ".join(part for part in (where, place) if part)


def below(place: str, name: str) -> str:
    """The place of a key: storage.files[3].path"""
    shown = name if len(name) <= _SHOWN_KEY else f"{name[:_SHOWN_KEY]}…"
    return f"{place}.{shown}" if place else shown
