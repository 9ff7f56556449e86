# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deletes and releases objects according to a plan."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import steps
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.decide import Scene
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.gone import Lagging, await_gone
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.hold import HoldLost
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import Report
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.pruning import prune_order
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import PART_OF
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import waves
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Conflict,
    Fault,
    HwaccelError,
    Invalid,
    NotFound,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.parallel import map_all
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey

_TRIES = 10


@dataclasses.dataclass
class Pruned:
    """deleted: deletion was requested, or fields were released. gone: those that no longer exist or are not waited for. seen: rows and warnings of waiting."""

    deleted: set[ObjectKey] = dataclasses.field(default_factory=set)
    gone: set[ObjectKey] = dataclasses.field(default_factory=set)
    faults: list[Fault] = dataclasses.field(default_factory=list)
    lagging: Lagging = ()
    observed: Report = dataclasses.field(default_factory=Report)


def prune(scene: Scene, clock: Clock, prunes: c.Sequence[Step], until: float) -> Pruned:
    """Deletes in reverse order of the waves. With `wait`, objects keep their permissions and settings until they are gone, up to `until` (time.time())."""
    done = Pruned()
    try:
        _prune_waves(scene, clock, prunes, until, done)
    except HoldLost as error:
        done.faults += error.faults
    return done


def _prune_waves(scene: Scene, clock: Clock, prunes: c.Sequence[Step], until: float, done: Pruned) -> None:
    for _wave, group in prune_order([step for step in prunes if step.action != steps.KEPT]):
        _delete_wave(scene, [step for step in group if step.write], done)
        if done.faults:
            return
        left: Lagging = ()
        if scene.options.wait:
            left = await_gone(
                scene.client,
                scene.options,
                clock,
                [step for step in group if step.action == steps.DELETED],
                until,
                done.observed,
            )
        done.gone |= {step.key for step in group} - {step.key for step, _reason in left}
        if left:
            done.lagging = left
            return


def _delete_wave(scene: Scene, group: c.Sequence[Step], done: Pruned) -> None:
    for step, result in zip(
        group,
        map_all(lambda step: remove(scene, step, pods_first=scene.options.wait), group, scene.options.threads),
        strict=True,
    ):
        if isinstance(result, HwaccelError):
            done.faults += result.faults
        else:
            done.deleted.add(step.key)


def remove(scene: Scene, step: Step, *, pods_first: bool) -> None:
    """Deletes one object, or releases an adopted one. Objects that are gone or were recreated by others no longer belong to the set.

    pods_first: a workload is gone only when its pods are, so that after the wait none of them is running.
    """
    if step.action == steps.RELEASED:
        _release(scene.client, step, scene.options.manager)
        return
    if not step.write:
        return
    propagation = "Foreground" if pods_first and (step.key.group, step.key.kind) in waves.WORKLOADS else "Background"
    try:
        scene.client.delete(step.resource, step.key.name, step.key.namespace, uid=step.uid, propagation=propagation)
    except (NotFound, Conflict):
        return


def _release(client: Client, step: Step, manager: str) -> None:
    """Releases every field: an apply without fields removes those that only the set owns.

    If the object is invalid without one of these fields, it keeps their values, and only the set's entry in managedFields is removed.
    """
    metadata: dict[str, t.Any] = {"name": step.key.name, "uid": step.uid}
    if step.key.namespace:
        metadata["namespace"] = step.key.namespace
    body = {"apiVersion": step.resource.api_version, "kind": step.key.kind, "metadata": metadata}
    try:
        client.apply(body, step.resource, field_manager=manager, dry_run=True)
        client.apply(body, step.resource, field_manager=manager)
    except (NotFound, Conflict):
        return
    except Invalid:
        _forget_manager(client, step, manager)


def _forget_manager(client: Client, step: Step, manager: str) -> None:
    for tries_left in reversed(range(_TRIES)):
        live = client.get(step.resource, step.key.name, step.key.namespace, metadata_only=True)
        entries = live["metadata"].get("managedFields") or []
        kept = [entry for entry in entries if entry.get("manager") != manager]
        patch: dict[str, t.Any] = {
            "metadata": {
                "resourceVersion": live["metadata"]["resourceVersion"],
                # The server ignores an empty list of managedFields. A list with one empty entry clears them.
                "managedFields": kept or [{}],
                "labels": {PART_OF: None},
            }
        }
        try:
            client.patch(step.resource, step.key.name, step.key.namespace, patch)
            return
        except Conflict:
            # A controller may have written its status in the meantime.
            if not tries_left:
                raise
