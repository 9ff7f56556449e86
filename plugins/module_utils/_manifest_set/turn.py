# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a task that writes a set or waits for it, passed from slice to slice."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.holder import Holder


@dataclasses.dataclass
class Turn:
    """Times are (wall clock, monotonic clock) of this host.

    Slices of a task run on one host, whose monotonic clock starts at boot. After a reboot in between, it has counted less than has
    passed. A waiting run then only waits longer. A holder also checks the wall clock, so that it does not overestimate its hold.
    """

    holder: Holder
    #: When this task took the set, "" if it did not.
    since: str = ""
    #: Before the last write that renewed the hold; None if there is no hold.
    renewed: tuple[float, float] | None = None
    #: The hold of another run: holder, its last renewal by its own clock, and since when (monotonic) that was observed.
    sighted: tuple[str, str, float] | None = None
    #: Since when (monotonic) the task has waited for others.
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
    """The state of a task that may have had slices before."""
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
