# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole plan of one call: every member's step, what is pruned, and all problems."""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import needed_rights, pruning, steps
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.decide import (
    Scene,
    decide,
    ownership,
    settled,
    written_entry,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.foreign import foreign_fields
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.observe import ObjectQuery, observe
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import Entry, Record
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.resolve import Member
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.store import RESOURCES
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets, rights, waves
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, UnknownKind
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.parallel import map_or_raise
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey, Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.readiness import has_predicate


@dataclasses.dataclass(frozen=True)
class SetPlan:
    """steps are in the order of the manifests. gone: recorded members that no longer exist."""

    scene: Scene
    steps: tuple[Step, ...]
    prunes: tuple[Step, ...]
    faults: tuple[Fault, ...]
    foreign: tuple[dict[str, str], ...]
    rights: tuple[rights.Right, ...]

    @property
    def writes(self) -> list[Step]:
        return [step for step in (*self.steps, *self.prunes) if step.write]

    @property
    def going(self) -> list[Step]:
        """Objects that an earlier run or slice deleted and that this one waits for."""
        return (
            [step for step in self.prunes if step.action == steps.DELETED and not step.write]
            if self.scene.options.wait
            else []
        )

    def union(self) -> dict[ObjectKey, Entry]:
        """Members before and after the run, for the record during the run."""
        members = dict(self.scene.record.members)
        for step in self.steps:
            if step.entry is None or step.write:
                known = step.entry or Entry(step.key)
                members[step.key] = dataclasses.replace(known, ask="", adopted=step.adopted)
        return members

    def truth(self, written: c.Mapping[ObjectKey, Entry], gone: c.Container[ObjectKey]) -> dict[ObjectKey, Entry]:
        """Members after the run. Members that were planned but not reached are kept without desired state, so that the next run applies them.

        Deleted members are kept as long as the run waits for them, so that the next run waits as well.
        """
        members: dict[ObjectKey, Entry] = {}
        manager = self.scene.options.manager
        for step in self.steps:
            if step.key in written:
                members[step.key] = written[step.key]
            elif step.write:
                members[step.key] = dataclasses.replace(step.entry or Entry(step.key), ask="", adopted=step.adopted)
            elif step.live is not None and step.member is not None:
                fresh = written_entry(step, step.live, manager)
                members[step.key] = dataclasses.replace(fresh, fought=step.entry.fought if step.entry else ())
            elif step.entry is not None:
                members[step.key] = step.entry
        for step in self.prunes:
            forgotten = step.action == steps.DELETED and not step.write and not self.scene.options.wait
            if step.entry is not None and step.key not in gone and not forgotten:
                members[step.key] = step.entry
        return members


def build(
    client: Client, options: SetOptions, record: Record, set_ids: tuple[str, ...], members: c.Sequence[Member]
) -> SetPlan:
    """Reads the objects, compares them, and validates changes by dry runs. Nothing is written."""
    declared = {member.key for member in members}
    leftovers = pruning.served(client, [entry for key, entry in record.members.items() if key not in declared])
    live = observe(client, _queries(client, options, record, members, leftovers), set_ids, options.threads)
    planned_namespaces = {
        member.key.name for member in members if (member.key.group, member.key.kind) == waves.NAMESPACE
    }
    there = {
        key.name
        for key, obj in live.items()
        if (key.group, key.kind) == waves.NAMESPACE and not obj["metadata"].get("deletionTimestamp")
    }
    coming = frozenset(member.key.name for member in members if member.key not in live)
    scene = Scene(client, options, record, set_ids, live, frozenset(planned_namespaces - there), coming)
    faults = [fault for fault in (ownership(scene, member)[0] for member in members) if fault]
    if faults:
        return SetPlan(scene, (), (), tuple(faults), (), ())
    return _decided(scene, members, leftovers)


def _decided(scene: Scene, members: c.Sequence[Member], leftovers: list[tuple[Entry, Resource]]) -> SetPlan:
    options, record = scene.options, scene.record
    undecided = [member for member in members if not settled(scene, member)]
    decided = dict(
        zip(
            [member.key for member in undecided],
            map_or_raise(lambda member: decide(scene, member), undecided, options.threads),
            strict=True,
        )
    )
    planned = tuple(decided.get(member.key) or _settled_step(scene, member) for member in members)
    pruned = map_or_raise(lambda pair: pruning.prune_step(scene, *pair), leftovers, options.threads)
    prunes = tuple(step for step in pruned if step is not None)
    faults = [fault for step in (*planned, *prunes) for fault in step.faults]
    too_many = _too_many(scene, [step for step in prunes if step.action == steps.DELETED and step.write])
    if too_many:
        faults.append(too_many)
    lacking = needed_rights.missing(scene.client, (*planned, *prunes), options.threads)
    if options.check_mode and any(step.write for step in (*planned, *prunes)):
        lacking = sorted(
            {
                *lacking,
                *needed_rights.record_rights(
                    scene.client, RESOURCES[record.kind], record.namespace, stored=record.stored
                ),
            }
        )
    foreign = _foreign(scene, planned)
    if options.strict:
        faults += [_foreign_fault(item) for item in foreign]
    return SetPlan(scene, planned, prunes, (*rights.faults(lacking), *faults), tuple(foreign), tuple(lacking))


def _too_many(scene: Scene, doomed: c.Sequence[Step]) -> Fault | None:
    """DaemonSets are only read if there are more than the limit allows."""
    recorded, options = len(scene.record.members), scene.options
    limits = (recorded, len(doomed), options.max_prune, recorded - len(doomed), options.called("max_prune"))
    fault = pruning.limit_fault(*limits)
    return fault and pruning.limit_fault(*limits, idle=pruning.idle(scene, doomed))


def _settled_step(scene: Scene, member: Member) -> Step:
    entry, live = scene.record.members[member.key], scene.live[member.key]
    return Step(
        member.key,
        member.resource,
        steps.UNCHANGED,
        member=member,
        entry=entry,
        uid=entry.uid,
        live=live,
        adopted=entry.adopted,
    )


def _queries(
    client: Client,
    options: SetOptions,
    record: Record,
    members: c.Sequence[Member],
    leftovers: c.Sequence[tuple[Entry, Resource]],
) -> list[ObjectQuery]:
    queries = []
    for member in members:
        resource = _served(client, member)
        if resource is not None:
            full = (
                options.wait
                and not options.check_mode
                and has_predicate(member.key.group, member.key.kind, options.ready_when)
            )
            known = bool(record.members.get(member.key) and record.members[member.key].uid)
            queries.append(ObjectQuery(member.key, resource, known, full))
    # Objects to prune are read in the API version of the set's members of the same kind, so that one LIST serves both.
    versions = {item.resource.group_kind: item.resource for item in queries}
    queries += [
        ObjectQuery(entry.key, versions.get(resource.group_kind, resource), bool(entry.uid))
        for entry, resource in leftovers
    ]
    return queries


def _served(client: Client, member: Member) -> Resource | None:
    """The resource of a member's kind on the server. If the set updates a CRD's version, its objects exist in the older version."""
    if not member.planned_kind:
        return member.resource
    try:
        return client.resource_by_group(member.key.group, member.key.kind)
    except UnknownKind:
        return None


def _foreign(scene: Scene, planned: c.Sequence[Step]) -> list[dict[str, str]]:
    manager = scene.options.manager
    found: list[dict[str, str]] = []
    for step in planned:
        live = scene.live.get(step.key)
        if live is None or step.adopted or step.action == steps.RECREATED:
            continue
        # A field that will be reclaimed is drift, not an addition.
        recorded = step.entry.fields if step.entry else fieldsets.EMPTY
        found += foreign_fields(step.key, live, manager, fieldsets.of_object(live, manager) | recorded)
    return found


def _foreign_fault(item: dict[str, str]) -> Fault:
    name = f"{item['kind']} {item['namespace']}/{item['name']}".replace(" /", " ")
    step = "remove it, or run without strict"
    return Fault(
        f"{item['path']} of {name} was added by {item['manager']}", "strict", "it is not a field of this set", step
    )
