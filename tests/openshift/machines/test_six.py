# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bootstrap machine, three masters and two workers, all of them emulated computers, from empty disks to validated GPUs by one command."""

from __future__ import annotations

import pathlib
import time

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.openshift.rig import trial
from ansible_collections.hwaccel.gpu.tests.openshift.rig.coreos import CoreOS
from ansible_collections.hwaccel.gpu.tests.openshift.rig.metal import Layout

pytestmark = pytest.mark.slow


def test_six_machines(rig: BootRig, system: CoreOS, tmp_path: pathlib.Path) -> None:
    with trial.empty(rig, system, tmp_path, Layout(masters=3, workers=2)) as made:
        began = time.monotonic()
        run = made.done()
        print(f"six machines, from empty disks to validated GPUs: {time.monotonic() - began:.0f} s", flush=True)
        made.is_installed(run)
        made.are_written()
        assert made.machines.hyper.state("bootstrap-0") == "shut off"
        made.rests()
