# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The step of one member, from the record or by a dry run."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import steps
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import FIELD_MANAGER_PREFIX, SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import PART_OF, Entry, Record
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.resolve import Member
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Reclaimed, Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.trial import Trial, attempt
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import diff, fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey


@dataclasses.dataclass(frozen=True)
class Scene:
    """The input of decisions. absent_namespaces: those that the set itself will create."""

    client: Client
    options: SetOptions
    record: Record
    set_ids: tuple[str, ...]
    live: c.Mapping[ObjectKey, dict[str, t.Any]]
    absent_namespaces: frozenset[str] = frozenset()
    #: Names of objects that the set itself will create. If an admission plugin misses one of them, the real run may still succeed.
    coming: frozenset[str] = frozenset()


def settled(scene: Scene, member: Member) -> bool:
    """Whether desired state, object and owned fields are all unchanged, so that neither a change nor a request is needed."""
    entry, live = scene.record.members.get(member.key), scene.live.get(member.key)
    if entry is None or live is None or entry.ask != member.ask or entry.uid != live["metadata"]["uid"]:
        return False
    return (
        not live["metadata"].get("deletionTimestamp")
        and fieldsets.of_object(live, scene.options.manager) == entry.fields
    )


def ownership(scene: Scene, member: Member) -> tuple[Fault | None, bool]:
    """The error that prevents a change of the live object, and whether the change would adopt it."""
    entry, live = scene.record.members.get(member.key), scene.live.get(member.key)
    if live is None:
        return None, False
    manager = scene.options.manager
    bearer = (live["metadata"].get("labels") or {}).get(PART_OF, "")
    known = entry is not None and entry.uid == live["metadata"]["uid"]
    if bearer and bearer not in scene.set_ids:
        other = next(
            (name for name in _managers(live) if name.startswith(FIELD_MANAGER_PREFIX) and name != manager), ""
        )
        if other or not known:
            why = f"it belongs to {'the set ' + other.removeprefix(FIELD_MANAGER_PREFIX) if other else 'another ApplySet'} ({PART_OF}={bearer})"
            return Fault(
                f"{member.key.short} is in another set", member.origin, why, "remove it from one of the two sets"
            ), False
    if known or bearer in scene.set_ids or manager in _managers(live):
        return None, bool(entry and entry.adopted)
    if scene.options.adopt:
        return None, True
    replaced = entry is not None and bool(entry.uid)
    why = (
        "the set's object was deleted and another one was created"
        if replaced
        else "it exists, and this set did not create it"
    )
    owners = ", ".join(dict.fromkeys(_managers(live))) or "an unknown field manager"
    step = f"remove it from the set, or run with {scene.options.called('adopt')}: true; an adopted object is never deleted with the set"
    return Fault(
        f"{member.key.short} does not belong to this set", member.origin, f"{why} (written by {owners})", step
    ), False


def decide(scene: Scene, member: Member) -> Step:
    """The step of a member that the record does not determine. It is validated by a dry run if the server supports that."""
    entry, live = scene.record.members.get(member.key), scene.live.get(member.key)
    _fault, adopting = ownership(scene, member)
    base = Step(
        member.key, member.resource, steps.CREATED, member=member, entry=entry, body=member.body, adopted=adopting
    )
    if live is None or live["metadata"].get("deletionTimestamp"):
        return _creation(scene, base, member, live)
    if member.planned_kind:
        # The object exists in an older API version, which a dry run cannot compare with this one.
        owners = dataclasses.replace(base, uid=live["metadata"]["uid"], live=live, before=live)
        return _change(scene, owners, Trial(member.body, unvalidated=_offline(scene, member)))
    try:
        full = (
            live
            if "spec" in live or "data" in live
            else scene.client.get(member.resource, member.key.name, member.key.namespace)
        )
    except NotFound:
        return _creation(scene, base, member, None)
    uid = full["metadata"]["uid"]
    body = with_uid(member.body, uid)
    trial = attempt(scene.client, scene.options, member, body, entry, scene.coming, live=full)
    return _change(scene, dataclasses.replace(base, uid=uid, live=full, before=full), trial)


def with_uid(body: dict[str, t.Any], uid: str) -> dict[str, t.Any]:
    """Adds the uid as precondition, because an object that was replaced since must not be changed."""
    return body | {"metadata": body["metadata"] | {"uid": uid}} if uid else body


