# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applies the plan, wave by wave."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import steps
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.decide import Scene, with_uid, written_entry
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.gates import await_established, services_lagging
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.hold import HoldLost
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import Entry
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.trial import attempt
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import diff, waves
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Answer
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.parallel import map_all
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey

#: Seconds for all API servers to learn of a new kind or namespace.
_LEARNING_SECONDS = 30.0
_GONE_SECONDS = 120.0
_PAUSE = 0.25


@dataclasses.dataclass
class Written:
    """The results of applying so far."""

    entries: dict[ObjectKey, Entry] = dataclasses.field(default_factory=dict)
    #: The completed step, with the actual objects before and after.
    steps: dict[ObjectKey, Step] = dataclasses.field(default_factory=dict)
    faults: list[Fault] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    #: What applying waits for, if it stopped before its end without an error.
    waits_for: str = ""

    @property
    def complete(self) -> bool:
        return not self.faults and not self.waits_for


class Applier:
    """Applies the steps of one plan. The scene's client renews the hold on the set while it waits."""

    def __init__(self, scene: Scene, clock: Clock) -> None:
        self._scene = scene
        self._client = scene.client
        self._clock = clock

    def run(self, planned: c.Sequence[Step], until: float) -> Written:
        """Applies waves in order. After a wave with a failure no further one is started."""
        done = Written()
        try:
            self._run_waves(planned, until, done)
        except HoldLost as error:
            done.faults += error.faults
        return done

    def _run_waves(self, planned: c.Sequence[Step], until: float, done: Written) -> None:
        writes = [step for step in planned if step.write]
        for wave, group in waves.in_waves(writes, lambda step: (step.key.group, step.key.kind)):
            if wave == waves.WAVE_EXTENSION and not self._services_ready(group, until, done):
                return
            if wave == waves.WAVE_CUSTOM and not self._checked(group, done):
                return
            results = map_all(self._write, group, self._scene.options.threads)
            for step, result in zip(group, results, strict=True):
                self._take(step, result, done)
            if not done.faults and wave == waves.WAVE_CRD:
                done.faults += await_established(self._client, self._clock, group)
                self._client.forget_discovery()
            if done.faults:
                return

    def _take(self, step: Step, result: Answer | HwaccelError, done: Written) -> None:
        if isinstance(result, HwaccelError):
            origin = step.member.origin if step.member else ""
            done.faults += [dataclasses.replace(fault, where=origin or fault.where) for fault in result.faults]
            return
        done.warnings += [f"{step.key.short}: {text}" for text in result.warnings]
        done.entries[step.key] = written_entry(step, result.object, self._scene.options.manager)
        done.steps[step.key] = dataclasses.replace(step, after=result.object, live=result.object)

    def _write(self, step: Step) -> Answer:
        if step.member is None:
            raise AssertionError(f"{step.key} has no member to apply")
        if step.propagation:
            self._client.delete(
                step.resource, step.key.name, step.key.namespace, uid=step.uid, propagation=step.propagation
            )
        if step.propagation or step.await_gone:
            self._await_gone(step)
        fresh = not step.uid or bool(step.propagation)
        body = step.member.body if step.propagation else step.body
        body = body if fresh else with_uid(body, step.uid)
        if not step.unvalidated:
            return self._apply(step, body)
        return self._learning(lambda: self._apply(step, body))

    def _apply(self, step: Step, body: dict[str, t.Any]) -> Answer:
        return self._client.apply(body, step.resource, field_manager=self._scene.options.manager, force=step.force)

    def _learning(self, work: c.Callable[[], t.Any]) -> t.Any:
        """Retries requests that fail with NotFound until all servers know a kind or namespace that was just created."""
        end = self._clock.monotonic() + _LEARNING_SECONDS
        while True:
            try:
                return work()
            except NotFound:
                if self._clock.monotonic() >= end:
                    raise
                self._clock.sleep(_PAUSE)

    def _await_gone(self, step: Step) -> None:
        end = self._clock.monotonic() + _GONE_SECONDS
        while True:
            try:
                live = self._client.get(step.resource, step.key.name, step.key.namespace, metadata_only=True)
            except NotFound:
                return
            if self._clock.monotonic() >= end:
                held = ", ".join(live["metadata"].get("finalizers") or []) or "unknown"
                next_step = "check that the controllers of these finalizers are running, and run again"
                raise HwaccelError(
                    f"{step.key.short} is still being deleted", why=f"its finalizers: {held}", next_step=next_step
                )
            self._clock.sleep(_PAUSE)

    def _checked(self, group: c.Sequence[Step], done: Written) -> bool:
        """Dry runs of custom resources whose kind was created in this call, because the server could not validate them before."""
        late = [step for step in group if step.member is not None and step.member.planned_kind]
        scene = self._scene

        def check(step: Step) -> c.Sequence[Fault]:
            if step.member is None:
                raise AssertionError(f"{step.key} has no member to apply")
            member = step.member

            def trial() -> c.Sequence[Fault]:
                answer = attempt(scene.client, scene.options, member, step.body, step.entry, frozenset())
                if any(not fault.why or "not find the requested resource" in fault.why for fault in answer.faults):
                    raise NotFound(answer.faults[0].what, answer.faults[0].where, answer.faults[0].why)
                return answer.faults

            return t.cast("c.Sequence[Fault]", self._learning(trial))

        for result in map_all(check, late, scene.options.threads):
            done.faults += result.faults if isinstance(result, HwaccelError) else result
        return not done.faults

    def _services_ready(self, group: c.Sequence[Step], until: float, done: Written) -> bool:
        """Applies APIServices and webhooks last, because without ready endpoints they would break requests of others."""
        fresh = [step for step in group if step.action in (steps.CREATED, steps.RECLAIMED) and not step.uid]
        while True:
            lagging = services_lagging(self._client, [step.body for step in fresh])
            if not lagging:
                return True
            if self._clock.now() >= until:
                why = "an APIService or webhook without them would break requests of others"
                done.faults.append(
                    Fault(
                        f"{lagging[0]} has no ready endpoints",
                        "",
                        why,
                        "check why its pods are not ready, and run again",
                    )
                )
                return False
            if self._clock.slice_over(1.0):
                done.waits_for = f"endpoints of {lagging[0]}"
                return False
            self._clock.sleep(min(_PAUSE * 4, 1.0))


def changed_by(step: Step) -> bool:
    """Whether a step changes the cluster from the user's point of view."""
    if step.action in steps.QUIET or not step.write:
        return False
    if step.action in (steps.DELETED, steps.RELEASED, steps.RECREATED, steps.CREATED):
        return True
    return diff.changed(step.before, step.after) or not step.before
