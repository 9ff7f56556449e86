# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run holds a set, and whether that run is still alive.

A task of several slices has no process of its own between two of them: the controller sleeps and starts the next one. So the relevant
process is not the module's but the one that starts the slices, ansible-core's worker, which is forked for one task of one host and ends
with it. It is only checked if the module runs on the same boot and in the same pid namespace. There a reader can detect that the worker
has ended, and the module itself checks it before each request, so that an orphaned slice stops as well. Everywhere else (a bastion,
a container, a controller without /proc) nothing can be proven, and the hold ends when it expires.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import os
import secrets
import socket

_UNKNOWN = "-"


@dataclasses.dataclass(frozen=True)
class Holder:
    """identity: `host pid 12 (boot, pid namespace, start, token)`, one for all slices of a task; is_dead judges identities of runs on this host."""

    identity: str
    is_dead: c.Callable[[str], bool]

    @property
    def ended(self) -> bool:
        """Whether the process that this run belongs to has ended. Others may then take the set, so nothing more may be written."""
        return self.is_dead(self.identity)


def this_process() -> str:
    """Identity of this process, for `this_run` in the processes that it starts."""
    return f"{os.getpid()} {_place()} {_started(os.getpid()) or _UNKNOWN}"


def this_run(task: str = "", *, sliced: bool = False) -> Holder:
    """The run that this process is part of.

    task: `this_process` of the process that starts the slices, "" if unknown; sliced: this process is one of several of the task.
    """
    here = _place()
    pid, place, started = _life(task, here, sliced)
    token = secrets.token_hex(4)
    who = f"{socket.gethostname()[:60]} pid {pid}" if pid else socket.gethostname()[:60]
    return Holder(f"{who} ({place} {started} {token})", lambda other: _is_dead(other, here))


def _life(task: str, here: str, sliced: bool) -> tuple[str, str, str]:
    """Pid, place and start of the relevant process; without a pid if there is none."""
    text = task if sliced else this_process()
    pid, _space, rest = text.partition(" ")
    place, _space, started = rest.rpartition(" ")
    return (pid, place, started) if place == here else ("", f"{_UNKNOWN} {_UNKNOWN}", _UNKNOWN)


def _is_dead(identity: str, here: str) -> bool:
    """True only if this host can prove it: the same boot, the same pid namespace, and the process no longer exists."""
    head, separator, tail = identity.rpartition(" (")
    fields = tail.rstrip(")").split(" ")
    pid = head.rpartition(" pid ")[2]
    if (
        not separator
        or len(fields) != 4
        or not pid.isdecimal()
        or _UNKNOWN in fields[:2]
        or f"{fields[0]} {fields[1]}" != here
    ):
        return False
    return _is_gone(int(pid), fields[2])


def _is_gone(pid: int, started: str) -> bool:
    """Whether a process has ended. A process that is not accessible (another user's, /proc with hidepid) proves nothing."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        # EPERM means that the process exists.
        pass
    found = _started(pid)
    return bool(found) and started != _UNKNOWN and found != started


def _place() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
            return f"{source.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{_UNKNOWN} {_UNKNOWN}"


def _started(pid: int) -> str:
    """Start time of a process in clock ticks since boot, "" if it cannot be read. A pid can be reused, pid and start time together cannot."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as source:
            return source.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
