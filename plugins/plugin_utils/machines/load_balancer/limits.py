# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many connections a machine can carry."""

from __future__ import annotations

import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: A connection is two files: to the client and to the member.
_FILES = 2
#: Buffers of both directions, and what HAProxy keeps of a connection.
_KIB = 34
#: Files beside connections: log, sockets of the master process, pipes, event polls of threads.
_SPARE = 200
#: Of the machine's memory, connections get this part.
_PART = 4
#: More than this is asked for by nobody, and would only cost memory.
_MOST = 100_000


@dataclasses.dataclass(frozen=True)
class Limits:
    """files: that the service may have open. memory_kib: of the machine."""

    files: int
    memory_kib: int


def _needed(connections: int, listeners: int, members: int) -> int:
    return connections * _FILES + listeners + members + _SPARE


def connections(limits: Limits, listeners: int, members: int) -> int:
    """As many as files and memory allow, in round numbers: a machine's memory is not the same after each boot."""
    by_files = (limits.files - _needed(0, listeners, members)) // _FILES
    found = max(0, min(by_files, limits.memory_kib // _PART // _KIB, _MOST))
    return found // 500 * 500 if found >= 500 else found


def shortage(desired: int, limits: Limits, listeners: int, members: int) -> list[Fault]:
    """Why the machine cannot carry as many as somebody wants. HAProxy's own check does not see it."""
    what, possible = "the load balancer cannot be configured", connections(limits, listeners, members)
    needed = _needed(desired, listeners, members)
    if desired and needed > limits.files:
        why = f"{desired} connections need {needed} open files, and the service may have {limits.files}"
        step = f"set it to {possible} or leave it empty, or raise the limit: LimitNOFILE of haproxy.service, and in a container that of the container"
        return [Fault(what, "load_balancer_maxconn", why, step)]
    if not desired and possible < 100:
        why = f"the service may have {limits.files} open files, which is enough for {possible} connections"
        return [
            Fault(
                what,
                "limits of the machine",
                why,
                "raise LimitNOFILE of haproxy.service, or take a machine with more memory",
            )
        ]
    return []
