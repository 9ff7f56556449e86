# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task's place among those that write one set, as it goes from slice to slice."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.holder import Holder


@dataclasses.dataclass
class Turn:
    """Times are (wall clock, monotonic clock) of this host.

    Slices of a task run on one host, where the monotonic clock is that of the boot; after a boot in between it has
    counted less than has gone by, which makes a reader patient and no holder careless: for that one the wall clock counts as well.
    """

    holder: Holder
    #: When the set was taken, "" where it was not.
    since: str = ""
    #: Before the last write that has renewed our hold; None where we have none.
    renewed: tuple[float, float] | None = None
    #: Another's hold: holder, its last renewal as it names it, and since when (monotonic) we have seen just that.
    sighted: tuple[str, str, float] | None = None
    #: Since when (monotonic) we wait for others.
    waiting: float | None = None

    def out(self) -> dict[str, t.Any]:
        return {
            "identity": self.holder.identity,
            "since": self.since,
            "renewed": self.renewed,
            "sighted": self.sighted,
            "waiting": self.waiting,
        }


def turn_of(resume: c.Mapping[str, t.Any], holder: Holder) -> Turn:
    """The turn of a task that may have had slices before."""
    known = resume.get("turn")
    if not known:
        return Turn(holder)
    renewed, sighted = known["renewed"], known["sighted"]
    return Turn(
        dataclasses.replace(holder, identity=known["identity"]),
        known["since"],
        (float(renewed[0]), float(renewed[1])) if renewed else None,
        (str(sighted[0]), str(sighted[1]), float(sighted[2])) if sighted else None,
        known["waiting"],
    )
