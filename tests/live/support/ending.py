# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that are terminated also end the processes that they have started."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import threading
import time
import types

#: Environment variable of the runs that tests start.
_STARTED_BY = "HWACCEL_STARTED_BY"
_ENDED = threading.Event()
#: Seconds after which a starting process has an environment, also on a busy machine.
_EXEC = 5


def started_by_these() -> dict[str, str]:
    """Environment variables of a run that ends with these tests. Raises KeyboardInterrupt if the tests have been terminated."""
    if _ENDED.is_set():
        raise KeyboardInterrupt
    return {_STARTED_BY: str(os.getpid())}


def _read(process: pathlib.Path, name: str) -> bytes:
    """Empty if the process has ended or belongs to another user."""
    try:
        return (process / name).read_bytes()
    except OSError:
        return b""


def _starting(process: pathlib.Path) -> bool:
    """Whether the process is within exec and has no arguments and environment yet, while its parent may already continue (fs/exec.c)."""
    if _read(process, "cmdline"):
        return False
    # proc_pid_stat(5): state, and the flags, in which a kernel thread has PF_KTHREAD.
    words = _read(process, "stat").rpartition(b")")[2].split()
    return bool(words) and words[0] not in (b"Z", b"X") and not int(words[6]) & 0x00200000


def kill_with(variable: str) -> None:
    """Kills every process that has this NAME=VALUE in its environment, until there are none.

    A process group is not sufficient, because Ansible's workers lead their own sessions (ansible-core 2.19, WorkerProcess).
    """
    deadline = time.monotonic() + _EXEC
    while True:
        pids, starting = [], False
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            environment = _read(process, "environ")
            if variable.encode() in environment.split(b"\0"):
                pids.append(int(process.name))
            elif not environment and _starting(process):
                starting = True
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not pids and not (starting and time.monotonic() < deadline):
            return


def interrupted_by_sigterm() -> None:
    """Makes SIGTERM close fixtures and context managers; otherwise sandboxes, which have their own sessions, and control groups and folders would remain.

    These wait for runs that threads have started, so the runs are killed first: the remaining time is needed for the cleanup.
    """

    def interrupt(_number: int, _frame: types.FrameType | None) -> None:
        _ENDED.set()
        kill_with(f"{_STARTED_BY}={os.getpid()}")
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
