# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removing a set: in reverse order of the waves, each gone before the next, so that controllers outlive the objects that they must finalize."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import gone, pruning, steps, summary
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.contents import foreign_contents
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.decide import Scene
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.hold import Held, HoldLost, Queued
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.observe import ObjectQuery, observe
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import (
    Report,
    Row,
    SetFailed,
    SetOptions,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.prune import remove
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import Entry, Record
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.store import RecordChanged, RecordStore
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import diff as differences
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import rights, waves
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.parallel import map_all, map_or_raise
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey

#: Objects of a deleted owner are garbage collected within seconds. Objects that remain after this time do not belong to the set.
_GRACE_SECONDS = 15.0
#: An empty Namespace is gone within a few seconds. The run does not wait longer for one that is blocked.
_CLOSING_SECONDS = 30.0


def ensure_absent(
    client: Client, options: SetOptions, store: RecordStore, held: Held, clock: Clock, resume: c.Mapping[str, t.Any]
) -> Report:
    """Deletes the recorded members and releases the adopted ones. Each slice determines the remaining work again. The caller releases the set."""
    run = _Removal(client, options, store, held, clock, resume)
    if resume.get("closing"):
        # This run has deleted its record, so that an existing one belongs to another run.
        return run.closing()
    for _race in range(8):
        try:
            return run.once()
        except RecordChanged:
            continue
    raise HwaccelError(
        f"the record of the set {options.name} keeps changing",
        why="other runs write it",
        next_step="make sure that only one run at a time writes the set",
    )


class _Removal:
    """One removal of a set, including its record."""

    def __init__(
        self,
        client: Client,
        options: SetOptions,
        store: RecordStore,
        held: Held,
        clock: Clock,
        resume: c.Mapping[str, t.Any],
    ) -> None:
        self._client = client
        self._options = options
        self._held = held
        self._clock = clock
        self._since = float(resume.get("since") or clock.now())
        self._until = self._since + options.wait_timeout
        self._report = summary.from_pending(resume)
        self._resume = resume
        self._store = store

    def once(self) -> Report:
        record = self._held.read(holds_secret=False)
        if not record.stored:
            return self.closing()
        self._report.record = {
            "kind": record.kind,
            "namespace": record.namespace,
            "name": record.name,
            "members": len(record.members),
        }
        scene = self._scene(record)
        todo = self._steps(scene, record)
        if self._options.check_mode:
            return self._planned(scene, todo)
        queued = self._held.queue(record)
        if queued is not None:
            return self._blocked(queued)
        if self._held.waited():
            # The time that the run waits for others does not count towards wait_timeout.
            self._since = self._clock.now()
            self._until = self._since + self._options.wait_timeout
        try:
            return self._remove(record, scene, todo)
        except HoldLost as error:
            self._report.failure = error
            return self._report

    def _scene(self, record: Record) -> Scene:
        served = pruning.served(self._client, record.members.values())
        queries = [ObjectQuery(entry.key, resource, bool(entry.uid)) for entry, resource in served]
        live = observe(self._client, queries, (record.id,), self._options.threads)
        return Scene(self._client, self._options, record, (record.id,), live)

    def _steps(self, scene: Scene, record: Record) -> list[Step]:
        todo = []
        for entry, resource in pruning.served(self._client, record.members.values()):
            if not pruning.is_ours(scene, entry):
                continue
            live = scene.live[entry.key]
            action = steps.RELEASED if entry.adopted else steps.DELETED
            reason = "it was adopted, so only the fields of the set are released" if entry.adopted else ""
            write = not live["metadata"].get("deletionTimestamp")
            todo.append(
                Step(
                    entry.key,
                    resource,
                    action,
                    entry=entry,
                    uid=live["metadata"]["uid"],
                    live=live,
                    before=live,
                    write=write,
                    reason=reason,
                )
            )
        return todo

    def _planned(self, scene: Scene, todo: list[Step]) -> Report:
        """Check mode: dry-run deletes detect missing permissions and webhooks that refuse."""
        members = _doomed(todo)

        def check(step: Step) -> Step:
            if (
                (step.key.group, step.key.kind) in waves.CONTAINERS
                and not step.adopted
                and step.action == steps.DELETED
            ):
                left = foreign_contents(self._client, step, members, lasting=True)
                if left:
                    return dataclasses.replace(step, action=steps.KEPT, write=False, reason=_holds(left))
            return pruning.try_delete(scene, step) if step.action == steps.DELETED and step.write else step

        checked = map_or_raise(check, todo, self._options.threads)
        lacking = sorted({right for step in checked for right in step.rights})
        summary.add_steps(self._report, checked, diff=self._options.diff)
        self._report.missing_rights = rights.as_dicts(lacking)
        faults = rights.faults(lacking) + [fault for step in checked for fault in step.faults]
        # The record itself is deleted as well.
        self._report.changed = self._report.changed or not members
        if faults:
            self._report = summary.refused(self._report, faults)
        return self._report

    def _remove(self, record: Record, scene: Scene, todo: list[Step]) -> Report:
        left = dict(record.members) if todo else {}
        kept: dict[ObjectKey, Entry] = {}
        for _wave, group in waves.in_waves(todo, lambda step: (step.key.group, step.key.kind), backwards=True):
            going = self._without_kept(group, kept, _doomed(todo))
            if any(step.write for step in going):
                if not self._held.ours:
                    self._held.take(record, left)
                faults = self._delete_wave(scene, going)
                if faults:
                    done = f"{sum(row.action == steps.DELETED for row in self._report.rows.values())} are deleted"
                    self._report.failure = self._held.lost or SetFailed(faults, done)
                    return self._report
            lagging = self._await_gone(going)
            if lagging:
                pending = summary.to_pending(self._report, "absent", self._since)
                return gone.not_gone(
                    self._client, self._options, self._clock, lagging, self._until, self._report, pending
                )
            for step in going:
                left.pop(step.key, None)
            self._held.settle(dict(left))
        return self._finish_record(record, kept)

    def _without_kept(self, group: list[Step], kept: dict[ObjectKey, Entry], members: set[ObjectKey]) -> list[Step]:
        """A Namespace or CRD that contains objects of others is kept, and so is the record."""
        going = []
        for step in group:
            is_container = (
                (step.key.group, step.key.kind) in waves.CONTAINERS and step.action == steps.DELETED and step.write
            )
            left = self._contents_after_grace(step, members) if is_container else []
            if left and step.entry is not None:
                kept[step.key] = step.entry
                self._report.rows[step.key] = Row(step.key, steps.KEPT, None, _holds(left))
            else:
                going.append(step)
        return going

    def _contents_after_grace(self, step: Step, members: set[ObjectKey]) -> list[str]:
        end = self._clock.monotonic() + _GRACE_SECONDS
        while True:
            left = foreign_contents(self._client, step, members)
            passing = foreign_contents(self._client, step, members, lasting=True) if left else []
            if not left or passing or self._clock.monotonic() >= end:
                return passing or left
            self._clock.sleep(0.5)

    def _delete_wave(self, scene: Scene, group: list[Step]) -> list[Fault]:
        faults: list[Fault] = []
        # RBAC objects and ConfigMaps must outlive the pods that need them.
        for step, result in zip(
            group, map_all(lambda step: remove(scene, step, pods_first=True), group, self._options.threads), strict=True
        ):
            if isinstance(result, HwaccelError):
                faults += result.faults
                continue
            if step.write:
                self._report.changed = True
                if self._options.diff:
                    self._report.diff.append(differences.entry(step.key.short, step.before, {}))
            self._report.rows[step.key] = Row(step.key, step.action, None, step.reason)
        return faults

    def _await_gone(self, group: list[Step]) -> gone.Lagging:
        """Objects that still exist at the deadline or at the end of the slice, and what prevents their deletion."""
        pending = [step for step in group if step.action == steps.DELETED]
        if (
            not self._options.wait
            and pending
            and all((step.key.group, step.key.kind) not in waves.CONTAINERS for step in pending)
        ):
            # Even without waiting, custom resources must be deleted before the controllers that finalize them.
            pending = [step for step in pending if waves.wave_of(step.key.group, step.key.kind) == waves.WAVE_CUSTOM]
        elif not self._options.wait:
            return []
        return gone.await_gone(self._client, self._options, self._clock, pending, self._until, self._report)

    def _finish_record(self, record: Record, kept: dict[ObjectKey, Entry]) -> Report:
        if kept:
            if self._held.ours or kept != dict(record.members) or self._held.leftover(record):
                self._held.correct(record, kept)
            self._report.record["members"] = len(kept)
            return self._report
        if not self._held.ours:
            self._held.take(record, {})
        self._held.delete()
        self._report.changed = True
        self._report.record = {}
        return self.closing()

    def closing(self) -> Report:
        """Deletes the namespace of the records with the last record."""
        if self._options.check_mode:
            return self._report
        since = self._resume.get("closing") or (self._clock.now() if self._store.drop_namespace() else None)
        if since is not None and self._options.wait:
            self._report.changed = True
            while not self._store.namespace_gone() and self._clock.now() < since + _CLOSING_SECONDS:
                if self._clock.slice_over(0.3):
                    self._report.progress.append("the namespace of the records is being deleted")
                    self._report.pending = summary.to_pending(self._report, "absent", self._since) | {"closing": since}
                    return self._report
                self._clock.sleep(0.3)
        return self._report

    def _blocked(self, queued: Queued) -> Report:
        self._report.failure = queued.failure
        if queued.failure is None:
            self._report.progress = [f"waiting: {queued.line}"]
            self._report.pending = summary.to_pending(self._report, "absent", self._since)
        return self._report


def _doomed(todo: c.Iterable[Step]) -> set[ObjectKey]:
    """Members that may be deleted with a Namespace or CRD. An adopted object is released, so that it prevents the deletion."""
    return {step.key for step in todo if step.action == steps.DELETED}


def _holds(left: list[str]) -> str:
    more = f" and {len(left) - 3} more" if len(left) > 3 else ""
    return f"it contains objects that are not in the set: {', '.join(left[:3])}{more}"
