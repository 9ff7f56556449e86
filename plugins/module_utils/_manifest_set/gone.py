# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting until what was deleted is gone, pods of workloads included."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import steps, stranded
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import Report, Row, SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.parallel import map_or_raise

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 2.0
#: Between two looks for pods on nodes that are away: each costs a list of pods, and their nodes one by one until one is ready.
_LOOK_SECONDS = 5.0
_MOST_REPORTED = 20


Lagging = c.Sequence[tuple[Step, str]]


def await_gone(
    client: Client, options: SetOptions, clock: Clock, deleted: c.Sequence[Step], until: float, report: Report
) -> Lagging:
    """Those that are still there at `until` (time.time()) or when the slice is over, with what holds each. Their rows tell it.

    What only nodes that are away hold is not waited for; the report names it.
    """
    pending, pause = list(deleted), _FIRST_PAUSE
    # What an earlier slice has deleted had its time.
    look = clock.monotonic() + (_LOOK_SECONDS if any(step.write for step in pending) else 0)
    while True:
        answers = list(
            zip(pending, map_or_raise(lambda step: _still(client, step), pending, options.threads), strict=True)
        )
        _report(answers, report)
        lagging = [(step, reason) for step, reason in answers if reason]
        if lagging and clock.monotonic() >= look:
            lagging = _without_stranded(client, lagging, report)
            look = clock.monotonic() + _LOOK_SECONDS
        if not lagging or clock.now() >= until or clock.slice_over(pause):
            return lagging
        pending = [step for step, _reason in lagging]
        clock.sleep(pause)
        pause = min(pause * 1.6, _LONGEST_PAUSE)


def not_gone(
    client: Client,
    options: SetOptions,
    clock: Clock,
    lagging: Lagging,
    until: float,
    report: Report,
    pending: dict[str, t.Any],
) -> Report:
    """The report where something lags: a failure once it is `until` (time.time()), else with pending, from which the next slice goes on."""
    if clock.now() >= until:
        report.failure = _failure(client, lagging, options.wait_timeout)
    else:
        report.progress.append(_progress_line(lagging))
        report.pending = pending
    return report


def _progress_line(lagging: Lagging) -> str:
    named = "; ".join(f"{step.key.short}: {reason}" for step, reason in lagging[:_MOST_REPORTED])
    return f"{len(lagging)} being deleted, {named}"


def _failure(client: Client, lagging: Lagging, timeout: float) -> HwaccelError:
    """Names the pods that hold what should be gone, where there are any."""
    held = {step.key: stranded.pods_of(client, step) for step, _reason in lagging[:_MOST_REPORTED]}
    named = [
        f"{step.key.short}: {f'held by {stranded.named(held[step.key])}' if held[step.key] else reason}"
        for step, reason in lagging[:_MOST_REPORTED]
    ]
    pods = "see why these pods do not end (kubectl describe pod)" if any(held.values()) else ""
    finalizers = "see that the controllers behind these finalizers run" if not all(held.values()) else ""
    next_step = ", ".join(filter(None, (pods, finalizers))) + ", and run again"
    count = f"{len(lagging)} {'objects are' if len(lagging) > 1 else 'object is'}"
    return HwaccelError(f"{count} still being deleted after {timeout:g} s", why="; ".join(named), next_step=next_step)


def _report(answers: Lagging, report: Report) -> None:
    for step, reason in answers:
        if reason or step.key in report.rows:
            report.rows[step.key] = Row(step.key, steps.DELETED, None, reason)


def _without_stranded(client: Client, lagging: Lagging, report: Report) -> list[tuple[Step, str]]:
    """Deleted they are, and gone once their last pods are; nobody can say when a node comes back."""
    left = {step.key: stranded.stranded(client, step) for step, _reason in lagging}
    for key, pods in left.items():
        if pods:
            why = f"waits for {stranded.named(pods)}: not ready"
            report.rows[key] = Row(key, steps.DELETED, None, why)
            report.warn(
                [
                    f"{key.short} is deleted and {why}. Next: bring the node back, or delete its Node object where it is lost"
                ]
            )
    return [(step, reason) for step, reason in lagging if not left[step.key]]


def _still(client: Client, step: Step) -> str:
    """Why an object is still there, "" where it is gone or somebody made another one."""
    try:
        live = client.get(step.resource, step.key.name, step.key.namespace, metadata_only=True)
    except NotFound:
        return ""
    metadata = live["metadata"]
    if metadata["uid"] != step.uid:
        return ""
    finalizers = metadata.get("finalizers") or []
    return f"waits for {', '.join(finalizers)}" if finalizers else "it is being deleted"
