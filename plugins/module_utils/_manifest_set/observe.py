# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observed objects: one LIST per kind and namespace, or single GETs if these are fewer."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import PART_OF
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Fault,
    Forbidden,
    HwaccelError,
    ManyFaults,
    NotFound,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.parallel import map_all
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey, Resource

T = t.TypeVar("T")
R = t.TypeVar("R")

#: Maximum number of objects that are read by name if a list would return all objects of that kind.
_FEW = 1


@dataclasses.dataclass(frozen=True)
class ObjectQuery:
    """One object to read. known: it is in the record, so it has the set's label unless that was removed."""

    key: ObjectKey
    resource: Resource
    known: bool
    full: bool = False


@dataclasses.dataclass(frozen=True)
class _Query:
    resource: Resource
    namespace: str
    labeled: bool
    full: bool
    objects: tuple[ObjectQuery, ...]


def observe(
    client: Client, objects: c.Sequence[ObjectQuery], set_ids: c.Sequence[str], threads: int
) -> dict[ObjectKey, dict[str, t.Any]]:
    """The live objects among those requested: metadata only, or complete if `full` is set."""
    groups: dict[tuple[Resource, str], list[ObjectQuery]] = {}
    for item in objects:
        groups.setdefault((item.resource, item.key.namespace), []).append(item)
    live: dict[ObjectKey, dict[str, t.Any]] = {}
    lists: list[_Query] = []
    singles: list[ObjectQuery] = []
    for (resource, namespace), items in groups.items():
        known = [item for item in items if item.known]
        unknown = [item for item in items if not item.known]
        labeled = bool(known) and len(unknown) <= _FEW
        if known or len(unknown) > _FEW:
            lists.append(_Query(resource, namespace, labeled, any(item.full for item in items), tuple(items)))
        if labeled or (not known and len(unknown) <= _FEW):
            singles += unknown
    for found, missed in _all(lambda query: _list(client, query, set_ids), lists, threads):
        live |= found
        singles += missed
    pairs = zip(singles, _all(lambda item: _get(client, item), singles, threads), strict=True)
    return live | {item.key: obj for item, obj in pairs if obj is not None}


def _all(work: c.Callable[[T], R], items: c.Sequence[T], threads: int) -> list[R]:
    """Results of all requests. If reading is forbidden, every missing permission is reported once."""
    results: list[R] = []
    forbidden: dict[str, Fault] = {}
    for result in map_all(work, items, threads):
        if isinstance(result, Forbidden):
            forbidden.setdefault(result.faults[0].next_step, result.faults[0])
        elif isinstance(result, HwaccelError):
            raise result
        else:
            results.append(result)
    if forbidden:
        raise ManyFaults(list(forbidden.values()))
    return results


def _list(
    client: Client, query: _Query, set_ids: c.Sequence[str]
) -> tuple[dict[ObjectKey, dict[str, t.Any]], list[ObjectQuery]]:
    """Objects in the list, and those that must be read by name: known members without the label, or all if listing is forbidden."""
    selector = ""
    if query.labeled:
        selector = f"{PART_OF}={set_ids[0]}" if len(set_ids) == 1 else f"{PART_OF} in ({','.join(set_ids)})"
    by_name: dict[str, dict[str, t.Any]] = {}
    try:
        pages = client.pages(query.resource, query.namespace, label_selector=selector, metadata_only=not query.full)
        names = {item.key.name for item in query.objects}
        for page in pages:
            by_name |= {obj["metadata"]["name"]: obj for obj in page.items if obj["metadata"]["name"] in names}
    except Forbidden:
        return {}, list(query.objects)
    except NotFound:
        return {}, []
    found = {item.key: by_name[item.key.name] for item in query.objects if item.key.name in by_name}
    return found, [item for item in query.objects if query.labeled and item.known and item.key not in found]


def _get(client: Client, item: ObjectQuery) -> dict[str, t.Any] | None:
    try:
        return client.get(item.resource, item.key.name, item.key.namespace, metadata_only=not item.full)
    except NotFound:
        return None
