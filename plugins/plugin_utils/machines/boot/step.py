# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One change to a machine, independent of the provider. Pure."""

from __future__ import annotations

import dataclasses

BOOT, POWER, INSERT, EJECT, DEFINE, REMOVE = "boot", "power", "insert", "eject", "define", "remove"
#: Power action that shuts down the operating system. It cannot be requested by itself.
SHUTDOWN = "shutdown"


@dataclasses.dataclass(frozen=True)
class Step:
    """kind: boot, power, insert or eject; define or remove of virtual machines. value: a device (network, disk, media), a power action (on, off, cycle,
    shutdown), an image, new or changed of a definition, or the disk that is removed with a machine.

    until: the power state after it. limit: timeout in seconds, after which the step has not failed. instead: taken only if the state was not reached.
    """

    kind: str
    value: str
    why: str
    until: str = ""
    limit: int = 0
    instead: bool = False
