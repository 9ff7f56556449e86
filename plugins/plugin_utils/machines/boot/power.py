# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power and boot device of one machine: observed, changed step by step, and confirmed. Pure except for the provider and the clock."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import request, run, step

PRESENT, SETTLED, RESUMED, ABSENT, OBSERVED = STATES = ("present", "settled", "resumed", "absent", "observed")
#: Seconds between requests, and between lines of output, during the wait for a power state.
DELAY, LINES = 2.0, 10.0
_Data = c.Mapping[str, t.Any]


class Refused(Exception):
    """A BMC or a hypervisor has refused a step; the text says why."""


class Clock(t.Protocol):
    """Time, in seconds."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class Provider(t.Protocol):
    """Controls the power of a machine."""

    @property
    def retries(self) -> int:
        """How often a request is retried after a transient error."""

    def open(self) -> str:
        """Connects. Returns why that failed, empty if it succeeded."""

    def observe(self) -> dict[str, t.Any]:
        """The response, as `run.planned` reads it."""

    def transient(self, observed: _Data) -> bool:
        """Whether a retry may succeed."""

    def take(self, planned: _Data) -> None:
        """Takes one step of a plan. Raises Refused."""

    def close(self) -> None: ...


@dataclasses.dataclass
class Power:
    """One machine. entry: its request. nodes: of its cluster. booted, ended: its progress in the logs. timeout: for a power state, in seconds.

    say: called with a line of output during the wait for a power state.
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
        """Returns the plan of `run.planned`, after its steps are taken unless check is set. Raises Refused."""
        if state == ABSENT and self.entry["provider"] != request.LIBVIRT:
            return {**run.removed(self.entry, {}, self.nodes, self.disks), "changed": False}
        refused = self.provider.open()
        try:
            # A virtual machine that was started from the network is off at its end.
            expected = request.OFF if state == RESUMED else ""
            observed, plan = self._observe(expected, self.timeout) if not refused else self._planned({"msg": refused})
            if state == OBSERVED:
                return {"observed": observed, "changed": False}
            if state == ABSENT:
                plan |= run.removed(self.entry, observed, self.nodes, self.disks)
            if state == RESUMED:
                plan |= run.resumed(self.entry, observed)
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
        """Takes all steps, and returns the last plan."""
        last = plan
        for planned in plan[part]:
            # The second of two steps to a power state is taken only if the first has failed.
            if not planned["instead"] or last["power"] != planned["until"]:
                last = self._take(planned, part, last)
        return last

    def _take(self, planned: dict[str, t.Any], part: str, last: dict[str, t.Any]) -> dict[str, t.Any]:
        self.provider.take(planned)
        if planned["kind"] == step.POWER:
            return self._switched(planned)
        if planned["kind"] == step.BOOT and self.entry["provider"] == request.REDFISH:
            # Only Redfish is confirmed: a BMC with IPMI may drop or not report the boot device.
            _observed, last = self._observe()
            if any(other["kind"] == step.BOOT for other in last[part]):
                raise Refused(self._unconfirmed(planned, "but reports another boot device"))
        return last

    def _switched(self, planned: dict[str, t.Any]) -> dict[str, t.Any]:
        if self.entry["provider"] == request.LIBVIRT and planned["until"] == request.ON:
            # Reset first, so that the next start is from the disk even if this run is interrupted.
            for back in self._observe()[1]["back"]:
                self.provider.take(back)
        seconds = planned["limit"] or self.timeout
        _observed, last = self._observe(planned["until"], seconds)
        if last["power"] != planned["until"] and not planned["limit"]:
            raise Refused(self._unconfirmed(planned, f"but its power is still {last['power'] or 'unknown'}"))
        return last

    def _unconfirmed(self, planned: _Data, what: str) -> str:
        virtual = self.entry["provider"] == request.LIBVIRT
        by, where = ("hypervisor", self.entry["vm"]["hypervisor"]) if virtual else ("BMC", self.entry["bmc"]["address"])
        title = planned["text"].split(":")[0]
        return f'machine {self.entry["name"]}: its {by} has accepted the step "{title}" ({where}), {what}. Next: inspect the log of the {by}, and run again'

    def _observe(self, expected: str = "", seconds: float = 0) -> tuple[_Data, dict[str, t.Any]]:
        """The observed state, and the plan for it. expected: power state to wait for, with seconds as the timeout; empty for any."""
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
                self.say(f"its power is {power or 'unknown'}, waiting for {expected} since {now - began:.0f} s")
            self.clock.sleep(DELAY)
