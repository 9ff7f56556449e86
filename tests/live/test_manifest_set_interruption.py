# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""manifest_set is killed after each single write: the next run results in the same state as an undisturbed run."""

from __future__ import annotations

import collections.abc as c
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import from_objects
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import diff, fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound, UnknownKind
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.live.support.manifest_sets import (
    Sets,
    config_map,
    crd,
    custom,
    deployment,
    dies_after,
)

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
SPACE = "killed"
NAME = "victim"
MANAGER = f"hwaccel.gpu/{NAME}"


def old_objects() -> list[dict[str, t.Any]]:
    return [config_map(f"cm{index}", SPACE) for index in range(5)] + [deployment("d", SPACE, 1)]


def new_objects() -> list[dict[str, t.Any]]:
    """The old objects with one changed, one removed, one added, and a new kind with an object."""
    maps_and_deployment = [
        config_map("cm0", SPACE, {"b": "2"}),
        *old_objects()[1:4],
        deployment("d", SPACE, 2),
        config_map("cm9", SPACE),
    ]
    return [*maps_and_deployment, crd("victims", "Victim"), custom("Victim", "one", SPACE, 1)]


def state(sets: Sets) -> dict[str, t.Any]:
    """The set on the server: objects, the fields that we own of them, and the record; without uids and times."""
    client = sets.client()
    world: dict[str, t.Any] = {}
    for api_version, kind in (("v1", "ConfigMap"), ("apps/v1", "Deployment"), ("tests.hwaccel.example/v1", "Victim")):
        try:
            items = client.list(client.resource(api_version, kind), SPACE).items
        except (UnknownKind, NotFound):
            continue
        for item in items:
            owned = sorted(fieldsets.text(path) for path in fieldsets.of_object(item, MANAGER))
            world[f"{kind} {item['metadata']['name']}"] = (settled(item), owned)
    try:
        record = from_objects(client.get(CONFIG_MAP, NAME, "hwaccel-gpu-records"), [])
    except NotFound:
        return world
    world["record"] = {
        str(key): (entry.ask, sorted(entry.fields), entry.adopted) for key, entry in record.members.items()
    }
    world["hold"] = record.hold
    return world


def settled(item: dict[str, t.Any]) -> dict[str, t.Any]:
    """An object without the annotation that the Deployment controller adds a moment later."""
    body = diff.comparable(item)
    annotations = {
        key: value
        for key, value in body["metadata"].get("annotations", {}).items()
        if key != "deployment.kubernetes.io/revision"
    }
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def reset(sets: Sets, objects: list[dict[str, t.Any]] | None) -> None:
    sets.remove(NAME)
    if objects:
        sets.apply(NAME, objects)


@pytest.mark.parametrize(
    ("before", "after"), [(None, old_objects), (old_objects, new_objects)], ids=["create", "change"]
)
def test_killed_after_each_write_of_an_apply(
    sets: Sets, before: t.Any, after: c.Callable[[], list[dict[str, t.Any]]]
) -> None:
    start = before() if before else None
    reset(sets, start)
    sets.apply(NAME, after())
    undisturbed = state(sets)
    kills = 0
    for write in range(1, 40):
        reset(sets, start)
        if not dies_after(write, sets.kubeconfig, lambda client: sets(NAME, after(), client=client)):
            break
        kills += 1
        sets.apply(NAME, after())
        assert state(sets) == undisturbed, f"after a kill at write {write}"
        assert not sets.apply(NAME, after()).changed
    # There are writes for each object, two for the record, and those of pruning.
    assert kills >= len(after()) // 2 + 2
    reset(sets, None)


def test_killed_after_each_write_of_a_removal(sets: Sets) -> None:
    undisturbed = state(sets)
    kills = 0
    for write in range(1, 40):
        sets.apply(NAME, new_objects())
        if not dies_after(
            write, sets.kubeconfig, lambda client: sets(NAME, None, state="absent", wait=True, client=client)
        ):
            break
        kills += 1
        sets.remove(NAME)
        assert state(sets) == undisturbed, f"after a kill at write {write}"
    assert kills >= len(new_objects())


def test_a_run_with_another_definition_completes_a_killed_one(sets: Sets) -> None:
    reset(sets, None)
    assert dies_after(4, sets.kubeconfig, lambda client: sets(NAME, old_objects(), client=client))
    sets.apply(NAME, new_objects(), max_prune="100%")
    undisturbed_names = {
        f"ConfigMap {name}" for name in ("cm0", "cm1", "cm2", "cm3", "cm9", "anchor", "kube-root-ca.crt")
    }
    assert {key for key in state(sets) if key.startswith("ConfigMap")} == undisturbed_names
    reset(sets, None)
