# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until deleted objects are gone, including the pods of workloads."""

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
#: Seconds between two checks for pods on nodes that are not ready. Each check lists pods, and reads their nodes until one is ready.
_LOOK_SECONDS = 5.0
_MOST_REPORTED = 20


Lagging = c.Sequence[tuple[Step, str]]


def await_gone(
    client: Client, options: SetOptions, clock: Clock, deleted: c.Sequence[Step], until: float, report: Report
) -> Lagging:
    """Objects that still exist at `until` (time.time()) or at the end of the slice, and what they wait for. Their rows show it.

    Objects that only wait for nodes that are not ready are not waited for. The report names them.
    """
    pending, pause = list(deleted), _FIRST_PAUSE
    # Objects that an earlier slice deleted have been waited for.
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
    """The report if objects still exist: a failure after `until` (time.time()), else with pending, from which the next slice continues."""
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
    """Names the pods that the remaining objects wait for, if any."""
    held = {step.key: stranded.pods_of(client, step) for step, _reason in lagging[:_MOST_REPORTED]}
    named = [
        f"{step.key.short}: {f'waiting for {stranded.named(held[step.key])}' if held[step.key] else reason}"
        for step, reason in lagging[:_MOST_REPORTED]
    ]
    pods = "check why these pods do not terminate (kubectl describe pod)" if any(held.values()) else ""
    finalizers = "check that the controllers of these finalizers are running" if not all(held.values()) else ""
    next_step = ", ".join(filter(None, (pods, finalizers))) + ", and run again"
    count = f"{len(lagging)} {'objects are' if len(lagging) > 1 else 'object is'}"
    return HwaccelError(f"{count} still being deleted after {timeout:g} s", why="; ".join(named), next_step=next_step)


def _report(answers: Lagging, report: Report) -> None:
    for step, reason in answers:
        if reason or step.key in report.rows:
            report.rows[step.key] = Row(step.key, steps.DELETED, None, reason)


def _without_stranded(client: Client, lagging: Lagging, report: Report) -> list[tuple[Step, str]]:
    """Reports objects that are gone once their last pods are. It is unknown when the nodes of these pods will be ready."""
    left = {step.key: stranded.stranded(client, step) for step, _reason in lagging}
    for key, pods in left.items():
        if pods:
            why = f"waits for {stranded.named(pods)}: not ready"
            report.rows[key] = Row(key, steps.DELETED, None, why)
            report.warn(
                [
                    f"{key.short} is deleted and {why}. Next: make the node ready again, or delete its Node object if the machine is lost"
                ]
            )
    return [(step, reason) for step, reason in lagging if not left[step.key]]


def _still(client: Client, step: Step) -> str:
    """Why an object still exists, "" if it is gone or was recreated."""
    try:
        live = client.get(step.resource, step.key.name, step.key.namespace, metadata_only=True)
    except NotFound:
        return ""
    metadata = live["metadata"]
    if metadata["uid"] != step.uid:
        return ""
    finalizers = metadata.get("finalizers") or []
    return f"waits for {', '.join(finalizers)}" if finalizers else "it is being deleted"
