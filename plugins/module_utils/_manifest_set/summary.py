# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the result from steps, also across the slices of a long wait. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import steps
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.apply import Written, changed_by
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import Report, Row, object_dict
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.plan import SetPlan
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.prune import Pruned
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import diff as differences
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey, Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.verdicts import Verdict

_MOST_REPORTED = 20


def add_steps(report: Report, planned: c.Iterable[Step], *, diff: bool) -> None:
    """Rows, reclaimed fields, conflicts, warnings and differences of steps."""
    for step in planned:
        report.rows[step.key] = Row(step.key, step.action, None, step.reported)
        add_details(report, step)
        if changed_by(step):
            report.changed = True
            if diff:
                gone = step.action in (steps.DELETED, steps.RELEASED)
                report.diff.append(differences.entry(step.key.short, step.before, {} if gone else step.after))


def add_details(report: Report, step: Step) -> None:
    where = object_dict(step.key)
    report.reclaimed += [{**where, "path": item.path, "manager": item.manager} for item in step.reclaimed]
    report.conflicts += [{**where, "path": item.path, "manager": item.manager} for item in step.conflicts]
    report.warn(f"{step.key.short}: {text}" for text in step.warnings)


def outcome(report: Report, plan: SetPlan, written: Written, pruned: Pruned, *, diff: bool) -> Report:
    """The report of a real run. Steps that were not reached are marked, and `changed` depends on what the server returned."""
    real = Report(record=report.record, foreign_fields=report.foreign_fields, missing_rights=report.missing_rights)
    for step in (*plan.steps, *plan.prunes):
        done = written.steps.get(step.key, step)
        if step.write and step.key not in written.steps and step.key not in pruned.deleted:
            real.rows[step.key] = _not_reached(step.key, step.action)
            continue
        add_steps(real, (done,), diff=diff)
    real.rows |= pruned.observed.rows
    for warnings in (report.warnings, written.warnings, pruned.observed.warnings):
        real.warn(warnings)
    return real


def refused(report: Report, faults: list[Fault] | tuple[Fault, ...]) -> Report:
    """The report of a plan of which nothing is carried out because of these: it changed and corrected nothing."""
    report.rows = {
        key: row if row.action in steps.QUIET else _not_reached(key, row.action) for key, row in report.rows.items()
    }
    report.changed, report.diff, report.reclaimed = False, [], []
    report.failure = ManyFaults(faults)
    return report


def _not_reached(key: ObjectKey, action: str) -> Row:
    return Row(key, steps.UNCHANGED, False, f"not reached: it would have been {action}")


def merged(resume: c.Mapping[str, t.Any], report: Report) -> Report:
    """Merges a report with those of the previous slices, so that what they did is kept."""
    if not resume.get("rows"):
        return report
    before = from_pending(resume)
    for key, row in before.rows.items():
        mine = report.rows.get(key)
        if mine is None or (mine.action == steps.UNCHANGED and row.action != steps.UNCHANGED):
            # Objects that are no longer in the plan were waited for and are gone.
            report.rows[key] = Row(key, row.action, mine.ready if mine else row.ready, mine.reason if mine else "")
    report.changed = report.changed or before.changed
    for field in ("reclaimed", "conflicts"):
        ours = getattr(report, field)
        setattr(report, field, [item for item in getattr(before, field) if item not in ours] + ours)
    report.warn(before.warnings)
    return report


def to_pending(report: Report, phase: str, since: float) -> dict[str, t.Any]:
    return {
        "phase": phase,
        "since": since,
        "changed": report.changed,
        "rows": [[*_parts(row.key), row.action, row.ready, row.reason] for row in report.rows.values()],
        "reclaimed": report.reclaimed,
        "foreign_fields": report.foreign_fields,
        "conflicts": report.conflicts,
        "warnings": report.warnings,
        "record": report.record,
    }


def from_pending(resume: c.Mapping[str, t.Any]) -> Report:
    report = Report(changed=bool(resume.get("changed")))
    for group, kind, namespace, name, action, ready, reason in resume.get("rows") or ():
        key = ObjectKey(group, kind, namespace, name)
        report.rows[key] = Row(key, action, ready, reason)
    for field in ("reclaimed", "foreign_fields", "conflicts", "warnings"):
        setattr(report, field, list(resume.get(field) or ()))
    report.record = dict(resume.get("record") or {})
    return report


def keys_out(resources: c.Mapping[ObjectKey, Resource]) -> list[list[str]]:
    return [[*_parts(key), resource.api_version] for key, resource in resources.items()]


def not_ready_error(lagging: c.Mapping[ObjectKey, Verdict], timeout: float | None) -> HwaccelError:
    """Names objects that are not ready, failed ones first."""
    ordered = sorted(lagging.items(), key=lambda pair: not pair[1].failed)
    reasons = "; ".join(f"{key.short}: {verdict.reason}" for key, verdict in ordered[:_MOST_REPORTED])
    if len(ordered) > _MOST_REPORTED:
        reasons += f"; and {len(ordered) - _MOST_REPORTED} more"
    if timeout is None:
        broken = sum(verdict.failed for verdict in lagging.values())
        return HwaccelError(
            f"{broken} {'objects have' if broken > 1 else 'object has'} failed",
            why=reasons,
            next_step="correct the cause and run again",
        )
    count = f"{len(lagging)} {'objects are' if len(lagging) > 1 else 'object is'}"
    return HwaccelError(
        f"{count} not ready after {timeout:g} s",
        why=reasons,
        next_step="check these objects and their events, or increase wait_timeout; all objects were applied",
    )


def _parts(key: ObjectKey) -> list[str]:
    return [key.group, key.kind, key.namespace, key.name]
