# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many connections a machine can handle."""

from __future__ import annotations

import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: A connection needs two files: to the client and to the member.
_FILES = 2
#: Buffers of both directions, and HAProxy's data of a connection.
_KIB = 34
#: Other files: log, sockets of the master process, pipes, event polls of threads.
_SPARE = 200
#: Share of the machine's memory for connections.
_PART = 4
#: Upper limit of the default, because more would only cost memory.
_MOST = 100_000


@dataclasses.dataclass(frozen=True)
class Limits:
    """files: limit of open files of the service. memory_kib: of the machine."""

    files: int
    memory_kib: int


def _needed(connections: int, listeners: int, members: int) -> int:
    return connections * _FILES + listeners + members + _SPARE


def connections(limits: Limits, listeners: int, members: int) -> int:
    """As many as files and memory allow, rounded, because a machine's memory differs slightly between boots."""
    by_files = (limits.files - _needed(0, listeners, members)) // _FILES
    found = max(0, min(by_files, limits.memory_kib // _PART // _KIB, _MOST))
    return found // 500 * 500 if found >= 500 else found


def shortage(desired: int, limits: Limits, listeners: int, members: int) -> list[Fault]:
    """Why the machine cannot handle the desired connections. HAProxy's own check does not detect this."""
    what, possible = "the load balancer cannot be configured", connections(limits, listeners, members)
    needed = _needed(desired, listeners, members)
    if desired and needed > limits.files:
        why = f"{desired} connections need {needed} open files, but the limit of the service is {limits.files}"
        step = f"set it to {possible} or leave it empty, or raise LimitNOFILE of haproxy.service, and in a container its limit"
        return [Fault(what, "load_balancer_maxconn", why, step)]
    if not desired and possible < 100:
        why = f"the limit of {limits.files} open files allows only {possible} connections"
        return [
            Fault(
                what,
                "limits of the machine",
                why,
                "raise LimitNOFILE of haproxy.service, or use a machine with more memory",
            )
        ]
    return []
