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
import time
import types

#: In the environment of runs that tests start.
_STARTED_BY = "HWACCEL_STARTED_BY"
_ENDED = threading.Event()
#: Seconds in which a process that is being started has an environment, also on a busy machine.
_EXEC = 5


def started_by_these() -> dict[str, str]:
    """Environment variables of a run that goes when these tests are ended. Raises KeyboardInterrupt where they have been."""
    if _ENDED.is_set():
        raise KeyboardInterrupt
    return {_STARTED_BY: str(os.getpid())}


def _read(process: pathlib.Path, name: str) -> bytes:
    """Empty where the process is gone, or somebody else's."""
    try:
        return (process / name).read_bytes()
    except OSError:
        return b""


def _starting(process: pathlib.Path) -> bool:
    """Between the kernel's closing of files at exec and its setting of arguments and environment: who has started it may run on already (fs/exec.c)."""
    if _read(process, "cmdline"):
        return False
    # proc_pid_stat(5): state, and the flags, in which a kernel thread has PF_KTHREAD.
    words = _read(process, "stat").rpartition(b")")[2].split()
    return bool(words) and words[0] not in (b"Z", b"X") and not int(words[6]) & 0x00200000


def kill_with(variable: str) -> None:
    """Every process that has this NAME=VALUE in its environment, until there are none.

    A process group is not enough: Ansible's workers lead sessions of their own (ansible-core 2.19, WorkerProcess).
    """
    patience = time.monotonic() + _EXEC
    while True:
        found, starting = [], False
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            environment = _read(process, "environ")
            if variable.encode() in environment.split(b"\0"):
                found.append(int(process.name))
            elif not environment and _starting(process):
                starting = True
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not found and not (starting and time.monotonic() < patience):
            return


def interrupted_by_sigterm() -> None:
    """Fixtures and context managers then close: sandboxes are sessions of their own, and control groups and folders of machines would stay.

    They wait for runs that threads have started, so these go first: the time that is left is for what has to be put away.
    """

    def interrupt(_number: int, _frame: types.FrameType | None) -> None:
        _ENDED.set()
        kill_with(f"{_STARTED_BY}={os.getpid()}")
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
