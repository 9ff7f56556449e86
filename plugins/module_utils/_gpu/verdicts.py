# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is expected of a node at a gate, and what the gate says of it."""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import PodFacts

STATES = PASSED, WAITING, FAILED, UNKNOWN = ("passed", "waiting", "failed", "unknown")
#: In the order in which a node comes to them.
LINKS = HARDWARE, DRIVER, TOOLKIT, CUDA, PLUGIN, SCHEDULABLE = (
    "hardware seen",
    "driver",
    "toolkit",
    "cuda",
    "plugin",
    "schedulable",
)
#: Seconds that something suspicious may last before it counts as a failure.
GRACE = 120.0


@dataclasses.dataclass(frozen=True)
class Verdict:
    """link: the one that is passed, or that holds the node up. grace: seconds after which waiting becomes failed, 0 for no such limit.

    since: when that began as the server writes times, "" where only the gate can tell.
    pod and container: whose log tells why ("" for none).
    """

    state: str
    link: str
    reason: str = ""
    next_step: str = ""
    grace: float = 0.0
    pod: PodFacts | None = None
    container: str = ""
    brief: str = ""
    #: What waits is the observer, not the node: at the end nothing is known of the node.
    observer: bool = False
    since: str = ""

    @property
    def words(self) -> str:
        """For a line about many nodes: "driver: compiling or loading"."""
        return f"{self.link}: {self.brief or self.reason}"


@dataclasses.dataclass(frozen=True)
class Expectation:
    """What the gate expects of one node. expected: {} where nobody knows."""

    gpu_declared: bool = False
    expected: c.Mapping[str, int] = dataclasses.field(default_factory=dict)
    #: The driver is the host's own business (declared, or seen on the node).
    host_driver: bool = False
    #: Another deployment brings it, perhaps without a validator.
    existing: bool = False
    #: Crashes of the validator's steps, by step, that are excused: what `excused` has found.
    excused: c.Mapping[str, int] = dataclasses.field(default_factory=dict)
    #: How often the node has ceased to be Ready since the gate began.
    absences: int = 0
