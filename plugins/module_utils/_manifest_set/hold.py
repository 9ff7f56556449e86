# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holding a set while it is written: one task at a time, from its first write to its end, through all its slices.

The rules are those of client-go's leader election (tools/leaderelection/leaderelection.go): a time that another host has written is never
compared with the local clock. A holder renews by writing the record. A reader measures, by its own monotonic clock, how long it has
observed no renewal, and takes the set over after the duration in the hold (observedTime and LeaseDurationSeconds there). Clock skew
has no effect, and clocks of different speed matter only beyond the ratio of expiry to renewal.

As there, this is not fencing. Before each request of a run that holds a set, and before each retry of a write without an answer, the run
checks the time of its last renewal, and renews if that is a while ago. The renewal fails if another run took the set. So a run that was
stopped, suspended or disconnected detects this before it writes. The remaining risk is one request of each thread that passed the check and
was then delayed for longer than the rest of the hold.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import threading
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import (
    HOLD_SECONDS,
    Entry,
    Hold,
    Record,
    stamp,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.store import RecordChanged, RecordStore
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.turn import Turn
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey

#: Leaves two thirds of the hold for a request, because the transport retries one for a minute (`_api.retry.PATIENT`).
_RENEW_AFTER = HOLD_SECONDS / 3
_POLL = 1.0

Members = c.Mapping[ObjectKey, Entry]


class HoldLost(HwaccelError):
    """Another run holds the set, or may hold it, so nothing more may be written."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(
            "another run took over the set",
            where,
            why,
            "make sure that only one run at a time writes the set, and run again",
        )


@dataclasses.dataclass(frozen=True)
class Queued:
    """Another run holds the set. failure: lock_timeout has passed."""

    line: str
    failure: HwaccelError | None = None


class Held:
    """The record and the hold on it. Every write of the record uses the resourceVersion of the previous one. Threads may share an instance."""

    def __init__(self, store: RecordStore, turn: Turn, clock: Clock, options: SetOptions) -> None:
        self._store = store
        self._turn = turn
        self._clock = clock
        self._options = options
        self._lock = threading.RLock()
        self._lost: HoldLost | None = None
        #: Members for the next write of the record.
        self._members: Members = {}
        self._record: Record | None = None
        self._in_secret = False

    @property
    def ours(self) -> bool:
        return self._turn.renewed is not None

    @property
    def lost(self) -> HoldLost | None:
        """Set once another run holds, or may hold, the set."""
        return self._lost

    def waited(self) -> bool:
        """Whether the run waited for others, reported once."""
        waited, self._turn.waiting = self._turn.waiting is not None, None
        return waited

    @property
    def record(self) -> Record:
        """The record as last read or written."""
        if self._record is None:
            raise AssertionError("the record is used before it was read")
        return self._record

    def read(self, *, holds_secret: bool) -> Record:
        """The current record. Raises HoldLost if it no longer has this run's hold."""
        record = self._store.read(holds_secret=holds_secret)
        if self.ours and not self._is_ours(record):
            self._give_up(record)
        self._record, self._members = record, record.members
        return record

    def queue(self, record: Record) -> Queued | None:
        """None if the set is free or held by this run. Waits for another run until the end of the slice or lock_timeout.

        Raises RecordChanged if another run released it, because the plan is then outdated.
        """
        other, turn = self._blocking(record), self._turn
        if other is None:
            return None
        now = self._clock.monotonic()
        # A reboot has reset the clock.
        turn.waiting = now if turn.waiting is None or turn.waiting > now else turn.waiting
        while other is not None:
            line = self._line(other)
            if self._clock.monotonic() - turn.waiting >= self._options.lock_timeout:
                why = "only one run at a time may write a set"
                step = f"wait for it to end, or check why it is stuck; if it is dead, its hold expires {other.seconds:g} s after its last renewal"
                return Queued(line, HwaccelError(line, self._store.where(record), why, step))
            if self._clock.slice_over(_POLL):
                return Queued(line)
            self._clock.sleep(_POLL)
            other = self._blocking(self._store.read(holds_secret=record.kind == "Secret"))
        raise RecordChanged(self._store.where(record))

    def leftover(self, record: Record) -> bool:
        """Whether the hold belongs to a run that is known to be dead."""
        return record.hold is not None and not self._is_ours(record) and self._turn.holder.is_dead(record.hold.holder)

    def take(self, record: Record, members: Members, moved_from: Record | None = None) -> None:
        """Takes the set and records all members, old and new, in one write, if that is still needed. Raises RecordChanged if another run was first.

        moved_from: the ConfigMap of a set that now contains a Secret.
        """
        if self.ours:
            # This run's record may be newer than the plan, because the hold was renewed while planning.
            self.put(members)
            return
        self._turn.since = stamp(self._clock.now())
        left = moved_from or record.stale
        if left is not None:
            record = dataclasses.replace(record, stale=self._take_old(left))
        # This lasts until the check for a Secret that another run may be creating at the same time.
        moving = record.moving or (record.kind == "ConfigMap" and not record.stored)
        self._record, self._members = dataclasses.replace(record, moving=moving), members
        try:
            self._write(self._hold(), taking=True)
        except RecordChanged:
            if record.stale is not None:
                self._store.write(dataclasses.replace(record.stale, hold=None))
            raise
        self._look_aside(fresh=not record.stored)

    def put(self, members: Members) -> None:
        """Records the members now and keeps the hold. Nothing is written if there is no change."""
        with self._lock:
            self._members = members
            if self.record.members != members or not self.record.stored:
                self._renew()
            else:
                self.keep()

    def settle(self, members: Members) -> None:
        """Sets the members for the next write of the record."""
        with self._lock:
            self._members = members

    def correct(self, record: Record, members: Members) -> None:
        """Updates the record without a hold, because it is a single write. Raises RecordChanged."""
        if self.ours:
            self.settle(members)
            return
        self._record = record
        if record.parts or not record.stored:
            # After the write, parts are deleted and the other kind is checked, so other runs must be excluded.
            self.take(record, members)
            return
        self._record = self._store.write(dataclasses.replace(record, members=members, hold=None))
        self._members = members

    def keep(self) -> None:
        """Must be called before each request. Renews the hold after a third of its duration. Raises HoldLost."""
        if not self.ours:
            return
        with self._lock:
            if self._lost is not None:
                raise self._lost
            if self._turn.holder.ended:
                self._give_up(None, "the task of this run was ended, so other runs may hold the set")
            if self._age() >= _RENEW_AFTER:
                self._renew()

    def pause(self) -> None:
        """At the end of a slice, writes the known state and keeps the hold."""
        if self.ours and self._record is not None:
            self.put(self._members)

    def release(self) -> None:
        """Writes the final state and releases the hold in one write. Raises HoldLost."""
        with self._lock:
            if not self.ours or self._lost is not None:
                return
            if self._record is None:
                self.read(holds_secret=self._in_secret)
            if self.record.parts and self.record.members != self._members:
                self._renew()
            stale = self.record.stale
            if stale is not None and self._is_ours(stale):
                # The move was not completed. The Secret holds the set until the next write.
                self._record = dataclasses.replace(
                    self.record, stale=self._store.write(dataclasses.replace(stale, hold=None))
                )
            self._write(None)
            self._turn.renewed = None

    def let_go(self) -> None:
        """Releases the hold after an error, as far as possible. The state of the record is unknown, so it is read again."""
        if not self.ours or self._lost is not None:
            return
        members, known = self._members, self._record
        try:
            self.read(holds_secret=self._in_secret if known is None else known.kind == "Secret")
            self._members = members if known is not None else self._members
            self.release()
        except HwaccelError:
            # The first error is reported. The hold expires automatically.
            return

    def delete(self) -> None:
        """Deletes the record, and so the hold. Raises HoldLost."""
        with self._lock:
            self.keep()
            # If the record that it was moved from remained, the next run would use it.
            self.drop_stale()
            self._delete(self.record)
            self._turn.renewed = None

    def drop_stale(self) -> None:
        """Deletes the ConfigMap that the record was moved from. Raises HoldLost."""
        with self._lock:
            if self.record.stale is not None:
                self._delete(self.record.stale)
                self._record = dataclasses.replace(self.record, stale=None)

    def resumes(self, *, secret: bool) -> None:
        """In a slice that only waits, the record is not read before the hold must be renewed."""
        self._in_secret = secret

    def _take_old(self, old: Record) -> Record:
        """Records in the ConfigMap, in the write that takes it, that the set moves to a Secret, so that a run that finds both knows which one is valid.

        This write ends the current hold, so all runs compete for the ConfigMap as long as it exists.
        """
        started = self._now()
        taken = self._store.write(dataclasses.replace(old, moving=True, hold=self._hold()))
        self._turn.renewed = started
        return taken

    def _look_aside(self, *, fresh: bool) -> None:
        """Called after the write that took a set. If two runs take it in records of two kinds, each writes its own and then checks for the other's.

        So at least one of them detects the other, and releases its hold.
        """
        record = self.record
        if record.kind == "ConfigMap" and record.moving:
            if self._store.beside(record) is not None:
                self._step_back(fresh=fresh)
            self._record = dataclasses.replace(record, moving=False)
        elif record.kind == "Secret" and (fresh or record.stale is not None):
            old = self._store.beside(record)
            if (old.resource_version if old else "") != (record.stale.resource_version if record.stale else ""):
                self._step_back(fresh=fresh)

    def _step_back(self, *, fresh: bool) -> t.NoReturn:
        if fresh:
            self._delete(self.record)
            self._turn.renewed = None
        else:
            self.settle(self.record.members)
            self.release()
        raise RecordChanged(self._store.where(self.record))

    def _delete(self, record: Record) -> None:
        try:
            self._store.delete(record)
        except RecordChanged:
            found = self._store.read_kind(record.kind)
            if found is None:
                return
            if not self._is_ours(found):
                self._give_up(found)
            self._store.delete(found)

    def _renew(self) -> None:
        if self._record is None:
            self.read(holds_secret=self._in_secret)
        self._write(self._hold())

    def _write(self, hold: Hold | None, *, taking: bool = False) -> None:
        """Writes the desired record. If it changed since, the run continues if it still holds the set. taking: there was no hold before."""
        started = self._now()
        # From here on the server may have stored it, whatever it answers.
        self._turn.renewed = self._turn.renewed or started
        desired = dataclasses.replace(self.record, members=self._members, hold=hold)
        try:
            self._record = self._store.write(desired)
        except RecordChanged:
            found = self._store.read(holds_secret=desired.kind == "Secret")
            if self._is_ours(found) and found.kind == desired.kind:
                # The record was edited, or this run's own write got no answer and was retried.
                self._record = self._store.write(
                    dataclasses.replace(
                        desired, resource_version=found.resource_version, uid=found.uid, parts=found.parts
                    )
                )
            elif hold is None and found.hold is None and found.stored and found.members == desired.members:
                self._record = found
            elif taking:
                self._turn.renewed = None
                raise
            else:
                self._give_up(found)
        self._turn.renewed = started

    def _give_up(self, found: Record | None, why: str = "") -> t.NoReturn:
        holder = found.hold.holder if found is not None and found.hold is not None else ""
        by = f"it is held by {_short(holder)}" if holder else "its record was released, replaced or deleted"
        late = (
            f"the hold of this run was not renewed for {self._age():.0f} s"
            if self._age() >= HOLD_SECONDS
            else "the record was changed"
        )
        known = self._record or found
        self._lost = HoldLost(self._store.where(known) if known else "", why or f"{by}; {late}")
        raise self._lost

    def _is_ours(self, record: Record) -> bool:
        return record.hold is not None and record.hold.holder == self._turn.holder.identity

    def _hold(self) -> Hold:
        return Hold(self._turn.holder.identity, self._turn.since, stamp(self._clock.now()), HOLD_SECONDS)

    def _now(self) -> tuple[float, float]:
        return self._clock.now(), self._clock.monotonic()

    def _age(self) -> float:
        """Maximum of the seconds since the last renewal by both clocks: the wall clock detects a suspended machine, the monotonic one a wall clock set back."""
        if self._turn.renewed is None:
            return 0.0
        return max(now - then for now, then in zip(self._now(), self._turn.renewed, strict=True))

    def _blocking(self, record: Record) -> Hold | None:
        """The hold of another run that is alive, as far as known."""
        hold, turn = record.hold, self._turn
        if hold is None or self._is_ours(record) or turn.holder.is_dead(hold.holder):
            # A run that was stopped during a move may only have the old record.
            return self._blocking(record.stale) if record.stale is not None else None
        now = self._clock.monotonic()
        if turn.sighted is None or turn.sighted[:2] != (hold.holder, hold.renewed) or turn.sighted[2] > now:
            turn.sighted = (hold.holder, hold.renewed, now)
        return hold if now - turn.sighted[2] < hold.seconds else None

    def _line(self, hold: Hold) -> str:
        if self._turn.sighted is None:
            raise AssertionError("a hold is reported that was not observed")
        age = self._clock.monotonic() - self._turn.sighted[2]
        since = f" since {hold.since} by its own clock" if hold.since else ""
        left = f"its last renewal was observed {age:.0f} s ago; without another one it expires in {max(0.0, hold.seconds - age):.0f} s"
        return f"the set is held by {_short(hold.holder)}{since}; {left}"


def _short(identity: str) -> str:
    return identity.rpartition(" (")[0] or identity
