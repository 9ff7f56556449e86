# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated time that only tests advance."""

from __future__ import annotations

import collections.abc as c

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock


class Time:
    """`now`: seconds of the server's clock. `ahead`: seconds that the client's wall clock is ahead of it. `on_sleep` is called after each sleep."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.ahead = 0.0
        self.on_sleep: c.Callable[[], object] = lambda: None

    def time(self) -> float:
        return self.now + self.ahead

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float = 10.0) -> None:
        self.now += seconds

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()

    def clock(self, slice_of: float | None = None) -> Clock:
        """The clock for operations. `slice_of`: seconds until the slice ends, None without slices."""
        return Clock(None if slice_of is None else self.now + slice_of, self.time, self.monotonic, self.sleep)
