# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing a set to the state asked for. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._engine import gone, hold, rights, steps, summary
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.apply import Applier, Written
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.holder import Holder
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.options import Clock, Report, SetFailed, SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.plan import Plan, build
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.prune import Pruned, prune
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.record import Record
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.resolve import members_of
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.store import RecordChanged, RecordStore
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.wait import Judge, wait_for
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.manifests import Manifest
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey, Resource

_RACES = 8


def ensure_present(
    client: Client, options: SetOptions, manifests: c.Sequence[Manifest], holder: Holder, clock: Clock, resume: c.Mapping[str, t.Any]
) -> Report:
    """Apply, mend, prune and wait. `Report.pending` is to be given back as resume where the slice was too short."""
    if resume.get("phase") == "wait":
        return _waited(client, options, clock, summary.from_pending(resume), resume)
    run = _Run(client, options, manifests, holder, clock, resume)
    for _race in range(_RACES):
        try:
            return run.once()
        except RecordChanged:
            # Another run came in between; what it did changes our plan.
            continue
    raise HwaccelError(f"the record of the set {options.name} never stands still", why="other runs write it all the time", next_step="run one at a time")


class _Run:
    """One attempt at a time, from reading the record to releasing it."""

    def __init__(
        self, client: Client, options: SetOptions, manifests: c.Sequence[Manifest], holder: Holder, clock: Clock, resume: c.Mapping[str, t.Any]
    ) -> None:
        self._client = client
        self._options = options
        self._manifests = manifests
        self._holder = holder
        self._clock = clock
        self._since = float(resume.get("since") or clock.now())
        self._resume = resume
        self._store = RecordStore(client, options, clock)

    def once(self) -> Report:
        secret = any((manifest.key.group, manifest.key.kind) == ("", "Secret") for manifest in self._manifests)
        old = self._store.read(holds_secret=secret)
        record = _as_kind(old, "Secret") if secret and old.kind != "Secret" else old
        set_ids = tuple(dict.fromkeys((record.id, old.id, *([old.stale.id] if old.stale else []))))
        members, faults = members_of(self._client, self._manifests, record.id, self._options.record_namespace)
        if faults:
            return Report(failure=ManyFaults(faults))
        plan = build(self._client, self._options, record, set_ids, members)
        report = self._planned(plan, record)
        if report.failure is not None or self._options.check_mode:
            return report
        report = summary.merged(self._resume, report)
        truth = plan.truth({}, set())
        if plan.writes or plan.going:
            return self._write(plan, record, old, report)
        if truth != dict(record.members) or not record.stored:
            waits = self._await_hold(record)
            if waits is not None:
                return waits
            old = self._announce_move(record, old)
            self._store.write(dataclasses.replace(record, members=truth, hold=None))
        self._drop_old(record, old)
        return self._finish(plan, {}, report)

    def _planned(self, plan: Plan, record: Record) -> Report:
        report = Report(record={"kind": record.kind, "namespace": record.namespace, "name": record.name, "members": len(plan.steps)})
        report.foreign_fields = list(plan.foreign)
        report.missing_rights = rights.as_dicts(plan.rights)
        summary.add_steps(report, (*plan.steps, *plan.prunes), diff=self._options.diff)
        if plan.faults:
            report.changed, report.diff = False, []
            report.failure = ManyFaults(plan.faults)
        return report

    def _write(self, plan: Plan, record: Record, old: Record, report: Report) -> Report:
        waits = self._await_hold(record)
        if waits is not None:
            return waits
        old = self._announce_move(record, old)
        held = hold.Held(self._store, record, self._holder, self._clock)
        held.take(plan.union())
        applier = Applier(plan.scene, self._clock, held)
        until = self._since + self._options.wait_timeout
        pruned = Pruned()
        try:
            written = applier.run(plan.steps, until)
            if written.complete:
                pruned = prune(plan.scene, self._clock, held, plan.prunes, until)
                written.faults += pruned.faults
            held.release(plan.truth(written.entries, pruned.gone))
        except RecordChanged as error:
            return _lost(report, error)
        if written.complete and not pruned.lagging:
            self._drop_old(record, old)
        return self._after(plan, written, pruned, report)

    def _after(self, plan: Plan, written: Written, pruned: Pruned, report: Report) -> Report:
        """What really happened in place of what was planned."""
        report = summary.merged(self._resume, summary.outcome(report, plan, written, pruned, diff=self._options.diff))
        if written.faults:
            done = f"{len(written.entries) + len(pruned.deleted)} of {len(plan.writes)} were written"
            report.failure = SetFailed(written.faults, done)
            return report
        if pruned.lagging:
            until = self._since + self._options.wait_timeout
            return gone.not_gone(self._client, self._options, self._clock, pruned.lagging, until, report, summary.to_pending(report, "start", self._since))
        if written.waits_for:
            report.progress.append(f"waiting for {written.waits_for}")
            report.pending = summary.to_pending(report, "start", self._since)
            return report
        return self._finish(plan, dict(written.steps.items()), report)

    def _finish(self, plan: Plan, written: c.Mapping[ObjectKey, steps.Step], report: Report) -> Report:
        if not self._options.wait:
            return report
        judge = Judge(self._client, self._options)
        waits_on: dict[ObjectKey, Resource] = {}
        for step in plan.steps:
            live = written[step.key].live if step.key in written else step.live
            if not judge.concerns(step.key) or (live is not None and judge.verdict(step.key, live).ready):
                report.rows[step.key].ready = True
            else:
                waits_on[step.key] = step.resource
        if not waits_on:
            return report
        resume = {"since": self._since, "waits_on": summary.keys_out(waits_on), "set_ids": list(plan.scene.set_ids)}
        return _waited(self._client, self._options, self._clock, report, resume)

    def _await_hold(self, record: Record) -> Report | None:
        """None where the set is free. Waits by reading the record anew, which makes a new plan necessary."""
        now = self._clock.now()
        other = hold.blocking(record, self._holder, now)
        if other is None:
            return None
        since = float(self._resume.get("locked_since") or now)
        while True:
            now = self._clock.now()
            if now - since >= self._options.lock_timeout:
                step = "wait for it to end, or see why it hangs; a dead one loses its hold by itself"
                return Report(failure=HwaccelError(hold.told(other, now), self._store.where(record), "one run at a time writes a set", step))
            if self._clock.slice_over(1.0):
                report = summary.from_pending(self._resume)
                report.progress = [f"waiting: {hold.told(other, now)}"]
                report.pending = summary.to_pending(report, "start", self._since) | {"locked_since": since}
                return report
            self._clock.sleep(1.0)
            fresh = self._store.read(holds_secret=record.kind == "Secret")
            if hold.blocking(fresh, self._holder, self._clock.now()) is None:
                self._resume = {**self._resume, "locked_since": since}
                raise RecordChanged(self._store.where(record))

    def _announce_move(self, record: Record, old: Record) -> Record:
        """A set that comes to hold a Secret moves its record into one. The old one says so first: a run that then finds both knows which to believe."""
        if old.stored and old.kind != record.kind and not old.moving:
            return self._store.write(dataclasses.replace(old, moving=True))
        return old

    def _drop_old(self, record: Record, old: Record) -> None:
        stale = old if old.stored and old.kind != record.kind else old.stale
        if stale is not None:
            self._store.delete(stale)


