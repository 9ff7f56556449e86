# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The expected state of a node at a gate, and the gate's verdict."""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import PodFacts

STATES = PASSED, WAITING, FAILED, UNKNOWN = ("passed", "waiting", "failed", "unknown")
#: Links in the order in which a node passes them.
LINKS = HARDWARE, DRIVER, TOOLKIT, CUDA, PLUGIN, SCHEDULABLE = (
    "hardware seen",
    "driver",
    "toolkit",
    "cuda",
    "plugin",
    "schedulable",
)
#: Seconds that a possible failure may last before it counts as a failure.
GRACE = 120.0


@dataclasses.dataclass(frozen=True)
class Verdict:
    """link: the link that is passed, or that the node waits at. grace: seconds after which waiting becomes failed, 0 for no limit.

    since: when that began, in the server's format; "" if only the gate knows it.
    pod and container: those whose log shows the cause ("" for none).
    """

    state: str
    link: str
    reason: str = ""
    next_step: str = ""
    grace: float = 0.0
    pod: PodFacts | None = None
    container: str = ""
    brief: str = ""
    #: The observer is waiting, not the node. At the deadline the state of the node is unknown.
    observer: bool = False
    since: str = ""

    @property
    def words(self) -> str:
        """For a line about many nodes: "driver: compiling or loading"."""
        return f"{self.link}: {self.brief or self.reason}"


@dataclasses.dataclass(frozen=True)
class Expectation:
    """What the gate expects of one node. expected: {} if unknown."""

    gpu_declared: bool = False
    expected: c.Mapping[str, int] = dataclasses.field(default_factory=dict)
    #: The driver is installed on the host (declared, or detected on the node).
    host_driver: bool = False
    #: Another deployment provides the driver, perhaps without a validator.
    existing: bool = False
    #: Crashes of the validator's steps, by step, that are excused, from `excused`.
    excused: c.Mapping[str, int] = dataclasses.field(default_factory=dict)
    #: How often the node became NotReady since the gate began.
    absences: int = 0
