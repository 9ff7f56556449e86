# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that make a cluster of emulated computers are killed with SIGKILL, again and again: after each change of what is there, and at moments of a seed.

The same command ends afterwards as if nothing had been. Computers go on meanwhile, as they do when somebody's controller has died.
"""

from __future__ import annotations

import collections.abc as c
import itertools
import pathlib
import random
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import NODE
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig import kills
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of
from ansible_collections.hwaccel.gpu.tests.openshift.rig import coreos, trial
from ansible_collections.hwaccel.gpu.tests.openshift.rig.coreos import CoreOS
from ansible_collections.hwaccel.gpu.tests.openshift.rig.metal import DOMAIN, Layout
from ansible_collections.hwaccel.gpu.tests.openshift.rig.operators import BOOTSTRAPPED, INSTALLED, REMOVABLE
from ansible_collections.hwaccel.gpu.tests.openshift.rig.trial import Trial

pytestmark = pytest.mark.slow
#: Of moments. Each seed has ten.
SEEDS, MOMENTS = (22, 23), 10
#: What changes, in its order, and how it is seen from outside of a run.
CHANGES: dict[str, c.Callable[[Trial], bool]] = {
    "files are there": lambda made: made.keys() != "",
    "machines boot": lambda made: made.machines.console("bootstrap-0") != "",
    "a disk is written": lambda made: coreos.WRITES in made.machines.console("master-0"),
    "the API answers": lambda made: made.chain.started.is_set(),
    "bootstrap is complete": lambda made: made.reached(BOOTSTRAPPED),
    "etcd does without the bootstrap machine": lambda made: made.reached(REMOVABLE),
    "the bootstrap machine is off": lambda made: made.machines.hyper.state("bootstrap-0") == "shut off",
    "it is installed": lambda made: made.reached(INSTALLED),
    "GPUs can be scheduled": lambda made: gpus_of(made.chain.plane.admin.get(NODE, f"worker-0.{DOMAIN}")) > 0,
}


@pytest.fixture
def made(rig: BootRig, system: CoreOS, tmp_path: pathlib.Path) -> c.Iterator[Trial]:
    with trial.empty(rig, system, tmp_path, Layout()) as made:
        yield made


def after(seconds: float) -> c.Callable[[], bool]:
    """Whether a run that begins now has taken that long."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() >= until


class Killer:
    """Kills runs of a trial, and prints at which tasks. Keys that were made once stay."""

    def __init__(self, made: Trial, folder: pathlib.Path, seed: int) -> None:
        self.made, self.chance = made, random.Random(seed)
        self._folder, self._numbers, self._keys = folder, itertools.count(1), ""
        began = time.monotonic()
        made.done("--check")
        #: Seconds in which a run has found out what is to be done.
        self.pace = time.monotonic() - began

    def kill(self, what: str, when: c.Callable[[], bool]) -> bool:
        """False if the run has ended before."""
        path = self._folder / f"started-{next(self._numbers)}"
        began = time.monotonic()
        killed = self.made.machines.killed(when, path)
        _when, task = (kills.read(path) or [(0, "no task")])[-1]
        print(f"{what}: {'killed' if killed else 'ended'} after {time.monotonic() - began:.0f} s: {task}", flush=True)
        assert self._keys in ("", self.made.keys())
        self._keys = self.made.keys()
        return killed

    def is_undone(self) -> None:
        """Another run ends in the state of one that nobody has killed."""
        began = time.monotonic()
        self.made.is_installed(self.made.done())
        print(f"the run that nobody kills: {time.monotonic() - began:.0f} s", flush=True)
        assert self._keys == self.made.keys()
        self.made.are_written()
        self.made.rests()


def test_after_each_change(made: Trial, tmp_path: pathlib.Path) -> None:
    killer = Killer(made, tmp_path, SEEDS[0])
    for what, changed in CHANGES.items():
        # What happens by itself while no run is there has no moment in a run.
        at = after(killer.chance.uniform(0, killer.pace))
        came_so_far = killer.kill(what, at if changed(made) else lambda changed=changed: changed(made))
        assert came_so_far, f"the run has ended before: {what}"
    killer.is_undone()


@pytest.mark.parametrize("seed", SEEDS)
def test_at_moments_of_a_seed(made: Trial, tmp_path: pathlib.Path, seed: int) -> None:
    killer = Killer(made, tmp_path, seed)
    seconds = [killer.chance.uniform(0, 3 * killer.pace) for _number in range(MOMENTS)]
    came_so_far = [killer.kill(f"seed {seed}", after(one)) for one in seconds]
    # A run that has nothing left to do may be faster.
    assert sum(came_so_far) > MOMENTS // 2
    killer.is_undone()
