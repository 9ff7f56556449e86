# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a worker reads its object again."""

from __future__ import annotations

import time
from typing import Any


class Kept:
    """The published object of a worker. Its cycles follow simulated time. Requests to the API server, which all nodes share, follow the machine's time."""

    def __init__(self, proc: Any) -> None:
        self._quiet: float = proc.kubelet.agent.quiet
        self._content: Any = None
        self._observed_at = 0.0

    def holds(self, content: Any) -> bool:
        """Whether the object was the same a moment ago."""
        return bool(self._content == content and time.monotonic() - self._observed_at < self._quiet)

    def observed(self, content: Any) -> None:
        self._content, self._observed_at = content, time.monotonic()
