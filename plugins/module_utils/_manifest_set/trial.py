# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Determines by a dry run what an apply would do."""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import causes
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.causes import FieldConflict
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.foreign import is_rightful
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import Entry
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.resolve import Member
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    ApiError,
    Conflict,
    Fault,
    Forbidden,
    Invalid,
    NotFound,
    WebhookDenied,
)

#: Kinds that are recreated by default, because they contain nothing that a new object would not have.
_RECREATED = frozenset(("RoleBinding", "ClusterRoleBinding", "Job"))
_PROPAGATION = {"recreate": "Background", "orphan": "Orphan"}


@dataclasses.dataclass(frozen=True)
class Trial:
    """after: the object after the apply; None if the server could not determine it."""

    body: dict[str, t.Any]
    after: dict[str, t.Any] | None = None
    force: bool = False
    propagation: str = ""
    unvalidated: str = ""
    reason: str = ""
    conflicts: tuple[FieldConflict, ...] = ()
    warnings: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    rights: tuple[tuple[str, str, str, str], ...] = ()


def attempt(
    client: Client,
    options: SetOptions,
    member: Member,
    body: dict[str, t.Any],
    entry: Entry | None,
    coming: frozenset[str],
    *,
    live: dict[str, t.Any] | None = None,
    force: bool = False,
    again: bool = False,
) -> Trial:
    """A dry run without force, and one with force if the only conflicts are with fields of the set.

    live: the live object, None if there is none; its managedFields list the fields of others.
    """
    try:
        answer = client.apply(body, member.resource, field_manager=options.manager, force=force, dry_run=True)
    except Conflict as error:
        found = causes.field_conflicts(error)
        if not found or again:
            return Trial(body, faults=(_fault(member, error),))
        return _contested(client, options, member, body, entry, coming, found, live or {})
    except (WebhookDenied, Invalid, Forbidden, NotFound) as error:
        return _refused(options, member, body, error, coming, force)
    return Trial(body, after=answer.object, force=force, warnings=answer.warnings)


def _contested(
    client: Client,
    options: SetOptions,
    member: Member,
    body: dict[str, t.Any],
    entry: Entry | None,
    coming: frozenset[str],
    found: list[FieldConflict],
    live: dict[str, t.Any],
) -> Trial:
    """Sorts the fields that others own: theirs by design, the set's by the record, or conflicts."""
    ours = {fieldsets.text(path) for path in entry.fields} if entry else set()
    rightful = [item for item in found if is_rightful(member.key.kind, item.manager, item.subresource, item.path)]
    left = {item.path: item for item in rightful}
    # A field that is left to one of its owners is not sent, so that it does not conflict with the others.
    contested = [item for item in found if item.path not in left]
    disputed = tuple(item for item in contested if item.path not in ours)
    if disputed and not options.force_conflicts:
        return Trial(body, conflicts=disputed, faults=tuple(_conflict_fault(member, item) for item in disputed))
    body, kept = _without(body, live, left.values())
    if kept:
        # With force, they would overwrite a controller's values.
        return Trial(body, conflicts=tuple(kept), faults=tuple(_rightful_fault(member, item) for item in kept))
    trial = attempt(client, options, member, body, entry, coming, force=bool(contested), again=True)
    explained = ", ".join(f"{item.path} is left to {item.manager}" for item in rightful)
    return dataclasses.replace(trial, conflicts=disputed, reason="; ".join(filter(None, (trial.reason, explained))))


def _without(
    body: dict[str, t.Any], live: dict[str, t.Any], fields: c.Iterable[FieldConflict]
) -> tuple[dict[str, t.Any], list[FieldConflict]]:
    """The body without fields of others, and the fields that could not be removed from it."""
    body = copy.deepcopy(body)
    kept = []
    for item in fields:
        # The text of a conflict cannot be parsed, because names can contain dots and brackets.
        owned = fieldsets.of_manager(live, item.manager, item.subresource)
        removed = [fieldsets.without_path(body, path) for path in owned if fieldsets.text(path) == item.path]
        if not any(removed):
            kept.append(item)
    return body, kept


def _refused(
    options: SetOptions, member: Member, body: dict[str, t.Any], error: ApiError, coming: frozenset[str], force: bool
) -> Trial:
    """Handles an error of the dry run: the real run will not have it, a policy handles it, or it is reported."""
    if causes.lacks_dry_run(error):
        return Trial(body, force=force, unvalidated="a webhook does not support dry runs")
    text = str(error)
    missing = next((name for name in sorted(coming) if f'"{name}"' in text or f" {name} " in text), "")
    if isinstance(error, (Forbidden, NotFound)) and missing and ("not found" in text or "no PriorityClass" in text):
        return Trial(body, force=force, unvalidated=f"it needs {missing}, which is only planned")
    if options.check_mode and isinstance(error, NotFound) and f'namespaces "{member.key.namespace}" not found' in text:
        # Another set of the same playbook may create it before, which this plan cannot know.
        return Trial(
            body,
            unvalidated=f"namespace {member.key.namespace} does not exist; the run fails unless it is created before",
        )
    field = causes.immutable_field(error) if isinstance(error, Invalid) else ""
    if field:
        policy = policy_for(options, member)
        if policy in _PROPAGATION:
            return Trial(body, propagation=_PROPAGATION[policy], reason=f"{field} of the live object is immutable")
        step = f"revert it, or set on_immutable for {member.key.kind} to recreate or orphan"
        return Trial(
            body,
            faults=(Fault(f"{field} of {member.key.short} is immutable", member.origin, error.faults[0].why, step),),
        )
    right = causes.missing_right(error) if isinstance(error, Forbidden) else None
    if right:
        return Trial(body, rights=((right["verb"], right["resource"], right["group"], right["namespace"]),))
    return Trial(body, faults=(_fault(member, error),))


def policy_for(options: SetOptions, member: Member) -> str:
    """The policy of a kind: fail, recreate or orphan."""
    key = member.key
    configured = (
        options.on_immutable.get(f"{key.kind}.{key.group}")
        or options.on_immutable.get(key.kind)
        or options.on_immutable.get("*")
    )
    return configured or ("recreate" if key.kind in _RECREATED else "fail")


def _fault(member: Member, error: ApiError) -> Fault:
    first = error.faults[0]
    return Fault(first.what, member.origin, first.why, first.next_step)


def _conflict_fault(member: Member, item: FieldConflict) -> Fault:
    step = "remove the field, or run with force_conflicts: true to take it over"
    return Fault(_belongs(member, item), member.origin, "it has another value, and this set never owned it", step)


def _rightful_fault(member: Member, item: FieldConflict) -> Fault:
    why = "a known controller owns it by design, and the field could not be removed from the request by the server's name for it"
    return Fault(_belongs(member, item), member.origin, why, "remove the field; it is never taken over by force")


def _belongs(member: Member, item: FieldConflict) -> str:
    owner = item.manager + (f" (through {item.subresource})" if item.subresource else "")
    return f"{item.path} of {member.key.short} belongs to {owner}"
