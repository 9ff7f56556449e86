# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members that are no longer in the definition."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import math

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import causes, steps
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.decide import Scene
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import PART_OF, Entry
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets, waves
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    ApiError,
    Conflict,
    Fault,
    Forbidden,
    HwaccelError,
    Invalid,
    NotFound,
    UnknownKind,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.parallel import map_or_raise
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.workloads import desired_nowhere


def served(client: Client, entries: c.Iterable[Entry]) -> list[tuple[Entry, Resource]]:
    """Recorded members with their resource; if the server no longer has a kind, its objects are gone as well."""
    found = []
    for entry in entries:
        try:
            found.append((entry, client.resource_by_group(entry.key.group, entry.key.kind)))
        except UnknownKind:
            continue
    return found


def is_ours(scene: Scene, entry: Entry) -> bool:
    """Whether the live object with a recorded name is the one that this set created."""
    live = scene.live.get(entry.key)
    if live is None:
        return False
    if entry.uid:
        return bool(entry.uid == live["metadata"]["uid"])
    # A run recorded it and was killed before the uid was known.
    bearer = (live["metadata"].get("labels") or {}).get(PART_OF, "")
    return bearer in scene.set_ids and bool(fieldsets.of_object(live, scene.options.manager))


def prune_step(scene: Scene, entry: Entry, resource: Resource) -> Step | None:
    """The step of a member that is no longer in the definition; None if it no longer exists or belongs to others."""
    if not is_ours(scene, entry):
        return None
    live = scene.live[entry.key]
    step = Step(entry.key, resource, steps.KEPT, entry=entry, uid=live["metadata"]["uid"], live=live, before=live)
    if not scene.options.prune:
        return _replace(step, reason="it is no longer in the definition, and prune is off")
    if (entry.key.group, entry.key.kind) in waves.CONTAINERS:
        return _replace(step, reason=f"a {entry.key.kind} is never pruned; state: absent deletes it")
    if live["metadata"].get("deletionTimestamp"):
        return _replace(step, action=steps.DELETED, reason="it is being deleted already")
    if entry.adopted:
        return _replace(
            step, action=steps.RELEASED, write=True, reason="it was adopted, so only the fields of the set are released"
        )
    return try_delete(scene, _replace(step, action=steps.DELETED, write=True))


def limit_fault(
    recorded: int, pruned: int, max_prune: str, remaining: int, called: str = "max_prune", idle: int = 0
) -> Fault | None:
    """Limits pruning, so that a definition that is empty by mistake does not delete everything.

    called: name of max_prune in messages. idle: number of pruned DaemonSets without nodes.
    """
    if not pruned:
        return None
    if not remaining:
        step = "check the definition; use state: absent to remove the whole set"
        return Fault(
            f"all {recorded} members of the set would be deleted", called, "pruning never removes all of a set", step
        )
    limit, counted = prune_limit(recorded, max_prune), pruned - idle
    if counted > limit:
        how = f"{called}: {counted} or more" + (f" (-e {called}={counted})" if called != "max_prune" else "")
        step = f"check the definition; if this is intended, run once with {how}"
        beside = f", besides {idle} DaemonSets without a node" if idle else ""
        return Fault(
            f"{counted} of {recorded} members would be deleted{beside}", called, f"{max_prune} allows {limit}", step
        )
    return None


def idle(scene: Scene, prunes: c.Sequence[Step]) -> int:
    """Number of DaemonSets without existing or desired pods. Their nodes have left the cluster, so deleting them affects no node."""
    found = map_or_raise(
        lambda step: _is_idle(scene.client, step),
        [step for step in prunes if step.key.kind == "DaemonSet"],
        scene.options.threads,
    )
    return sum(found)


def _is_idle(client: Client, step: Step) -> bool:
    try:
        return desired_nowhere(client.get(step.resource, step.key.name, step.key.namespace))
    except (NotFound, Forbidden):
        # Without permission to read it, it counts.
        return False


def prune_limit(recorded: int, max_prune: str) -> int:
    """Maximum number of pruned members: a number, or a share of the recorded ones (at least one, so that small sets can lose one)."""
    text = str(max_prune).strip()
    try:
        if text.endswith("%"):
            share = float(text[:-1])
            if not 0 <= share <= 100 or not math.isfinite(share):
                raise ValueError
            return max(1, math.floor(recorded * share / 100)) if share else 0
        number = int(text)
        if number < 0:
            raise ValueError
        return number
    except ValueError:
        raise HwaccelError(
            f"max_prune {text!r:.40} is invalid",
            "max_prune",
            "it is neither a number nor a percentage",
            "set for example 3 or 20%",
        ) from None


def prune_order(planned: c.Sequence[Step]) -> list[tuple[int, list[Step]]]:
    return waves.in_waves(planned, lambda step: (step.key.group, step.key.kind), backwards=True)


def try_delete(scene: Scene, step: Step) -> Step:
    """The step after a dry run of its delete: missing permissions and webhooks that refuse are reported before the first write."""
    try:
        scene.client.delete(step.resource, step.key.name, step.key.namespace, uid=step.uid, dry_run=True)
    except (NotFound, Conflict):
        return step
    except (Forbidden, Invalid, ApiError) as error:
        if causes.lacks_dry_run(error):
            return _replace(step, unvalidated="a webhook does not support dry runs")
        right = causes.missing_right(error)
        if right:
            return _replace(step, rights=((right["verb"], right["resource"], right["group"], right["namespace"]),))
        return _replace(step, faults=tuple(error.faults))
    return step


def _replace(step: Step, **changes: object) -> Step:
    return dataclasses.replace(step, **changes)  # type: ignore[arg-type]