def _as_kind(record: Record, kind: str) -> Record:
    return dataclasses.replace(record, kind=kind, resource_version="", uid="", parts=(), hold=record.hold)


def _lost(report: Report, error: RecordChanged) -> Report:
    report.failure = HwaccelError(
        "another run took the set over while this one was writing", error.faults[0].where, "ours took longer than its hold, or somebody edited the record",
        "run again",
    )
    return report


def _waited(client: Client, options: SetOptions, clock: Clock, report: Report, resume: c.Mapping[str, t.Any]) -> Report:
    """Wait for the members that resume names, and write what was seen into the report."""
    resources = {ObjectKey(*entry[:4]): client.resource(entry[4], entry[1]) for entry in resume["waits_on"]}
    until = float(resume["since"]) + options.wait_timeout
    result = wait_for(client, options, clock, resources, resume["set_ids"], until, str(resume.get("line") or ""))
    for key, verdict in result.verdicts.items():
        row = report.rows[key]
        row.ready = verdict.ready
        row.reason = verdict.reason or row.reason
    report.progress += result.progress
    if not result.over:
        line = result.progress[-1] if result.progress else str(resume.get("line") or "")
        left = {key: resources[key] for key in result.lagging}
        report.pending = summary.to_pending(report, "wait", float(resume["since"])) | {
            "waits_on": summary.keys_out(left), "set_ids": list(resume["set_ids"]), "line": line,
        }
    elif result.lagging:
        report.failure = summary.not_ready_error(result.lagging, options.wait_timeout if result.timed_out else None)
    return report