def written_entry(step: Step, obj: dict[str, t.Any], manager: str) -> Entry:
    """The record's entry of a member after its apply."""
    if step.member is None:
        raise AssertionError(f"{step.key} has no member to apply")
    return Entry(
        key=step.key,
        uid=obj["metadata"]["uid"],
        ask=step.member.ask,
        fields=fieldsets.of_object(obj, manager),
        adopted=step.adopted,
        fought=tuple(sorted({item.manager for item in step.reclaimed} - {""})),
    )


def _creation(scene: Scene, base: Step, member: Member, dying: dict[str, t.Any] | None) -> Step:
    entry = base.entry
    lost = entry is not None and bool(entry.uid) and not entry.adopted and dying is None
    changes: dict[str, t.Any] = {"write": True, "after": member.body, "adopted": False, "await_gone": dying is not None}
    if lost:
        changes |= {"action": steps.RECLAIMED, "reason": "it was deleted", "reclaimed": (Reclaimed("", ""),)}
    step = dataclasses.replace(base, **changes)
    offline = _offline(scene, member) or ("the old one is still being deleted" if dying is not None else "")
    if offline:
        return dataclasses.replace(step, unvalidated=offline)
    trial = attempt(scene.client, scene.options, member, member.body, None, scene.coming)
    return dataclasses.replace(
        step,
        after=trial.after or member.body,
        unvalidated=trial.unvalidated,
        warnings=trial.warnings,
        faults=trial.faults,
        rights=trial.rights,
    )


def _offline(scene: Scene, member: Member) -> str:
    if member.planned_kind:
        return "its CustomResourceDefinition is only planned"
    if member.key.namespace in scene.absent_namespaces:
        return f"namespace {member.key.namespace} is only planned"
    return ""


def _change(scene: Scene, step: Step, trial: Trial) -> Step:
    """The step of an existing object, from the result of its dry run."""
    common = dataclasses.replace(
        step,
        body=trial.body,
        force=trial.force,
        propagation=trial.propagation,
        unvalidated=trial.unvalidated,
        conflicts=trial.conflicts,
        warnings=trial.warnings,
        faults=trial.faults,
        rights=trial.rights,
        reason=trial.reason,
    )
    if trial.faults:
        return dataclasses.replace(common, action=steps.CONFIGURED)
    if step.live is None or step.member is None:
        raise AssertionError(f"{step.key} is judged without its desired or observed object")
    if trial.propagation:
        return dataclasses.replace(common, action=steps.RECREATED, write=True, after=step.member.body)
    if trial.after is None:
        action = steps.ADOPTED if _is_new(step) else steps.CONFIGURED
        return dataclasses.replace(common, action=action, write=True, after=step.member.body)
    manager = scene.options.manager
    owned_before, owned_after = fieldsets.of_object(step.live, manager), fieldsets.of_object(trial.after, manager)
    back = (step.entry.fields - owned_before) & owned_after if step.entry else fieldsets.EMPTY
    reclaimed = tuple(
        Reclaimed(fieldsets.text(path), taker(step.live, path, manager)) for path in fieldsets.topmost(back)
    )
    changed = diff.changed(step.live, trial.after)
    action = (
        steps.ADOPTED
        if _is_new(step)
        else steps.RECLAIMED
        if reclaimed
        else steps.CONFIGURED
        if changed
        else steps.UNCHANGED
    )
    fight = sorted(({item.manager for item in reclaimed} - {""}) & set(step.entry.fought if step.entry else ()))
    warnings = trial.warnings + tuple(
        f"{name} takes over fields of the set at each run, so both write the same fields" for name in fight
    )
    write = changed or owned_before != owned_after
    return dataclasses.replace(
        common, action=action, write=write, after=trial.after, reclaimed=reclaimed, warnings=warnings
    )


def _is_new(step: Step) -> bool:
    return step.adopted and not (step.entry and step.entry.uid)


def taker(live: dict[str, t.Any], path: fieldsets.Path, manager: str) -> str:
    """The current owners of a field, the latest first; "" if it was removed, because the server does not record who removed a field."""
    for entry in reversed(fieldsets.managers_of(live)):
        if entry.get("manager") != manager and fieldsets.covers(fieldsets.parse(entry.get("fieldsV1")), path):
            return str(entry.get("manager"))
    return ""


def _managers(live: dict[str, t.Any]) -> list[str]:
    return [str(entry.get("manager")) for entry in fieldsets.managers_of(live) if entry.get("subresource") != "status"]
