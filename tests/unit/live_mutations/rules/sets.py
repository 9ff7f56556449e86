# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of manifests with one thing wrong."""

from __future__ import annotations

import collections.abc as c
import copy
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.mutations import rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.judge import Rule
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Manifests

SOUND = rendered.everything()
Change = c.Callable[[Obj], t.Any]
#: A rule, kind and name of the object, what is done to it, and what the rule has to say.
Row = tuple[Rule, str, str, Change, str]


def said(rule: Rule, kind: str, name: str, change: Change) -> list[str]:
    """What the rule says of all objects, one of them changed. name: without what follows from pools."""
    objects = {role: [*found] for role, found in SOUND.items()}
    for found in objects.values():
        left_out = rendered.twins(found)
        for index, item in enumerate(found):
            if index not in left_out and item["kind"] == kind and rendered.called(item) == name:
                found[index] = copy.deepcopy(item)
                change(found[index])
                return list(rule(Manifests(objects)))
    raise LookupError(f"{kind} {name}")


def checked(rows: c.Sequence[Row]) -> c.Callable[..., None]:
    """A test for each row: our manifests pass the rule, and the changed ones do not."""

    @pytest.mark.parametrize(("rule", "kind", "name", "change", "expected"), rows)
    def check(rule: Rule, kind: str, name: str, change: Change, expected: str) -> None:
        assert sound(rule) == []
        assert expected in "\n".join(said(rule, kind, name, change))

    return check


def sound(rule: Rule) -> list[str]:
    return list(rule(Manifests(SOUND)))


def pod(change: Change) -> Change:
    """A change of a workload's pod."""
    return lambda item: change(item["spec"]["template"]["spec"])


def container(change: Change, index: int = 0, kind: str = "containers") -> Change:
    return pod(lambda spec: change(spec[kind][index]))


def put(*path: t.Any) -> Change:
    """path: fields, and the value."""
    *fields, last, value = path

    def change(item: Obj) -> None:
        for field in fields:
            item = item[field]
        item[last] = value

    return change


def without(*path: t.Any) -> Change:
    *fields, last = path

    def change(item: Obj) -> None:
        for field in fields:
            item = item[field]
        del item[last]

    return change
