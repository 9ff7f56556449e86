# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever is ended from outside takes what it has started with it."""

from __future__ import annotations

import signal
import types


def interrupted_by_sigterm() -> None:
    """Fixtures and context managers then close: sandboxes are sessions of their own, and control groups and folders of machines would stay."""

    def interrupt(_number: int, _frame: types.FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
