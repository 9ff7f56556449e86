# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NVIDIA's and Node Feature Discovery's own manifests have as well (tests/upstream): to differ from them takes a reason.

A field that differs with a recorded reason may have any value here: what is compared is theirs, and not what ours were when they were recorded.
"""

from __future__ import annotations

import collections.abc as c
import functools
import typing as t

from ansible_collections.hwaccel.gpu.tests.live.mutations import rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Finding, Manifests, once
from ansible_collections.hwaccel.gpu.tests.upstream import objects, ours, records

#: Component and pair of sources.yml.
_Pair = tuple[str, t.Mapping[str, t.Any]]


@functools.cache
def _pairs() -> tuple[_Pair, ...]:
    components = records.load("sources")["components"]
    found = [(name, pair) for name, component in components.items() for pair in records.pairs(component)]
    return tuple((name, pair) for name, pair in found if "kind" in (pair.get("ours") or {}))


def like_theirs(found: Manifests) -> c.Iterator[Finding]:
    """A field that has no recorded reason to differ from upstream's manifest has the value of upstream's."""
    for item in found.all:
        yield from _of_object(item)


@once
def _of_object(item: Obj) -> list[Finding]:
    return [
        said
        for name, pair in _pairs()
        if item.get("kind") == pair["ours"]["kind"] and _called(item, pair["ours"]["name"])
        for said in _differences(item, name, pair)
    ]


def _called(item: Obj, name: str) -> bool:
    called = rendered.component(item)
    return bool(called) and (called == name or (name.endswith("*") and name.startswith(called)))


def _differences(item: Obj, component: str, pair: t.Mapping[str, t.Any]) -> c.Iterator[Finding]:
    recorded = records.read(component)[pair["title"]]
    prefix = pair["ours"].get("part", "")
    fields = {path: ours.masked(path, value) for path, value in objects.fields(item).items()}
    fields["metadata.name"] = rendered.component(item)
    actual = ours.part(fields, prefix) if prefix else fields
    for path, theirs in recorded.same.items():
        if actual.get(path) != theirs:
            at = f"{item['kind']} {rendered.called(item)}: {_field(prefix + path)} is {actual.get(path)!r}"
            yield f"{at}; upstream ({component}, {pair['title']}) has {theirs!r}, and there is no reason to differ"


def _field(path: str) -> str:
    """As a manifest has it."""
    return f"spec.template.spec.{path.removeprefix('pod.')}" if path.startswith("pod.") else path
