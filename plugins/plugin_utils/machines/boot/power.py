# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power and boot device of one machine: observed, changed step by step, and confirmed. Pure but for the provider and the clock that it is given."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import request, run, step

PRESENT, SETTLED, ABSENT, OBSERVED = STATES = ("present", "settled", "absent", "observed")
#: Seconds between two requests, and between two lines while a power state is waited for.
DELAY, LINES = 2.0, 10.0
_Data = c.Mapping[str, t.Any]


class Refused(Exception):
    """A BMC or a hypervisor has refused a step; the text says why."""


class Clock(t.Protocol):
    """Time, in seconds."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class Provider(t.Protocol):
    """The way to a machine's power."""

    @property
    def retries(self) -> int:
        """How often a request is repeated after what may be over in a moment."""

    def open(self) -> str:
        """Why nothing can be requested; empty where it can."""

    def observe(self) -> dict[str, t.Any]:
        """What was answered, as `run.planned` reads it."""

    def transient(self, observed: _Data) -> bool:
        """Whether the same request may be answered a moment later."""

    def take(self, planned: _Data) -> None:
        """One step of a plan. Raises Refused."""

    def close(self) -> None: ...


@dataclasses.dataclass
class Power:
    """One machine. entry: its request. nodes: of its cluster. booted, ended: what logs say of its boot. timeout: seconds for a power state.

    say: is given a line now and then while a power state is waited for.
    """

    entry: _Data
    nodes: _Data
    provider: Provider
    clock: Clock
    say: c.Callable[[str], None]
    timeout: float = 120
    booted: bool = False
    ended: bool = False
    disks: bool = False

    def ensure(self, state: str, check: bool) -> dict[str, t.Any]:
        """The plan as `run.planned` has it, with its steps taken unless check is set. Raises Refused."""
        if state == ABSENT and self.entry["provider"] != request.LIBVIRT:
            return {**run.removed(self.entry, {}, self.nodes, self.disks), "changed": False}
        refused = self.provider.open()
        try:
            observed, plan = self._observe() if not refused else self._planned({"msg": refused})
            if state == OBSERVED:
                return {"observed": observed, "changed": False}
            if state == ABSENT:
                plan |= run.removed(self.entry, observed, self.nodes, self.disks)
            part = "back" if state == SETTLED else "steps"
            last = plan if check else self._take_all(plan, part)
            return {
                **plan,
                "steps": plan[part],
                "back": last["back"],
                "power": last["power"],
                "changed": bool(plan[part]),
            }
        finally:
            self.provider.close()

    def _planned(self, observed: _Data) -> tuple[_Data, dict[str, t.Any]]:
        return observed, run.planned(self.entry, observed, self.nodes, self.booted, self.ended)

    def _take_all(self, plan: dict[str, t.Any], part: str) -> dict[str, t.Any]:
        """What was last observed."""
        last = plan
        for planned in plan[part]:
            # Of two steps to one power state the second is for where the first has not led there.
            if not planned["instead"] or last["power"] != planned["until"]:
                last = self._take(planned, part, last)
        return last

    def _take(self, planned: dict[str, t.Any], part: str, last: dict[str, t.Any]) -> dict[str, t.Any]:
        self.provider.take(planned)
        if planned["kind"] == step.POWER:
            return self._switched(planned)
        if planned["kind"] == step.BOOT and self.entry["provider"] == request.REDFISH:
            # A BMC of IPMI need not keep what it was given for longer than a minute, nor tell it.
            _observed, last = self._observe()
            if any(other["kind"] == step.BOOT for other in last[part]):
                raise Refused(self._unconfirmed(planned, "and tells another boot device after it"))
        return last

    def _switched(self, planned: dict[str, t.Any]) -> dict[str, t.Any]:
        if self.entry["provider"] == request.LIBVIRT and planned["until"] == request.ON:
            # Before anything else can end this run: its next start is to be from the disk again.
            for back in self._observe()[1]["back"]:
                self.provider.take(back)
        seconds = planned["limit"] or self.timeout
        _observed, last = self._observe(planned["until"], seconds)
        if last["power"] != planned["until"] and not planned["limit"]:
            raise Refused(self._unconfirmed(planned, f"and its power is still {last['power'] or 'not known'}"))
        return last

    def _unconfirmed(self, planned: _Data, what: str) -> str:
        virtual = self.entry["provider"] == request.LIBVIRT
        by, where = ("hypervisor", self.entry["vm"]["hypervisor"]) if virtual else ("BMC", self.entry["bmc"]["address"])
        title = planned["text"].split(":")[0]
        return f'machine {self.entry["name"]}: its {by} has taken the step "{title}" ({where}), {what}. Next: look at its own log, and run again'

    def _observe(self, expected: str = "", seconds: float = 0) -> tuple[_Data, dict[str, t.Any]]:
        """What was observed, and the plan for it. expected: the power state that is waited for, for so many seconds; empty where any will do."""
        began = shown = self.clock.now()
        tries = self.provider.retries + 1
        while True:
            observed = self.provider.observe()
            transient = self.provider.transient(observed)
            _observed, plan = self._planned(observed)
            power = plan["power"]
            answered = power == expected if expected else power in (request.ON, request.OFF)
            now, tries = self.clock.now(), tries - 1
            ended = now > began + seconds if expected else tries <= 0
            if answered or ended or (not power and not transient):
                return observed, plan
            if expected and now - shown >= LINES:
                shown = now
                self.say(f"its power is {power or 'not known'}, {now - began:.0f} s after it was to be {expected}")
            self.clock.sleep(DELAY)
