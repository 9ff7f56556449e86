# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holding a set while it is written: one run at a time. Private to the collection: it can change in any release."""

from __future__ import annotations

import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.holder import HOLD_SECONDS, Holder
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.options import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.record import Entry, Hold, Record
from ansible_collections.hwaccel.gpu.plugins.module_utils._engine.store import RecordStore
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey

_RENEW_AFTER = HOLD_SECONDS / 3


class Held:
    """The record while we hold it: every write of it goes through here, under the resourceVersion of the one before."""

    def __init__(self, store: RecordStore, record: Record, holder: Holder, clock: Clock) -> None:
        self._store = store
        self._holder = holder
        self._clock = clock
        self._since = clock.now()
        self._renewed = self._since
        self.record = record

    def take(self, members: dict[ObjectKey, Entry]) -> None:
        """One write takes the set and names all members, old and new. Raises RecordChanged where another run was first."""
        self.record = self._store.write(dataclasses.replace(self.record, members=members, hold=self._hold()))

    def keep(self) -> None:
        """Prolong the hold where a good part of it has gone by. Raises RecordChanged where it was lost."""
        if self._clock.now() - self._renewed > _RENEW_AFTER:
            self.record = self._store.write(dataclasses.replace(self.record, hold=self._hold()))

    def release(self, members: dict[ObjectKey, Entry]) -> None:
        """One write tells the truth and lets go."""
        self.record = self._store.write(dataclasses.replace(self.record, members=members, hold=None))

    def _hold(self) -> Hold:
        self._renewed = self._clock.now()
        return Hold(self._holder.identity, self._since, self._renewed + HOLD_SECONDS)


def blocking(record: Record, holder: Holder, now: float) -> Hold | None:
    """The hold of another run that is still alive, as far as anybody can tell."""
    hold = record.hold
    if hold is None or hold.holder == holder.identity or hold.until <= now or holder.is_dead(hold.holder):
        return None
    return hold


def told(hold: Hold, now: float) -> str:
    return f"the set is held by {hold.holder.rpartition(' (')[0] or hold.holder} for {max(0, int(now - hold.since))} s"
