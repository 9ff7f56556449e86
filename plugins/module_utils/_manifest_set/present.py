# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a set to the desired state."""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import gone, steps, summary
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.apply import Applier, Written
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.hold import Held, HoldLost
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import Report, SetFailed, SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.plan import SetPlan, build
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.prune import Pruned, prune
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import Record
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.resolve import members_of
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.store import RecordChanged, RecordStore
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.wait import Judge, wait_for
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import rights
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.manifests import Manifest
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey, Resource

_RACES = 8


def ensure_present(
    client: Client,
    options: SetOptions,
    manifests: c.Sequence[Manifest],
    store: RecordStore,
    held: Held,
    clock: Clock,
    resume: c.Mapping[str, t.Any],
) -> Report:
    """Apply, correct drift, prune and wait. `Report.pending` must be passed as resume to the next slice, if there is one. The caller releases the set."""
    if resume.get("phase") == "wait":
        report = summary.from_pending(resume)
        held.resumes(secret=report.record.get("kind") == "Secret")
        return _waited(client, options, clock, report, resume)
    run = _Run(client, options, manifests, store, held, clock, resume)
    for _race in range(_RACES):
        try:
            return run.once()
        except RecordChanged:
            # Another run changed the set in the meantime, so the plan is outdated.
            continue
    raise HwaccelError(
        f"the record of the set {options.name} keeps changing",
        why="other runs write it",
        next_step="make sure that only one run at a time writes the set",
    )


class _Run:
    """One attempt, from reading the record to releasing it."""

    def __init__(
        self,
        client: Client,
        options: SetOptions,
        manifests: c.Sequence[Manifest],
        store: RecordStore,
        held: Held,
        clock: Clock,
        resume: c.Mapping[str, t.Any],
    ) -> None:
        self._client = client
        self._options = options
        self._manifests = manifests
        self._held = held
        self._clock = clock
        self._since = float(resume.get("since") or clock.now())
        self._resume = resume
        self._store = store

    def once(self) -> Report:
        secret = any((manifest.key.group, manifest.key.kind) == ("", "Secret") for manifest in self._manifests)
        old = self._held.read(holds_secret=secret)
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
        busy = plan.writes or plan.going or record.kind != old.kind or old.stale is not None
        if not busy and truth == dict(record.members) and record.stored and not self._held.leftover(record):
            return self._finish(plan, {}, report)
        waits = self._await_turn(old)
        if waits is not None:
            return waits
        if busy:
            return self._write(plan, record, old, report)
        self._held.correct(record, truth)
        return self._finish(plan, {}, report)

    def _planned(self, plan: SetPlan, record: Record) -> Report:
        report = Report(
            record={"kind": record.kind, "namespace": record.namespace, "name": record.name, "members": len(plan.steps)}
        )
        report.foreign_fields = list(plan.foreign)
        report.missing_rights = rights.as_dicts(plan.rights)
        summary.add_steps(report, (*plan.steps, *plan.prunes), diff=self._options.diff)
        if plan.faults:
            return summary.refused(report, plan.faults)
        return report

    def _write(self, plan: SetPlan, record: Record, old: Record, report: Report) -> Report:
        self._held.take(record, plan.union(), moved_from=old if old.stored and old.kind != record.kind else None)
        until = self._since + self._options.wait_timeout
        pruned = Pruned()
        written = Applier(plan.scene, self._clock).run(plan.steps, until)
        if written.complete:
            pruned = prune(plan.scene, self._clock, plan.prunes, until)
            written.faults += pruned.faults
        self._held.settle(plan.truth(written.entries, pruned.gone))
        if written.complete and not pruned.lagging:
            with contextlib.suppress(HoldLost):
                self._held.drop_stale()
        return self._after(plan, written, pruned, report)

    def _after(self, plan: SetPlan, written: Written, pruned: Pruned, report: Report) -> Report:
        """Replaces the planned steps by what was done."""
        report = summary.merged(self._resume, summary.outcome(report, plan, written, pruned, diff=self._options.diff))
        if self._held.lost is not None:
            report.failure = self._held.lost
            return report
        if written.faults:
            done = f"{len(written.entries) + len(pruned.deleted)} of {len(plan.writes)} were written"
            report.failure = SetFailed(written.faults, done)
            return report
        if pruned.lagging:
            until = self._since + self._options.wait_timeout
            return gone.not_gone(
                self._client,
                self._options,
                self._clock,
                pruned.lagging,
                until,
                report,
                summary.to_pending(report, "start", self._since),
            )
        if written.waits_for:
            report.progress.append(f"waiting for {written.waits_for}")
            report.pending = summary.to_pending(report, "start", self._since)
            return report
        return self._finish(plan, dict(written.steps.items()), report)

    def _finish(self, plan: SetPlan, written: c.Mapping[ObjectKey, steps.Step], report: Report) -> Report:
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

    def _await_turn(self, record: Record) -> Report | None:
        """None if the set is free or held by this run. Raises RecordChanged if another run released it."""
        queued = self._held.queue(record)
        # The time that the run waits for others does not count towards wait_timeout.
        if queued is None:
            self._since = self._clock.now() if self._held.waited() else self._since
            return None
        if queued.failure is not None:
            return Report(failure=queued.failure)
        report = summary.from_pending(self._resume)
        report.progress = [f"waiting: {queued.line}"]
        report.pending = summary.to_pending(report, "start", self._since)
        return report


def _as_kind(record: Record, kind: str) -> Record:
    return dataclasses.replace(record, kind=kind, resource_version="", uid="", parts=())


def _waited(client: Client, options: SetOptions, clock: Clock, report: Report, resume: c.Mapping[str, t.Any]) -> Report:
    """Waits for the members in resume, and reports their observed state."""
    resources = {ObjectKey(*entry[:4]): client.resource(entry[4], entry[1]) for entry in resume["waits_on"]}
    until = float(resume["since"]) + options.wait_timeout
    try:
        result = wait_for(client, options, clock, resources, resume["set_ids"], until, str(resume.get("line") or ""))
    except HoldLost as error:
        report.failure = error
        return report
    for key, verdict in result.verdicts.items():
        row = report.rows[key]
        row.ready = verdict.ready
        row.reason = verdict.reason or row.reason
    report.progress += result.progress
    if not result.over:
        line = result.progress[-1] if result.progress else str(resume.get("line") or "")
        left = {key: resources[key] for key in result.lagging}
        report.pending = summary.to_pending(report, "wait", float(resume["since"])) | {
            "waits_on": summary.keys_out(left),
            "set_ids": list(resume["set_ids"]),
            "line": line,
        }
    elif result.lagging:
        report.failure = summary.not_ready_error(result.lagging, options.wait_timeout if result.timed_out else None)
    return report
