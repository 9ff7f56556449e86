# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deleting and releasing what a plan marks so."""

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
    """deleted: asked to go, or given up. gone: those of which nothing is left, or nobody waits for. seen: rows and warnings of the waiting."""

    deleted: set[ObjectKey] = dataclasses.field(default_factory=set)
    gone: set[ObjectKey] = dataclasses.field(default_factory=set)
    faults: list[Fault] = dataclasses.field(default_factory=list)
    lagging: Lagging = ()
    observed: Report = dataclasses.field(default_factory=Report)


def prune(scene: Scene, clock: Clock, prunes: c.Sequence[Step], until: float) -> Pruned:
    """Backwards through the waves, as they once came: with `wait`, nothing loses its rights or settings before it is gone, until `until` (time.time())."""
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
    """Delete one object, or give up what we own of an adopted one. What is gone, or was made anew by somebody, is no longer ours.

    pods_first: a workload is gone only when its pods are, so that who waits for it knows that nothing of it runs.
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
    """Give up every field: an apply of nothing takes away what only we own.

    Where the object could not live without one of these fields, it keeps their values and only our name in the books goes.
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
                # An empty list would be taken for "leave it to the server"; one empty entry clears the books.
                "managedFields": kept or [{}],
                "labels": {PART_OF: None},
            }
        }
        try:
            client.patch(step.resource, step.key.name, step.key.namespace, patch)
            return
        except Conflict:
            # A controller wrote its status in between.
            if not tries_left:
                raise
