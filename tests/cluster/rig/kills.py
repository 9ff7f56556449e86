# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kills of runs at tasks that a seed chooses among those that an undisturbed run has started.

moments = changing(read(path), "cluster_kubeadm", names)      path: HWACCEL_STARTED of the undisturbed run
kill = random.Random(seed).choice(moments)
rig.killed(..., kill.reached(path))                    path: that of the run which is killed
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import itertools
import pathlib
import random
import time

#: Tasks of the role that only observe and tell, by the first word of their names.
_READ_ONLY = ("preflight", "observed", "plan", "ask", "ask_server", "Preflight", "settings", "teardown", "Cluster")
#: Seconds from which a task waits for something.
_WAITS = 2


@dataclasses.dataclass(frozen=True)
class Kill:
    """name: of the task. occurrence: how many tasks of this name had started with it. seconds: for which it ran."""

    name: str
    occurrence: int
    seconds: float

    def within(self, random_: random.Random) -> Kill:
        """At a moment of the task. Long ones wait most of their time."""
        return dataclasses.replace(self, seconds=round(random_.uniform(0, min(self.seconds, 20)), 1))

    def reached(self, path: pathlib.Path) -> c.Callable[[], bool]:
        """Whether the run that writes the file has come to the task, and has spent that many seconds in it."""
        since: list[float] = []

        def reached() -> bool:
            if not since and sum(name == self.name for _when, name in read(path)) >= self.occurrence:
                since.append(time.monotonic())
            return bool(since) and time.monotonic() - since[0] >= self.seconds

        return reached

    def __str__(self) -> str:
        return f"{self.name} (start {self.occurrence}, after {self.seconds:.1f} s)"


def read(path: pathlib.Path) -> list[tuple[float, str]]:
    """Times and names of tasks, in the order in which they have started."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [(float(when), name) for when, _space, name in (line.partition(" ") for line in lines)]


def changing(started: c.Sequence[tuple[float, str]], role: str, changed: c.Collection[str]) -> list[Kill]:
    """Moments of the role's tasks, and of those that installers share, that change something or wait. changed: names of tasks that have."""
    counts: dict[str, int] = {}
    found = []
    for (when, name), (later, _next) in itertools.pairwise([*started, (started[-1][0] if started else 0.0, "")]):
        counts[name] = counts.get(name, 0) + 1
        waits = later - when >= _WAITS and name.partition(" : ")[2].split(" ")[0] not in _READ_ONLY
        ours = name.startswith((f"hwaccel.gpu.{role} : ", "hwaccel.gpu.cluster : "))
        if ours and (name in changed or waits):
            found.append(Kill(name, counts[name], later - when))
    return found


def initializing(made: c.Sequence[Kill]) -> list[Kill]:
    """Of the run that has made the cluster, those before other machines join."""
    return list(itertools.takewhile(lambda kill: not _joins(kill), made))


def joining(made: c.Sequence[Kill], machines: c.Collection[str]) -> list[Kill]:
    """Of the run that has made the cluster, those of its first join, as a run has them that has nothing to do before. machines: all of the cluster, which some
    tasks name.
    """
    rest = list(itertools.dropwhile(lambda kill: not _joins(kill), made))
    first = {kill.name: kill.occurrence for kill in reversed(rest)}
    return [
        dataclasses.replace(kill, occurrence=1)
        for kill in rest
        if kill.occurrence == first[kill.name] and not set(kill.name.split()) & set(machines)
    ]


def _joins(kill: Kill) -> bool:
    """The first start of kubeadm, or of K3s, initializes the cluster."""
    return (" : kubeadm |" in kill.name or " : start |" in kill.name) and kill.occurrence >= 2
