# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One thing that is done to a machine, whatever it is done by. Pure."""

from __future__ import annotations

import dataclasses

BOOT, POWER, INSERT, EJECT, DEFINE, REMOVE = "boot", "power", "insert", "eject", "define", "remove"
#: A power action beside those that can be asked for: the operating system is asked to end.
SHUTDOWN = "shutdown"


@dataclasses.dataclass(frozen=True)
class Step:
    """kind: boot, power, insert or eject; define or remove of virtual machines. value: a device (network, disk, media), a power action (on, off, cycle,
    shutdown), an image, new or changed of a definition, or the disk that goes with a machine.

    until: the power state after it. limit: in so many seconds; that it was not reached is no failure then. instead: only where it was not reached.
    """

    kind: str
    value: str
    why: str
    until: str = ""
    limit: int = 0
    instead: bool = False
