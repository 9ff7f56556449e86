# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever is ended from outside takes what it has started with it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import threading
import types

#: In the environment of runs that tests start.
_STARTED_BY = "HWACCEL_STARTED_BY"
_ENDED = threading.Event()


def started_by_these() -> dict[str, str]:
    """Environment variables of a run that goes when these tests are ended. Raises KeyboardInterrupt where they have been."""
    if _ENDED.is_set():
        raise KeyboardInterrupt
    return {_STARTED_BY: str(os.getpid())}


def kill_with(variable: str) -> None:
    """Every process that has this NAME=VALUE in its environment, until there are none.

    A process group is not enough: Ansible's workers lead sessions of their own (ansible-core 2.19, WorkerProcess).
    """

    def has_it(folder: pathlib.Path) -> bool:
        with contextlib.suppress(OSError):
            return variable.encode() in (folder / "environ").read_bytes().split(b"\0")
        return False

    while found := [int(folder.name) for folder in pathlib.Path("/proc").glob("[0-9]*") if has_it(folder)]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def interrupted_by_sigterm() -> None:
    """Fixtures and context managers then close: sandboxes are sessions of their own, and control groups and folders of machines would stay.

    They wait for runs that threads have started, so these go first: the time that is left is for what has to be put away.
    """

    def interrupt(_number: int, _frame: types.FrameType | None) -> None:
        _ENDED.set()
        kill_with(f"{_STARTED_BY}={os.getpid()}")
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
