# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Terms of node affinities as sets of nodes, with intersection and difference.

This is exact, because a term restricts each label separately: it matches some node exactly if each label can have a value or be absent.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import placement
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.placement import Requirement, Term

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclasses.dataclass(frozen=True)
class _Values:
    """Allowed values of one label: one of `named`, or with `others` anything except these. absent: the label may be missing."""

    named: frozenset[str]
    others: bool
    absent: bool

    def within(self, other: _Values) -> _Values:
        absent = self.absent and other.absent
        if self.others and other.others:
            return _Values(self.named | other.named, True, absent)
        if self.others:
            return _Values(other.named - self.named, False, absent)
        return _Values(self.named - other.named if other.others else self.named & other.named, False, absent)

    @property
    def impossible(self) -> bool:
        return not (self.named or self.others or self.absent)

    def requirements(self, key: str) -> list[Requirement]:
        if self.others:
            stated = [] if self.absent else [placement.need(key, "Exists")]
            return stated + ([placement.need(key, "NotIn", *self.named)] if self.named else [])
        return [placement.need(key, "DoesNotExist")] if self.absent else [placement.need(key, "In", *self.named)]


def read(affinity: t.Any) -> list[Term]:
    """Terms of a live object's `nodeAffinity`, or one that matches every node if there are none. Gt, Lt and fields, which are never written, are ignored."""
    required = _map(_map(affinity).get("requiredDuringSchedulingIgnoredDuringExecution"))
    stated = [_map(term).get("matchExpressions") or () for term in required.get("nodeSelectorTerms") or ()]
    return [
        tuple(
            placement.need(str(one["key"]), one["operator"], *map(str, one.get("values") or ()))
            for one in term
            if one.get("operator") in _OPERATORS
        )
        for term in stated
    ] or [()]


def common(one: c.Iterable[Term], other: c.Sequence[Term]) -> list[Term]:
    """Terms for the nodes that both match; none if there can be no such node."""
    return _distinct(_joined(left + right) for left in one for right in other)


def without(one: c.Iterable[Term], taken: c.Iterable[Term]) -> list[Term]:
    """Terms for the nodes of the first that the second does not match; unchanged if it matches none of them."""
    left = list(one)
    for term in taken:
        if any(_joined(each + term) is not None for each in left):
            left = _distinct(piece for each in left for piece in _cut(each, term))
    return left


def covers(one: c.Sequence[Term], other: c.Iterable[Term]) -> bool:
    """Whether the first matches every node that the second matches."""
    return all(_joined(term) is None for term in without(other, one))


def _cut(term: Term, taken: Term) -> list[Term | None]:
    """The term without the nodes of another one, as several terms."""
    if _joined(term + taken) is None:
        return [term]
    return [_joined((*term, placement.negated(requirement))) for requirement in taken]


def _joined(term: Term) -> Term | None:
    """One requirement for each label, in a fixed order; None if no node can match."""
    labels: dict[str, _Values] = {}
    for requirement in term:
        key, stated = requirement["key"], _values(requirement)
        labels[key] = labels[key].within(stated) if key in labels else stated
    if any(values.impossible for values in labels.values()):
        return None
    return tuple(requirement for key in sorted(labels) for requirement in labels[key].requirements(key))


def _values(requirement: Requirement) -> _Values:
    operator, named = requirement["operator"], frozenset(requirement.get("values", ()))
    if operator in ("In", "NotIn"):
        return _Values(named, operator == "NotIn", operator == "NotIn")
    return _Values(frozenset(), operator == "Exists", operator == "DoesNotExist")


def _distinct(terms: c.Iterable[Term | None]) -> list[Term]:
    """Without terms whose nodes another one matches as well."""
    kept: list[Term] = []
    for term in terms:
        if term is None or any(_holds_all(other, term) for other in kept):
            continue
        kept = [*(other for other in kept if not _holds_all(term, other)), term]
        if len(kept) > placement.MOST_TERMS:
            raise placement.TooManyTerms(f"more than {placement.MOST_TERMS} combinations")
    return kept


def _holds_all(one: Term, other: Term) -> bool:
    return all(piece is None for piece in _cut(other, one))


def _map(value: t.Any) -> dict[str, t.Any]:
    return value if isinstance(value, dict) else {}
