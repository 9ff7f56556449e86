# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one job, ends all processes that it has started, and reports their resource usage.

reaper.py REPORT COMMAND...

Control planes and monitors of containers leave the job's session, so neither a process group nor the rusage of the job's process includes
them. Orphans become children of this process (PR_SET_CHILD_SUBREAPER), which collects them, so that their CPU time is in its rusage, and
kills those that remain after the job. Unlike a control group, this requires no root, is the same with both versions of control groups, and
includes processes that kubelets and container engines move to other groups.
After SIGTERM, also when the runner has died, the job has CLEANING_SECONDS for its cleanup.
REPORT contains {"cpu": seconds, "left": command lines of processes that were still running after the end of the job}.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import types

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
#: Seconds in which tests can stop their control planes.
CLEANING_SECONDS = 90


class Job:
    def __init__(self, command: list[str]) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False
        signal.signal(signal.SIGTERM, self.stop)
        self.process = subprocess.Popen(command, start_new_session=True)
        if self.stopped:
            self.stop()

    def stop(self, *_: int | types.FrameType | None) -> None:
        self.stopped = True
        if self.process:
            signal.signal(signal.SIGALRM, self.kill)
            signal.alarm(CLEANING_SECONDS)
            self.signal(signal.SIGTERM)

    def kill(self, *_: int | types.FrameType | None) -> None:
        self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def collect(self) -> int:
        """Exit status of the job. Other processes are collected at their end, because programs that stop a daemon wait until it no longer exists."""
        assert self.process
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == self.process.pid:
                return os.waitstatus_to_exitcode(status)


def children() -> list[int]:
    """Pids of children. The kernel's list of children depends on its configuration, so it is not used."""
    pids = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            pids.append(int(folder.name))
    return pids


def command_line(pid: int) -> str:
    """A process that has ended and waits to be collected has none."""
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()


def adopt_orphans() -> None:
    """From now on, processes whose parents end become children of this process."""
    set_option(PR_SET_CHILD_SUBREAPER, 1)


def set_option(option: int, value: int) -> None:
    kernel = ctypes.CDLL(None, use_errno=True)
    if kernel.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def end_the_rest() -> list[str]:
    """Kills all children until there are none, because children of a killed process become children of this one."""
    left = []
    while pids := children():
        for pid in pids:
            line = command_line(pid)
            left += [line] if line else []
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)
    return left


def main() -> int:
    adopt_orphans()
    set_option(PR_SET_PDEATHSIG, signal.SIGTERM)
    report, *command = sys.argv[1:]
    job = Job(command)
    status = job.collect()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.alarm(0)
    left = end_the_rest()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    pathlib.Path(report).write_text(json.dumps({"cpu": used.ru_utime + used.ru_stime, "left": left}), encoding="utf-8")
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
