# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holding a set while it is written: one task at a time, from its first write to its end, through all its slices.

The rules are those of client-go's leader election (tools/leaderelection/leaderelection.go): nobody compares a time that another host
has written with his own clock. A holder renews by writing the record; a reader counts, by his own monotonic clock, since when he has
seen no renewal, and takes the set over after the seconds that the hold names (observedTime and LeaseDurationSeconds there). Skewed
clocks do no harm, clocks of different speed only beyond the ratio of expiry to renewal.

As there, this is no fencing. Each request of a run that holds a set, and each repetition of a write that got no answer, is preceded by a
look at the time of the last renewal, and where that is a while ago by a renewal, which fails where another run was there: a run that was
stopped, asleep or cut off learns that before it writes. What remains is one request of each thread that had passed this look and was
then delayed, on its way or with its process, for longer than is left of the hold.
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

#: As rarely as leaves a request two thirds of the hold: the transport repeats one for a minute (`_api.retry.PATIENT`).
_RENEW_AFTER = HOLD_SECONDS / 3
_POLL = 1.0

Members = c.Mapping[ObjectKey, Entry]


class HoldLost(HwaccelError):
    """Another run has the set, or may have it: nothing more may be written."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(
            "another run took the set over", where, why, "see that one run at a time writes the set, and run again"
        )


@dataclasses.dataclass(frozen=True)
class Queued:
    """Another run has the set. failure: it was waited for long enough."""

    line: str
    failure: HwaccelError | None = None


class Held:
    """The record, and our hold on it: every write of it goes through here, under the resourceVersion of the one before. Threads may share one."""

    def __init__(self, store: RecordStore, turn: Turn, clock: Clock, options: SetOptions) -> None:
        self._store = store
        self._turn = turn
        self._clock = clock
        self._options = options
        self._lock = threading.RLock()
        self._lost: HoldLost | None = None
        #: Members as the next write of the record tells them.
        self._members: Members = {}
        self._record: Record | None = None
        self._in_secret = False

    @property
    def ours(self) -> bool:
        return self._turn.renewed is not None

    @property
    def lost(self) -> HoldLost | None:
        """Set once another run has, or may have, what was ours."""
        return self._lost

    def waited(self) -> bool:
        """Whether others were waited for, reported once."""
        waited, self._turn.waiting = self._turn.waiting is not None, None
        return waited

    @property
    def record(self) -> Record:
        """As it was read or written last."""
        if self._record is None:
            raise AssertionError("the record is used before it was read")
        return self._record

    def read(self, *, holds_secret: bool) -> Record:
        """The record as it is now. Raises HoldLost where it bears no hold of ours any more."""
        record = self._store.read(holds_secret=holds_secret)
        if self.ours and not self._is_ours(record):
            self._give_up(record)
        self._record, self._members = record, record.members
        return record

    def queue(self, record: Record) -> Queued | None:
        """None where the set is free or ours. Waits for another run, until the slice is over or lock_timeout.

        Raises RecordChanged where it has come free: what was planned on it is old.
        """
        other, turn = self._blocking(record), self._turn
        if other is None:
            return None
        now = self._clock.monotonic()
        # A boot in between has set the clock back.
        turn.waiting = now if turn.waiting is None or turn.waiting > now else turn.waiting
        while other is not None:
            line = self._line(other)
            if self._clock.monotonic() - turn.waiting >= self._options.lock_timeout:
                why = "one run at a time writes a set"
                step = f"wait for it to end, or see why it hangs; a dead one loses the set {other.seconds:g} s after its last renewal has been seen"
                return Queued(line, HwaccelError(line, self._store.where(record), why, step))
            if self._clock.slice_over(_POLL):
                return Queued(line)
            self._clock.sleep(_POLL)
            other = self._blocking(self._store.read(holds_secret=record.kind == "Secret"))
        raise RecordChanged(self._store.where(record))

    def leftover(self, record: Record) -> bool:
        """Whether a run that is known to be dead has left its hold."""
        return record.hold is not None and not self._is_ours(record) and self._turn.holder.is_dead(record.hold.holder)

    def take(self, record: Record, members: Members, moved_from: Record | None = None) -> None:
        """One write takes the set and names all members, old and new; none where it is ours and they are named. Raises RecordChanged where another was first.

        moved_from: the ConfigMap whose set has come to hold a Secret.
        """
        if self.ours:
            # The record as we have it may be newer: planning took its time, and the hold was renewed.
            self.put(members)
            return
        self._turn.since = stamp(self._clock.now())
        left = moved_from or record.stale
        if left is not None:
            record = dataclasses.replace(record, stale=self._take_old(left))
        # Until the look for a Secret that another run may be making at this moment.
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
        """Tell the members now, and keep the set. No write where nothing is new."""
        with self._lock:
            self._members = members
            if self.record.members != members or not self.record.stored:
                self._renew()
            else:
                self.keep()

    def settle(self, members: Members) -> None:
        """The next write of the record tells these."""
        with self._lock:
            self._members = members

    def correct(self, record: Record, members: Members) -> None:
        """What nobody has to be kept away for, as it is a single write: the record tells the truth. Raises RecordChanged."""
        if self.ours:
            self.settle(members)
            return
        self._record = record
        if record.parts or not record.stored:
            # Parts are dropped, and the other kind is looked for, after the write: nobody may come in between.
            self.take(record, members)
            return
        self._record = self._store.write(dataclasses.replace(record, members=members, hold=None))
        self._members = members

    def keep(self) -> None:
        """To be called before each request: renews the hold where a good part of it has gone by. Raises HoldLost."""
        if not self.ours:
            return
        with self._lock:
            if self._lost is not None:
                raise self._lost
            if self._turn.holder.ended:
                self._give_up(None, "the task that this run belongs to was ended, so others may have the set")
            if self._age() >= _RENEW_AFTER:
                self._renew()

    def pause(self) -> None:
        """At the end of a slice: what is known is written, and the hold stays."""
        if self.ours and self._record is not None:
            self.put(self._members)

    def release(self) -> None:
        """One write tells the truth and lets go. Raises HoldLost."""
        with self._lock:
            if not self.ours or self._lost is not None:
                return
            if self._record is None:
                self.read(holds_secret=self._in_secret)
            if self.record.parts and self.record.members != self._members:
                self._renew()
            stale = self.record.stale
            if stale is not None and self._is_ours(stale):
                # A move that was not finished; the Secret holds the set until the write after this one.
                self._record = dataclasses.replace(
                    self.record, stale=self._store.write(dataclasses.replace(stale, hold=None))
                )
            self._write(None)
            self._turn.renewed = None

    def let_go(self) -> None:
        """After an error, as far as possible: what has happened to the record is not known, so it is read again."""
        if not self.ours or self._lost is not None:
            return
        members, known = self._members, self._record
        try:
            self.read(holds_secret=self._in_secret if known is None else known.kind == "Secret")
            self._members = members if known is not None else self._members
            self.release()
        except HwaccelError:
            # The error before this one is what is reported. The hold expires by itself.
            return

    def delete(self) -> None:
        """The record goes, and the hold with it. Raises HoldLost."""
        with self._lock:
            self.keep()
            # Alone, the record that it was moved from would be believed.
            self.drop_stale()
            self._delete(self.record)
            self._turn.renewed = None

    def drop_stale(self) -> None:
        """The ConfigMap that the record was moved from goes. Raises HoldLost."""
        with self._lock:
            if self.record.stale is not None:
                self._delete(self.record.stale)
                self._record = dataclasses.replace(self.record, stale=None)

    def resumes(self, *, secret: bool) -> None:
        """A slice that only waits: the record is read when the hold is to be renewed, and not before."""
        self._in_secret = secret

    def _take_old(self, old: Record) -> Record:
        """The ConfigMap says, in the write that takes it, that the set moves into a Secret: a run that then finds both knows which to believe.

        Whoever has it now loses it by this, so it is the one that all others compete for as long as it is there.
        """
        started = self._now()
        taken = self._store.write(dataclasses.replace(old, moving=True, hold=self._hold()))
        self._turn.renewed = started
        return taken

    def _look_aside(self, *, fresh: bool) -> None:
        """After the write that took a set: of two runs that take it in records of two kinds, each writes its own and then looks for the other's.

        So at least one of them sees the other, and steps back.
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
        """Write the record as it is to be. Where it has changed since, it goes on where the hold is still ours. taking: that we had none is no loss."""
        started = self._now()
        # From here on the server may have it, whatever we hear.
        self._turn.renewed = self._turn.renewed or started
        desired = dataclasses.replace(self.record, members=self._members, hold=hold)
        try:
            self._record = self._store.write(desired)
        except RecordChanged:
            found = self._store.read(holds_secret=desired.kind == "Secret")
            if self._is_ours(found) and found.kind == desired.kind:
                # Somebody edited it, or our own write got no answer and was sent again.
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
            f"ours went {self._age():.0f} s without a renewal"
            if self._age() >= HOLD_SECONDS
            else "somebody has changed the record"
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
        """Seconds since our last renewal, at most: a machine that was asleep is noticed by its wall clock, one whose wall clock was set back by the other."""
        if self._turn.renewed is None:
            return 0.0
        return max(now - then for now, then in zip(self._now(), self._turn.renewed, strict=True))

    def _blocking(self, record: Record) -> Hold | None:
        """The hold of another run that is still alive, as far as anybody can tell."""
        hold, turn = record.hold, self._turn
        if hold is None or self._is_ours(record) or turn.holder.is_dead(hold.holder):
            # A run that was stopped in the middle of a move may have the old record only.
            return self._blocking(record.stale) if record.stale is not None else None
        now = self._clock.monotonic()
        if turn.sighted is None or turn.sighted[:2] != (hold.holder, hold.renewed) or turn.sighted[2] > now:
            turn.sighted = (hold.holder, hold.renewed, now)
        return hold if now - turn.sighted[2] < hold.seconds else None

    def _line(self, hold: Hold) -> str:
        if self._turn.sighted is None:
            raise AssertionError("a hold is reported that was not looked at")
        age = self._clock.monotonic() - self._turn.sighted[2]
        since = f" since {hold.since} by its own clock" if hold.since else ""
        left = f"its last renewal was seen {age:.0f} s ago, without another it is free in {max(0.0, hold.seconds - age):.0f} s"
        return f"the set is held by {_short(hold.holder)}{since}; {left}"


def _short(identity: str) -> str:
    return identity.rpartition(" (")[0] or identity
