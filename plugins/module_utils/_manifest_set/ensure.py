# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the module's options to the engine. All errors that can be detected without a server are reported here at once."""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import summary
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.absent import ensure_absent
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.held_client import HeldClient
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.hold import Held, HoldLost
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.holder import Holder, this_run
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import Report, SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.present import ensure_present
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.pruning import prune_limit
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.resolve import with_namespace
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.store import RecordStore
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.turn import turn_of
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import manifests, patches
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import expressions

_POLICIES = ("fail", "recreate", "orphan")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def ensure(
    client: Client,
    params: c.Mapping[str, t.Any],
    clock: Clock,
    resume: c.Mapping[str, t.Any],
    *,
    check_mode: bool,
    diff: bool,
    holder: Holder | None = None,
    task: str = "",
) -> Report:
    """One slice of `manifest_set`. Raises ManyFaults for errors in the options themselves.

    task: `holder.this_process` of the process that starts the slices, "" if unknown. The set is held from the first write to the end of the
    task: every slice except the last one passes its hold to the next.
    """
    options = options_of(params, check_mode=check_mode, diff=diff)
    turn = turn_of(resume, holder or this_run(task, sliced=clock.deadline is not None))
    store = RecordStore(client, options, clock)
    held = Held(store, turn, clock, options)
    client.before_repeats(held.keep)
    try:
        report = _slice(t.cast("Client", HeldClient(client, held)), params, options, store, held, clock, resume)
        _hand_over(report, held)
    except HoldLost as error:
        report = summary.from_pending(resume)
        report.failure = error
    except BaseException:
        held.let_go()
        raise
    if report.pending is not None:
        report.pending["turn"] = turn.out()
    return report


def _slice(
    client: Client,
    params: c.Mapping[str, t.Any],
    options: SetOptions,
    store: RecordStore,
    held: Held,
    clock: Clock,
    resume: c.Mapping[str, t.Any],
) -> Report:
    if params["state"] == "absent":
        return ensure_absent(client, options, store, held, clock, resume)
    found = [] if resume.get("phase") == "wait" else requested(client, params)
    return ensure_present(client, options, found, store, held, clock, resume)


def _hand_over(report: Report, held: Held) -> None:
    """Passes the hold to the next slice, or releases it at the end of the task."""
    try:
        if report.pending is not None:
            held.pause()
        else:
            held.release()
    except HoldLost as error:
        report.failure, report.pending = report.failure or error, None


def options_of(params: c.Mapping[str, t.Any], *, check_mode: bool, diff: bool) -> SetOptions:
    """The validated options."""
    faults = _option_faults(params)
    if faults:
        raise ManyFaults(faults)
    prune_limit(1, params["max_prune"])
    return SetOptions(
        name=params["name"],
        record_namespace=params["record_namespace"],
        prune=params["prune"],
        max_prune=params["max_prune"],
        adopt=params["adopt"],
        force_conflicts=params["force_conflicts"],
        strict=params["strict"],
        on_immutable=dict(params["on_immutable"] or {}),
        ready_when=dict(params["ready_when"] or {}),
        wait=params["wait"],
        wait_timeout=float(params["wait_timeout"]),
        lock_timeout=float(params["lock_timeout"]),
        check_mode=check_mode,
        diff=diff,
        option_variables=dict(params["option_variables"] or {}),
    )


def requested(client: Client, params: c.Mapping[str, t.Any]) -> list[manifests.Manifest]:
    """The manifests after namespaces and patches. Raises ManyFaults with all their errors."""
    texts = [(entry["origin"], entry["text"]) for entry in params.get("texts") or ()]
    found, faults = manifests.load(params["definition"], texts)
    wishes, wrong = patches.read(params["patches"])
    faults += wrong
    if not faults and not found:
        step = "check why they are empty; use state: absent to remove a set"
        faults.append(Fault("the set has no objects", "definition, template and src", "they are empty", step))
    if not faults and params.get("namespace"):
        found = with_namespace(client, found, params["namespace"])
        faults += manifests.duplicates(found)
    if not faults:
        found, wrong = patches.apply_all(found, wishes)
        faults += wrong
    if faults:
        raise ManyFaults(faults)
    return found


def _option_faults(params: c.Mapping[str, t.Any]) -> list[Fault]:
    faults = []
    for option in ("record_namespace", "namespace"):
        value = params.get(option)
        if value and not _NAMESPACE.fullmatch(value):
            faults.append(
                Fault(
                    f"{option} {value!r:.80} is not a name of a namespace",
                    option,
                    next_step="use lower case letters, digits and hyphens",
                )
            )
    for kind, policy in (params["on_immutable"] or {}).items():
        if policy not in _POLICIES:
            faults.append(
                Fault(
                    f"on_immutable of {kind} is {policy!r:.40}",
                    "on_immutable",
                    next_step=f"use one of {', '.join(_POLICIES)}",
                )
            )
    for kind, expression in (params["ready_when"] or {}).items():
        why = expressions.fault_of(expression)
        if why:
            faults.append(Fault(f"ready_when of {kind} is invalid", "ready_when", why, "set a JMESPath expression"))
    return faults
