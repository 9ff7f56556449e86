# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Label selectors in the syntax of `kubectl -l`, matched against labels."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import re

_LABEL_KEY = r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_EQUALITY = re.compile(rf"^({_LABEL_KEY})\s*(==|=|!=)\s*({_LABEL_VALUE})$")
_SET = re.compile(rf"^({_LABEL_KEY})\s+(in|notin)\s*\(([^()]*)\)$")
_EXISTS = re.compile(rf"^(!?)\s*({_LABEL_KEY})$")
_VALUE = re.compile(rf"^{_LABEL_VALUE}$")
#: Commas between requirements, not those within the parentheses of a set.
_COMMA = re.compile(r",(?![^()]*\))")


class SelectorError(ValueError):
    """The text is not a label selector; str() names the invalid part."""


@dataclasses.dataclass(frozen=True)
class Requirement:
    """operator: In, NotIn, Exists or DoesNotExist, as the API spells them."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: c.Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.operator == "In":
            return value in self.values
        if self.operator == "NotIn":
            return value not in self.values
        return (value is not None) == (self.operator == "Exists")


@functools.lru_cache(maxsize=256)
def parse(selector: str) -> tuple[Requirement, ...]:
    """ "a=b,c in (d, e),!f" as requirements, all of which must match. The empty selector matches everything."""
    text = selector.strip()
    return tuple(_requirement(part.strip()) for part in _COMMA.split(text)) if text else ()


def matches(requirements: c.Iterable[Requirement], labels: c.Mapping[str, str]) -> bool:
    return all(requirement.matches(labels) for requirement in requirements)


def _requirement(part: str) -> Requirement:
    if found := _EQUALITY.fullmatch(part):
        key, sign, value = found.groups()
        return Requirement(key, "NotIn" if sign == "!=" else "In", frozenset({value}))
    if found := _SET.fullmatch(part):
        key, word, listed = found.groups()
        values = [value.strip() for value in listed.split(",")]
        bad = [value for value in values if not _VALUE.fullmatch(value)]
        if bad:
            raise SelectorError(f"{bad[0]!r} in {part!r} is not a label value")
        return Requirement(key, "In" if word == "in" else "NotIn", frozenset(values))
    if found := _EXISTS.fullmatch(part):
        return Requirement(found.group(2), "DoesNotExist" if found.group(1) else "Exists")
    raise SelectorError(f"{part!r} is not a label requirement" if part else "a requirement between two commas is empty")
