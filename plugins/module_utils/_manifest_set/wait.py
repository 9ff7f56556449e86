# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits once for all members, by LIST with back-off, optionally in slices."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.observe import ObjectQuery, observe
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey, Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import objects, placement, readiness
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.verdicts import Verdict, waiting

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 2.0
_SHOWN = 3
_NODE = Resource("", "v1", "Node", "nodes", False)

Verdicts = dict[ObjectKey, Verdict]


class Judge:
    """Verdicts on live objects. Nodes are read at most once, and only for a DaemonSet that desires no pod, or fewer than expected."""

    def __init__(self, client: Client, options: SetOptions) -> None:
        self._client = client
        self._options = options
        self._nodes: list[dict[str, t.Any]] | None = None

    def concerns(self, key: ObjectKey) -> bool:
        return readiness.has_predicate(key.group, key.kind, self._options.ready_when)

    def verdict(self, key: ObjectKey, live: dict[str, t.Any] | None) -> Verdict:
        if live is None:
            return waiting("it does not exist")
        return readiness.judge(live, key.group, key.kind, self._options.ready_when, self._nodes_for)

    def _nodes_for(self, daemon_set: c.Mapping[str, t.Any]) -> tuple[int, int]:
        if self._nodes is None:
            self._nodes = [_reduced(node) for page in self._client.pages(_NODE) for node in page.items]
        template = (daemon_set.get("spec") or {}).get("template") or {}
        fitting = [node for node in self._nodes if placement.fits(node, template)]
        return len(fitting), sum(not objects.node(node).ready for node in fitting)


@dataclasses.dataclass(frozen=True)
class Waited:
    """over: nothing is left to wait for in this slice, because all are ready, one has failed, or the deadline has passed."""

    verdicts: Verdicts
    over: bool
    timed_out: bool = False
    progress: tuple[str, ...] = ()

    @property
    def lagging(self) -> dict[ObjectKey, Verdict]:
        return {key: verdict for key, verdict in self.verdicts.items() if not verdict.ready}


def wait_for(
    client: Client,
    options: SetOptions,
    clock: Clock,
    resources: c.Mapping[ObjectKey, Resource],
    set_ids: c.Sequence[str],
    until: float,
    last_line: str = "",
) -> Waited:
    """Polls until all are ready, one has failed, `until` (time.time()) has passed, or the slice is over."""
    judge = Judge(client, options)
    verdicts: Verdicts = {}
    lines: list[str] = []
    pause = _FIRST_PAUSE
    while True:
        pending = [key for key in resources if key not in verdicts or not verdicts[key].ready]
        queries = [ObjectQuery(key, resources[key], known=True, full=True) for key in pending]
        live = observe(client, queries, set_ids, options.threads)
        verdicts |= {key: judge.verdict(key, live.get(key)) for key in pending}
        line = progress_line(verdicts)
        if line != (lines[-1] if lines else last_line):
            lines.append(line)
        if all(verdict.ready for verdict in verdicts.values()) or any(verdict.failed for verdict in verdicts.values()):
            return Waited(verdicts, True, progress=tuple(lines))
        if clock.now() >= until:
            return Waited(verdicts, True, timed_out=True, progress=tuple(lines))
        if clock.slice_over(pause):
            return Waited(verdicts, False, progress=tuple(lines))
        clock.sleep(pause)
        pause = min(pause * 1.6, _LONGEST_PAUSE)


def progress_line(verdicts: Verdicts) -> str:
    """`12 of 16 ready, DaemonSet hwaccel-gpu/driver-x: 3 of 8 pods, …`"""
    ready = sum(verdict.ready for verdict in verdicts.values())
    lagging = [f"{key.short}: {verdict.reason}" for key, verdict in verdicts.items() if not verdict.ready]
    more = [f"and {len(lagging) - _SHOWN} more"] if len(lagging) > _SHOWN else []
    return ", ".join([f"{ready} of {len(verdicts)} ready", *lagging[:_SHOWN], *more])


def _reduced(node: dict[str, t.Any]) -> dict[str, t.Any]:
    metadata = node["metadata"]
    return {
        "metadata": {"name": metadata["name"], "labels": metadata.get("labels") or {}},
        "spec": {"taints": (node.get("spec") or {}).get("taints") or []},
        "status": {
            "conditions": [
                entry for entry in (node.get("status") or {}).get("conditions") or () if entry.get("type") == "Ready"
            ]
        },
    }
