# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds a set, and whether that run is still there. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import os
import secrets
import socket

#: Long enough for the slowest wave between two renewals, short enough that a dead run on another host does not block an evening.
HOLD_SECONDS = 90.0


@dataclasses.dataclass(frozen=True)
class Holder:
    """identity: `host pid 12 (boot, pid namespace, start, token)`; is_dead judges identities of runs on this host."""

    identity: str
    is_dead: c.Callable[[str], bool]


def this_run() -> Holder:
    here = _place()
    pid = os.getpid()
    identity = f"{socket.gethostname()[:60]} pid {pid} ({here} {_started(pid)} {secrets.token_hex(4)})"
    return Holder(identity, lambda other: _is_dead(other, here))


def _is_dead(identity: str, here: str) -> bool:
    """True only where this host can tell: the same boot, the same pid namespace, and no such process any more."""
    head, separator, tail = identity.rpartition(" (")
    fields = tail.rstrip(")").split(" ")
    pid = head.rpartition(" pid ")[2]
    if not separator or len(fields) != 4 or not pid.isdigit() or here.startswith("unknown") or f"{fields[0]} {fields[1]}" != here:
        return False
    return _started(int(pid)) != fields[2]


def _place() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
            return f"{source.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return "unknown unknown"


def _started(pid: int) -> str:
    """Start time of a process in clock ticks since boot: a pid can be given again, both together cannot."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as source:
            return source.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "gone"
