# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time, for code that waits."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import time


@dataclasses.dataclass(frozen=True)
class Clock:
    """Time functions, which tests can replace. deadline: time.monotonic() at which a slice ends, None where there are no slices."""

    deadline: float | None = None
    now: c.Callable[[], float] = time.time
    monotonic: c.Callable[[], float] = time.monotonic
    sleep: c.Callable[[float], None] = time.sleep

    def slice_over(self, ahead: float = 0.0) -> bool:
        return self.deadline is not None and self.monotonic() + ahead >= self.deadline
