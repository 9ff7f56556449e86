# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one job, ends everything that it has started and tells what all of it used.

reaper.py REPORT COMMAND...

Control planes and what holds a container leave the job's session, so neither a process group nor rusage of the job's process finds
them. Here they come back: orphans get this process for a parent (PR_SET_CHILD_SUBREAPER), which collects them, so their CPU time is
in its own rusage, and ends those that the job leaves. Unlike a control group that needs no root, is the same with both versions of
control groups, and counts what kubelets and container engines move to other groups.
SIGTERM, also that of a runner that died: the job has CLEANING_SECONDS to put away what it has made.
REPORT gets {"cpu": seconds, "left": command lines of what was still running when the job had ended}.
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
#: What tests have to stop the control planes that they have started.
CLEANING_SECONDS = 90


class Job:
    def __init__(self, command: list[str]) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.asked = False
        signal.signal(signal.SIGTERM, self.stop)
        self.process = subprocess.Popen(command, start_new_session=True)
        if self.asked:
            self.stop()

    def stop(self, *_: int | types.FrameType | None) -> None:
        self.asked = True
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
        """Exit status of the job. What else ends meanwhile is collected at once: whoever stops a daemon waits until it is gone."""
        assert self.process
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == self.process.pid:
                return os.waitstatus_to_exitcode(status)


def children() -> list[int]:
    """The kernel's own list of them is an option of its configuration."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.append(int(folder.name))
    return found


def end_the_rest() -> list[str]:
    """Children of whoever is killed come to this process, until there are none."""
    left = []
    while found := children():
        for pid in found:
            line = (
                pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            )
            # One that has ended, and waits to be collected, has no command line.
            left += [line] if line else []
            os.kill(pid, signal.SIGKILL)
        for pid in found:
            os.waitpid(pid, 0)
    return left


def main() -> int:
    kernel = ctypes.CDLL(None, use_errno=True)
    for option, value in ((PR_SET_CHILD_SUBREAPER, 1), (PR_SET_PDEATHSIG, signal.SIGTERM)):
        if kernel.prctl(option, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), f"prctl({option})")
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
